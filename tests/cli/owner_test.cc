// Contract 16: one owner a file, known to others; and what people type as parameters.
#include "tuner-service/cli/owner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tuner-service/cli/values.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class OwnerTest : public testing::Test {
 protected:
  OwnerTest() {
    std::string folder = testing::TempDir() + "jizi-owner-XXXXXX";
    folder_ = mkdtemp(folder.data());
    database_ = folder_ + "/x.db";
  }
  ~OwnerTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_, database_;
};

TEST_F(OwnerTest, Contract16TheSecondIsToldWhoOwnsTheFileAndWhatToUse) {
  const auto lock = OwnerLock::Take(database_, milliseconds(0));
  ASSERT_TRUE(lock.ok());
  ASSERT_TRUE((*lock)->Announce("unix:/tmp/jizi-x/socket").ok());
  const auto second = OwnerLock::Take(database_, milliseconds(50));
  ASSERT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailOf(second.status()).code, "FILE_OWNED");
  EXPECT_THAT(ForPeople(second.status()), HasSubstr("pid " + std::to_string(getpid())));
  EXPECT_THAT(ForPeople(second.status()), HasSubstr("--server unix:/tmp/jizi-x/socket"));
  const Owner owner = ReadOwner(database_, milliseconds(0));
  EXPECT_EQ(owner.pid, getpid());
  EXPECT_EQ(owner.address, "unix:/tmp/jizi-x/socket");
}

TEST_F(OwnerTest, Contract16AProgramThatWasStartedDoesNotKeepTheLock) {
  auto lock = OwnerLock::Take(database_, milliseconds(0));
  ASSERT_TRUE(lock.ok());
  int alive[2];
  ASSERT_EQ(pipe(alive), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(alive[0], STDIN_FILENO);
    close(alive[1]);
    execlp("cat", "cat", nullptr);
    _exit(127);
  }
  lock->reset();
  // The fork shares the lock until its exec.
  EXPECT_TRUE(OwnerLock::Take(database_, milliseconds(10'000)).ok());
  close(alive[0]);
  close(alive[1]);
  waitpid(child, nullptr, 0);
}

TEST_F(OwnerTest, AKilledOwnersAddressIsKnownToTheNext) {
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = OwnerLock::Take(database_, milliseconds(0));
    const bool announced = lock.ok() && (*lock)->Announce("unix:/tmp/jizi-gone/socket").ok();
    _exit(announced ? 0 : 1);  // Without a destructor.
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  const auto lock = OwnerLock::Take(database_, milliseconds(0));
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ((*lock)->former().address, "unix:/tmp/jizi-gone/socket");
  EXPECT_EQ(ReadOwner(database_, milliseconds(0)).address, "");
}

TEST_F(OwnerTest, AFolderThatIsNotThereIsSaid) {
  const auto lock = OwnerLock::Take(folder_ + "/no/x.db", milliseconds(0));
  EXPECT_EQ(lock.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(ForPeople(lock.status()), HasSubstr("No such file"));
}

TEST(Values, AssignmentsAreFittedToTheSpace) {
  const Space space{
      {{"lr", NumericDomain{Uniform{0, 1, Scale::kLinear}, 0, false}, {}},
       {"n", NumericDomain{Uniform{1, 64, Scale::kLinear}, 1, true}, {}},
       {"name",
        CategoricalDomain{{std::string("a b"), std::string("3"), JsonText{"[1,2]"}, true}, {}},
        {}},
       {"fixed", ConstantDomain{int64_t{7}}, {}}}};
  const auto params = ParseAssignments(space, {"lr=1", "n=64.0", "name=a b"});
  ASSERT_TRUE(params.ok()) << ForPeople(params.status());
  EXPECT_EQ(
      *params,
      (Params{
          {"lr", 1.0}, {"n", int64_t{64}}, {"name", std::string("a b")}, {"fixed", int64_t{7}}}));
  const auto name = [&](const std::string& text) {
    return ParseAssignments(space, {"lr=0.5", "n=1", "name=" + text})->at("name");
  };
  EXPECT_EQ(name("3"), ParamValue(std::string("3")));
  EXPECT_EQ(name("[1, 2]"), ParamValue(JsonText{"[1,2]"}));
  EXPECT_EQ(name("True"), ParamValue(true));
}

TEST(Values, WhatIsNoPointOfTheSpaceIsRefusedByName) {
  const Space space{{{"lr", NumericDomain{Uniform{0, 1, Scale::kLinear}, 0, false}, {}}}};
  EXPECT_THAT(ForPeople(ParseAssignments(space, {"l=1"}).status()),
              HasSubstr("did you mean `lr`?"));
  EXPECT_THAT(ForPeople(ParseAssignments(space, {"lr"}).status()),
              HasSubstr("write for example lr=0.1"));
  EXPECT_THAT(ForPeople(ParseAssignments(space, {"lr=1", "lr=1"}).status()),
              HasSubstr("given twice"));
  EXPECT_THAT(ForPeople(ParseAssignments(space, {"lr=2"}).status()), HasSubstr("lr"));
  EXPECT_EQ(ParseAssignments(space, {}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace jizi::tuner
