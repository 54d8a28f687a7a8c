// Where a run keeps its files, what scripts get as exit codes, and what programs inherit of paths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "tuner-service/cli/connect.h"
#include "tuner-service/cli/exit_code.h"
#include "tuner-service/cli/run_files.h"
#include "tuner-service/cli/signals.h"

namespace jizi::tuner {
namespace {

using testing::MatchesRegex;

TEST(RunFiles, TwoStudiesHaveFoldersOfTheirOwn) {
  const std::string a = StudyFolder("/x.trials", "a");
  EXPECT_THAT(a, MatchesRegex("/x\\.trials/a-[0-9a-f]{8}"));
  EXPECT_NE(a, StudyFolder("/x.trials", "b"));
  // Alike as file names, and longer than a file name may be.
  EXPECT_NE(StudyFolder("/x.trials", "a/b"), StudyFolder("/x.trials", "a_b"));
  const std::string long_name(10'000, 'n');
  EXPECT_LT(StudyFolder("/x.trials", long_name).size(), 200u);
  EXPECT_NE(StudyFolder("/x.trials", long_name), StudyFolder("/x.trials", long_name + "n"));
}

TEST(RunFiles, AStudysNameCannotLeaveItsFolder) {
  for (const char* name : {"..", ".", "../x", "/etc", "a\nb", "-rf", ""}) {
    const std::filesystem::path folder = StudyFolder("/x.trials", name);
    EXPECT_EQ(folder.lexically_normal().parent_path(), "/x.trials") << name;
  }
}

TEST(RunFiles, OnlyALastDotDbIsTakenOff) {
  EXPECT_EQ(TrialsRootOf("/d/x.db"), "/d/x.trials");
  EXPECT_EQ(TrialsRootOf("/d/v1.2"), "/d/v1.2.trials");
  EXPECT_NE(TrialsRootOf("/d/v1.2"), TrialsRootOf("/d/v1.3"));
}

TEST(ExitCodes, ADiskThatIsFullOrADatabaseThatIsLockedIsNoMissingService) {
  const auto code = [](StatusCode kind, const char* name) {
    return ExitCodeFor(Error(kind, "what", {name, "", ""}));
  };
  EXPECT_EQ(code(StatusCode::kUnavailable, "STORE_FULL"), kExitDatabase);
  EXPECT_EQ(code(StatusCode::kUnavailable, "STORE_BUSY"), kExitDatabase);
  EXPECT_EQ(code(StatusCode::kDataLoss, "STORE_LOST"), kExitDatabase);
  EXPECT_EQ(code(StatusCode::kUnavailable, "UNREACHABLE"), kExitUnreachable);
  EXPECT_EQ(code(StatusCode::kFailedPrecondition, "STORE_READ_ONLY"), kExitRefused);
}

TEST(ServerClientTest, PathsAreAbsoluteSinceProgramsRunElsewhere) {
  const std::string here = std::filesystem::current_path();
  const ClientOptions options = ServerClient({"", "unix:s/socket", "team.db.token", "ca.pem"});
  EXPECT_EQ(options.address, "unix:" + here + "/s/socket");
  EXPECT_EQ(options.token_file, here + "/team.db.token");
  EXPECT_EQ(options.ca_file, here + "/ca.pem");
  EXPECT_EQ(ServerClient({"", "host:1", "", ""}).address, "host:1");
  EXPECT_EQ(ServerClient({"", "unix:/s", "", ""}).address, "unix:/s");
}

TEST(SignalsTest, OneThatComesAsWeEndDoesNotKillUs) {
  {
    const Signals signals;
    raise(SIGINT);
  }
  SUCCEED();  // Or the test program is gone.
}

TEST(SignalsTest, WhatIsIgnoredAtTheStartStaysIgnored) {
  struct sigaction ignored{};
  struct sigaction before{};
  ignored.sa_handler = SIG_IGN;
  ASSERT_EQ(sigaction(SIGHUP, &ignored, &before), 0);
  {
    Signals signals;
    raise(SIGHUP);
    EXPECT_EQ(signals.Wait(std::chrono::milliseconds(10)), std::nullopt);
    raise(SIGTERM);
    EXPECT_EQ(signals.Wait(std::chrono::milliseconds(1000)), SIGTERM);
  }
  sigaction(SIGHUP, &before, nullptr);
}

}  // namespace
}  // namespace jizi::tuner
