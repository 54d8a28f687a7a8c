// The helper without a service, and what it makes of the environment and of parameters.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "trial-helper/environment.h"
#include "trial-helper/jizi_trial_helper.h"
#include "trial-helper/params.h"
#include "trial-helper/trial_source.h"

namespace jizi {
namespace {

class ByHand : public ::testing::Test {
 protected:
  void Set(const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
    set_.emplace_back(name);
  }
  void SetUp() override {
    for (const char* name : {"JIZI_ENDPOINT", "JIZI_PARAMS", "JIZI_TRIAL", "RANK", "WORLD_SIZE"}) {
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  std::vector<std::string> set_;
};

// The message of the std::invalid_argument, empty if there is none.
template <typename Call>
std::string Refusal(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST_F(ByHand, DoesTheSameWorkOnceAndSaysSoOnce) {
  ::testing::internal::CaptureStderr();
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment();
  int trials = 0;
  while (auto trial = helper.NextTrial()) {
    ++trials;
    EXPECT_EQ(trial->id(), 0);
    EXPECT_EQ(trial->Get<double>("lr", 0.1), 0.1);
    EXPECT_EQ(trial->Get("optimizer", "sgd"), "sgd");
    EXPECT_FALSE(trial->Has("lr"));
    EXPECT_EQ(trial->ParamsJson(), "{}");
    EXPECT_EQ(trial->WarmStart(), "");
    for (int64_t step = 1; step <= 3; ++step) {
      const ReportResult result = trial->Report(step, {{"val", 1}});
      EXPECT_FALSE(result.should_stop());
      EXPECT_FALSE(result.should_pause());
      EXPECT_TRUE(result.changes().empty());
      EXPECT_EQ(result.roll_back_to(), -1);
      EXPECT_EQ(result.why(), "");
    }
  }
  EXPECT_EQ(trials, 1);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find("by hand"), std::string::npos);
}

TEST_F(ByHand, CheckpointsAreWrittenBeneathTheCurrentFolder) {
  char name[] = "/tmp/jizi-by-hand-XXXXXX";
  const std::filesystem::path folder = mkdtemp(name);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment();
    const auto trial = helper.NextTrial();
    EXPECT_EQ(std::filesystem::canonical(trial->Directory()), std::filesystem::canonical(folder));
    EXPECT_TRUE(
        trial->Checkpoint(1, [](const std::string& path) { std::ofstream(path) << "weights"; }));
  }
  EXPECT_FALSE(std::filesystem::is_empty(folder / "checkpoints"));
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
}

TEST_F(ByHand, ParametersComeFromJiziParamsWithTheirTypes) {
  Set("JIZI_PARAMS",
      R"({"lr": 0.25, "layers": 3, "nesterov": true, "optimizer": "adam", "size": [1, 2], "big": 5000000000})");
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment();
  const auto trial = helper.NextTrial();
  EXPECT_EQ(trial->Get<double>("lr", 0), 0.25);
  EXPECT_EQ(trial->Get<float>("lr", 0), 0.25F);
  EXPECT_EQ(trial->Get<int>("layers", 0), 3);
  EXPECT_EQ(trial->Get<int64_t>("layers", 0), 3);
  EXPECT_EQ(trial->Get<double>("layers", 0), 3.0);
  EXPECT_EQ(trial->Get<float>("layers", 0), 3.0F);
  EXPECT_EQ(trial->Get<int64_t>("big", 0), 5'000'000'000);
  EXPECT_TRUE(trial->Get<bool>("nesterov", false));
  EXPECT_EQ(trial->Get<std::string>("optimizer", ""), "adam");
  EXPECT_TRUE(trial->Has("size"));
  EXPECT_EQ(
      trial->ParamsJson(),
      R"({"big":5000000000,"layers":3,"lr":0.25,"nesterov":true,"optimizer":"adam","size":[1,2]})");
}

TEST_F(ByHand, NothingElseIsConverted) {
  Set("JIZI_PARAMS", R"({"lr": 0.5, "layers": 3, "flag": true, "name": "x", "big": 5000000000})");
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment();
  const auto trial = helper.NextTrial();
  const std::string refusal = Refusal([&] { trial->Get<int>("lr", 0); });
  EXPECT_NE(refusal.find("\"lr\""), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("0.5"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("int"), std::string::npos) << refusal;
  EXPECT_NE(Refusal([&] { trial->Get<int>("big", 0); }), "");
  EXPECT_NE(Refusal([&] { trial->Get<int64_t>("flag", 0); }), "");
  EXPECT_NE(Refusal([&] { trial->Get<bool>("layers", false); }), "");
  EXPECT_NE(Refusal([&] { trial->Get<double>("name", 0); }), "");
  EXPECT_NE(Refusal([&] { trial->Get<double>("flag", 0); }), "");
  EXPECT_NE(Refusal([&] { trial->Get<std::string>("layers", ""); }), "");
}

TEST_F(ByHand, ParametersSurviveTheWayThroughJson) {
  helper::Params params;
  params["a"].set_float_value(3);
  params["b"].set_float_value(1e-9);
  params["c"].set_float_value(1e22);
  params["d"].set_int_value(INT64_MIN);
  params["quote\"d"].set_string_value("line\nbreak \"x\"");
  params["e"].set_bool_value(false);
  params["f"].set_json_value("[1,{\"x\":null}]");
  const helper::Params back = helper::ParseParams(helper::ToJson(params));
  ASSERT_EQ(back.size(), params.size());
  for (const auto& [name, value] : params) {
    EXPECT_EQ(back.at(name).SerializeAsString(), value.SerializeAsString()) << name;
  }
}

TEST_F(ByHand, AnEnvironmentThatMakesNoSenseIsRefusedByName) {
  const auto refusal = [&](const char* name, const std::string& value) {
    const char* before = getenv(name);
    const std::string kept = before == nullptr ? "" : before;
    Set(name, value);
    const std::string text = Refusal([] { JiziTrialHelper::FromEnvironment(); });
    Set(name, kept);
    return text;
  };
  EXPECT_NE(refusal("JIZI_PARAMS", "[1]").find("JIZI_PARAMS"), std::string::npos);
  EXPECT_NE(refusal("JIZI_PARAMS", "{\"lr\":").find("JIZI_PARAMS"), std::string::npos);
  EXPECT_NE(refusal("JIZI_PARAMS", "{\"lr\": 1e999}").find("JIZI_PARAMS"), std::string::npos);
  EXPECT_NE(refusal("WORLD_SIZE", "two").find("WORLD_SIZE"), std::string::npos);
  Set("JIZI_ENDPOINT", "unix:/tmp/none");
  EXPECT_NE(refusal("JIZI_STUDY", "").find("JIZI_STUDY"), std::string::npos);
  Set("JIZI_STUDY", "study");
  EXPECT_NE(refusal("JIZI_ENDPOINT", "nowhere").find("JIZI_ENDPOINT"), std::string::npos);
  Set("JIZI_TRIAL", "1");
  Set("JIZI_ATTEMPT", "1");
  EXPECT_NE(refusal("JIZI_LEASE", "xyz").find("JIZI_LEASE"), std::string::npos);
  EXPECT_NE(refusal("JIZI_LEASE", std::string(31, 'a') + "g").find("JIZI_LEASE"),
            std::string::npos);
  EXPECT_NE(refusal("JIZI_TRIAL", "-1").find("JIZI_TRIAL"), std::string::npos);
}

TEST_F(ByHand, PathsOfTheWayToTheServiceAreRefusedByTheirVariable) {
  const std::string here = std::filesystem::current_path().string();
  Set("JIZI_STUDY", "study");
  Set("JIZI_ENDPOINT", "127.0.0.1:1");
  Set("JIZI_TOKEN_FILE", "team.db.token");
  std::string why = Refusal([] { JiziTrialHelper::FromEnvironment(); });
  EXPECT_NE(why.find("JIZI_TOKEN_FILE"), std::string::npos) << why;
  EXPECT_NE(why.find("is looked for in " + here), std::string::npos) << why;
  EXPECT_NE(why.find("give its whole path"), std::string::npos) << why;
  unsetenv("JIZI_TOKEN_FILE");
  Set("JIZI_CA_FILE", "/no/such/ca.pem");
  why = Refusal([] { JiziTrialHelper::FromEnvironment(); });
  EXPECT_NE(why.find("JIZI_CA_FILE"), std::string::npos) << why;
  EXPECT_EQ(why.find("whole path"), std::string::npos) << why;
  Set("JIZI_ENDPOINT", "unix:no/such/socket");
  why = Refusal([] { helper::ReadEnvironment(); });
  EXPECT_NE(why.find("JIZI_ENDPOINT"), std::string::npos) << why;
  EXPECT_NE(why.find(here), std::string::npos) << why;
}

TEST_F(ByHand, Contract20SeveralRanksWithoutABroadcastAreAnErrorThatSaysSo) {
  Set("WORLD_SIZE", "2");
  Set("RANK", "1");
  const std::string refusal = Refusal([] { JiziTrialHelper::FromEnvironment(); });
  EXPECT_NE(refusal.find("WORLD_SIZE"), std::string::npos);
  EXPECT_NE(refusal.find("options.broadcast ="), std::string::npos);
}

TEST(Contract20, ATrialInAFolderWhoseNameIsNoUtf8ReachesEveryRank) {
  helper::Assigned assigned;
  assigned.id = 3;
  assigned.folder = "/data/caf\xE9/3";
  assigned.warm_start = "/data/caf\xE9/2/\x01\xFF.ckpt";
  const auto read = helper::DecodeAssigned(helper::Encode(assigned));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->id, 3);
  EXPECT_EQ(read->folder, assigned.folder);
  EXPECT_EQ(read->warm_start, assigned.warm_start);
}

}  // namespace
}  // namespace jizi
