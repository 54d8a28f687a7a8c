// The helper while its service is away (docs/contracts.md, 12 and 22), and from which checkpoint a
// trial goes on.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include "tests/trial_helper/service_testing.h"
#include "trial-helper/checkpoint_file.h"
#include "trial-helper/outbox.h"

namespace jizi {
namespace {

// ---- the service is away (docs/contracts.md, 12 and 22) ----

TEST_F(TrialHelper, Contract22NothingIsLostOrDoubledWhileTheServiceIsAway) {
  service_.CreateStudy(1);
  service_.Enter(service_.Suggest());
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Hasty());
    const auto trial = helper.NextTrial();
    int64_t step = 0;
    for (int outage = 0; outage < 3; ++outage) {
      for (int i = 0; i < 20; ++i) {
        ++step;
        trial->Report(step, {{"val", static_cast<double>(step)}});
      }
      service_.Stop();
      for (int i = 0; i < 20; ++i) {
        ++step;
        EXPECT_FALSE(trial->Report(step, {{"val", static_cast<double>(step)}}).should_stop());
        EXPECT_TRUE(trial->Checkpoint(
            step, [](const std::string& path) { std::ofstream(path) << "weights"; }));
      }
      // Kept on disk: what kill -9 would leave.
      EXPECT_TRUE(Eventually([&] {
        const auto kept = helper::ReadOutbox(service_.outbox()).requests;
        return !kept.empty() && kept.back().measurements().rbegin()->step() == step;
      }));
      service_.Start();
    }
  }
  const auto values = service_.ValuesOf(1);
  EXPECT_EQ(values.size(), 120u);
  for (const auto& [step, value] : values) EXPECT_EQ(value, static_cast<double>(step));
  const v1::Trial trial = service_.TrialOf(1);
  EXPECT_EQ(trial.state(), v1::TRIAL_STATE_COMPLETED);
  EXPECT_EQ(trial.checkpoints_size(), 60);
  EXPECT_EQ(std::filesystem::file_size(service_.outbox()), 0u);
}

TEST_F(TrialHelper, Contract22AServiceThatNeverComesBackLeavesTheOutbox) {
  service_.CreateStudy(1);
  service_.Enter(service_.Suggest());
  HelperOptions options = Hasty();
  options.flush_wait_s = 0.2;
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(options);
    auto trial = helper.NextTrial();
    trial->Report(1, {{"val", 1}}).should_stop();
    service_.Stop();
    for (int64_t step = 2; step <= 50; ++step) trial->Report(step, {{"val", 1}});
    trial.reset();
    EXPECT_EQ(helper.NextTrial(), nullptr);
  }
  std::set<int64_t> steps;
  for (const v1::ReportRequest& request : helper::ReadOutbox(service_.outbox()).requests) {
    for (const v1::Measurement& measurement : request.measurements()) {
      steps.insert(measurement.step());
    }
  }
  for (int64_t step = 2; step <= 50; ++step) EXPECT_TRUE(steps.contains(step)) << step;

  // A later process of the same attempt sends it before its own.
  service_.Start();
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
    helper.NextTrial()->Report(51, {{"val", 1}});
  }
  EXPECT_EQ(service_.ValuesOf(1).size(), 51u);
}

TEST_F(TrialHelper, AServiceThatIsAwayAtTheStartDoesNotHoldTheTraining) {
  service_.CreateStudy(1);
  const v1::Assignment assignment = service_.Suggest();
  service_.Enter(assignment);
  service_.Stop();
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Hasty());
    const auto trial = helper.NextTrial();
    ASSERT_NE(trial, nullptr);
    EXPECT_EQ(trial->Get<double>("lr", -1), assignment.trial().params().at("lr").float_value());
    for (int64_t step = 1; step <= 20; ++step) trial->Report(step, {{"val", 1}});
    service_.Start();
  }
  EXPECT_EQ(service_.ValuesOf(1).size(), 20u);
  EXPECT_EQ(service_.TrialOf(1).state(), v1::TRIAL_STATE_COMPLETED);
}

// ---- checkpoints ----

TEST_F(TrialHelper, ARequeuedTrialStartsFromItsCheckpoint) {
  service_.CreateStudy(1);
  const v1::Assignment first = service_.Suggest();
  service_.Enter(first);
  setenv("JIZI_ONE_TRIAL", "1", 1);
  try {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
    const auto trial = helper.NextTrial();
    EXPECT_EQ(trial->WarmStart(), "");
    EXPECT_EQ(trial->StartStep(), 0);
    for (int64_t step = trial->StartStep() + 1; step <= 4; ++step) {
      trial->Report(step, {{"val", 1}});
      if (step == 3) {
        EXPECT_TRUE(trial->Checkpoint(
            step, [](const std::string& path) { std::ofstream(path) << "weights of 3"; }));
      }
    }
    throw std::runtime_error("crash");
  } catch (const std::runtime_error&) {
  }
  v1::ReleaseRequest release;
  *release.mutable_lease() = first.lease();
  v1::AttachRequest attach;
  *attach.mutable_lease() = first.lease();
  attach.set_worker("worker");
  const auto attached =
      service_.client().Call(&v1::TuneService::Stub::Attach, attach, std::chrono::seconds(30));
  ASSERT_TRUE(attached.ok());
  release.set_sequence(attached->next_sequence(0));
  ASSERT_TRUE(service_.client()
                  .Call(&v1::TuneService::Stub::Release, release, std::chrono::seconds(30))
                  .ok());

  service_.Enter(service_.Suggest());
  setenv("JIZI_ONE_TRIAL", "1", 1);
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
    const auto trial = helper.NextTrial();
    EXPECT_EQ(trial->StartStep(), 3);
    std::ifstream file(trial->WarmStart());
    const std::string content((std::istreambuf_iterator<char>(file)),
                              std::istreambuf_iterator<char>());
    EXPECT_EQ(content, "weights of 3");
    for (int64_t step = trial->StartStep() + 1; step <= 5; ++step) {
      trial->Report(step, {{"val", 2}});
    }
  }
  EXPECT_EQ(service_.ValuesOf(1),
            (std::map<int64_t, double>{{1, 1}, {2, 1}, {3, 1}, {4, 2}, {5, 2}}));
  const v1::Checkpoint checkpoint = service_.TrialOf(1).checkpoints(0);
  EXPECT_TRUE(helper::VerifyCheckpoint(service_.folder() + "/trials/000001", checkpoint).ok());
}

TEST_F(TrialHelper, Contract26ACheckpointThatChangedIsNotStartedFrom) {
  service_.CreateStudy(1);
  const v1::Assignment first = service_.Suggest();
  service_.Enter(first);
  setenv("JIZI_ONE_TRIAL", "1", 1);
  try {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
    const auto trial = helper.NextTrial();
    trial->Report(1, {{"val", 1}});
    trial->Checkpoint(1, [](const std::string& path) { std::ofstream(path) << "weights of 1"; });
    throw std::runtime_error("crash");
  } catch (const std::runtime_error&) {
  }
  v1::ReleaseRequest release;
  *release.mutable_lease() = first.lease();
  release.set_sequence(3);
  ASSERT_TRUE(service_.client()
                  .Call(&v1::TuneService::Stub::Release, release, std::chrono::seconds(30))
                  .ok());
  const v1::Assignment second = service_.Suggest();
  ASSERT_TRUE(second.has_warm_start());
  // JIZI_WARM_START names it: the worker looks for a file there, and no more.
  service_.Enter(second);
  setenv("JIZI_ONE_TRIAL", "1", 1);
  std::ofstream(service_.folder() + "/trials/000001/" + second.warm_start().checkpoint().path())
      << "weights of 2";
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
  EXPECT_EQ(helper.NextTrial(), nullptr);
  EXPECT_EQ(service_.TrialOf(1).state(), v1::TRIAL_STATE_FAILED);
  EXPECT_NE(service_.TrialOf(1).end_why().find("not the one that was registered"),
            std::string::npos)
      << service_.TrialOf(1).end_why();
}

TEST_F(TrialHelper, ACheckpointThatCannotBeWrittenLeavesTheTrialAlone) {
  service_.CreateStudy(1);
  service_.Enter(service_.Suggest());
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
    const auto trial = helper.NextTrial();
    EXPECT_TRUE(
        trial->Checkpoint(1, [](const std::string& path) { std::ofstream(path) << "good"; }));
    EXPECT_FALSE(trial->Checkpoint(
        2, [](const std::string&) { throw std::runtime_error("no space left on device"); }));
    EXPECT_FALSE(trial->Checkpoint(2, std::string("/etc/hostname")));
    trial->Report(2, {{"val", 1}});
  }
  const v1::Trial trial = service_.TrialOf(1);
  ASSERT_EQ(trial.checkpoints_size(), 1);
  EXPECT_EQ(trial.checkpoints(0).step(), 1);
  EXPECT_EQ(trial.state(), v1::TRIAL_STATE_COMPLETED);
}

}  // namespace
}  // namespace jizi
