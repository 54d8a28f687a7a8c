// The helper against a real service: the whole way from the program to the file.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/trial_helper/local_service.h"
#include "trial-helper/checkpoint_file.h"
#include "trial-helper/jizi_trial_helper.h"
#include "trial-helper/outbox.h"

namespace jizi {
namespace {

using testing::Eventually;
using testing::LocalService;

class TrialHelper : public ::testing::Test {
 protected:
  void TearDown() override { testing::LeaveEnvironment(); }
  LocalService service_;
};

HelperOptions Patient() {
  HelperOptions options;
  options.report_wait_s = 30;  // Of a slow machine: the answer is waited for.
  options.next_trial_wait_s = 30;
  return options;
}

HelperOptions Hasty() {
  HelperOptions options = Patient();
  options.report_wait_s = 0.05;
  return options;
}

TEST_F(TrialHelper, RunsTrialAfterTrialInOneProcess) {
  service_.CreateStudy(3);
  service_.Enter(service_.Suggest());
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
  int64_t id = 0;
  while (auto trial = helper.NextTrial()) {
    EXPECT_EQ(trial->id(), ++id);
    EXPECT_GE(trial->Get<double>("lr", -1), 0.001);
    EXPECT_GE(trial->Get<int>("layers", -1), 1);
    EXPECT_TRUE(trial->Directory().ends_with("/00000" + std::to_string(id)));
    trial->PlanSteps(5);
    for (int64_t step = 1; step <= 5; ++step) {
      EXPECT_FALSE(trial->Report(step, {{"val", 0.1 * static_cast<double>(step)}}).should_stop());
    }
  }
  EXPECT_EQ(id, 3);
  EXPECT_EQ(service_.StudyNow().counts().completed(), 3);
  EXPECT_EQ(service_.StudyNow().state(), v1::STUDY_STATE_FINISHED);
  for (int64_t trial = 1; trial <= 3; ++trial) {
    EXPECT_EQ(service_.ValuesOf(trial).size(), 5u);
    EXPECT_DOUBLE_EQ(service_.TrialOf(trial).objective(), 0.5);
    EXPECT_EQ(service_.TrialOf(trial).total_steps(), 5);
  }
}

TEST_F(TrialHelper, TakesOneTrialOnlyWhereToldSo) {
  service_.CreateStudy(3);
  service_.Enter(service_.Suggest());
  setenv("JIZI_ONE_TRIAL", "1", 1);
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
  if (auto trial = helper.NextTrial()) trial->Report(1, {{"val", 1}});
  EXPECT_EQ(helper.NextTrial(), nullptr);
  EXPECT_EQ(service_.StudyNow().counts().completed(), 1);
}

TEST_F(TrialHelper, StartedByHandWithAnEndpointAsksForItsTrials) {
  service_.CreateStudy(2);
  setenv("JIZI_ENDPOINT", ("unix:" + service_.folder() + "/s/socket").c_str(), 1);
  setenv("JIZI_STUDY", "study", 1);
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
  int trials = 0;
  while (auto trial = helper.NextTrial()) {
    ++trials;
    trial->Report(1, {{"val", 1}});
  }
  EXPECT_EQ(trials, 2);
  EXPECT_EQ(service_.StudyNow().counts().completed(), 2);
}

TEST_F(TrialHelper, ManyReportsArriveInOrderEachOnce) {
  service_.CreateStudy(1);
  service_.Enter(service_.Suggest());
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment();
    const auto trial = helper.NextTrial();
    ASSERT_NE(trial, nullptr);
    for (int64_t step = 0; step < 3000; ++step) {
      trial->Report(step, {{"val", static_cast<double>(step)}});
    }
  }
  const auto values = service_.ValuesOf(1);
  EXPECT_EQ(values.size(), 3000u);
  for (const auto& [step, value] : values) EXPECT_EQ(value, static_cast<double>(step));
}

TEST_F(TrialHelper, ANotANumberTravelsAndTheTrialIsInfeasible) {
  service_.CreateStudy(1);
  service_.Enter(service_.Suggest());
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment();
    const auto trial = helper.NextTrial();
    trial->Report(1, {{"val", std::numeric_limits<double>::quiet_NaN()}});
  }
  EXPECT_EQ(service_.TrialOf(1).state(), v1::TRIAL_STATE_INFEASIBLE);
}

TEST_F(TrialHelper, FailAndInfeasibleSayWhy) {
  service_.CreateStudy(2);
  service_.Enter(service_.Suggest());
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
  helper.NextTrial()->Fail("no data");
  helper.NextTrial()->Infeasible("too large for the memory");
  EXPECT_EQ(service_.TrialOf(1).state(), v1::TRIAL_STATE_FAILED);
  EXPECT_NE(service_.TrialOf(1).end_why().find("no data"), std::string::npos);
  EXPECT_EQ(service_.TrialOf(2).state(), v1::TRIAL_STATE_INFEASIBLE);
}

TEST_F(TrialHelper, AnExceptionLeavesTheEndToTheWorker) {
  service_.CreateStudy(1);
  service_.Enter(service_.Suggest());
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment();
    try {
      const auto trial = helper.NextTrial();
      trial->Report(1, {{"val", 1}});
      throw std::runtime_error("out of memory");
    } catch (const std::runtime_error&) {
    }
  }
  EXPECT_EQ(service_.TrialOf(1).state(), v1::TRIAL_STATE_RUNNING);
  EXPECT_EQ(service_.ValuesOf(1).size(), 1u);
}

TEST_F(TrialHelper, AProgramThatGoesOnAfterAnExceptionFailsThatTrial) {
  service_.CreateStudy(2);
  service_.Enter(service_.Suggest());
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
  try {
    const auto trial = helper.NextTrial();
    throw std::runtime_error("out of memory");
  } catch (const std::runtime_error&) {
  }
  helper.NextTrial()->Report(1, {{"val", 1}});
  EXPECT_EQ(service_.TrialOf(1).state(), v1::TRIAL_STATE_FAILED);
  EXPECT_EQ(service_.TrialOf(2).state(), v1::TRIAL_STATE_COMPLETED);
}

TEST_F(TrialHelper, ASecondNextTrialWhileOneLivesIsAMistake) {
  service_.CreateStudy(2);
  service_.Enter(service_.Suggest());
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
  const auto trial = helper.NextTrial();
  EXPECT_THROW(helper.NextTrial(), std::logic_error);
  trial->Report(1, {{"val", 1}});
}

TEST_F(TrialHelper, AStepThatGoesBackIsNotSent) {
  service_.CreateStudy(1);
  service_.Enter(service_.Suggest());
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
    const auto trial = helper.NextTrial();
    trial->Report(5, {{"val", 5}});
    EXPECT_FALSE(trial->Report(4, {{"val", 4}}).should_stop());
    trial->Report(5, {{"other", 1}});  // A further metric of the same step.
    trial->Report(6, {{"val", 6}});
  }
  EXPECT_EQ(service_.ValuesOf(1), (std::map<int64_t, double>{{5, 5}, {6, 6}}));
  EXPECT_EQ(service_.TrialOf(1).state(), v1::TRIAL_STATE_COMPLETED);
}

// ---- directives (docs/contracts.md, 21) ----

TEST_F(TrialHelper, Contract21AStopIsObeyedAtItsOwnStep) {
  service_.CreateStudy(2);
  service_.Tell([](const tuner::Measurement& m) -> std::optional<tuner::Directive> {
    if (m.step < 3) return std::nullopt;
    return tuner::Stop{"too slow"};
  });
  service_.Enter(service_.Suggest());
  setenv("JIZI_ONE_TRIAL", "1", 1);
  int64_t last = 0;
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
    const auto trial = helper.NextTrial();
    for (int64_t step = 1; step <= 10; ++step) {
      last = step;
      const ReportResult result = trial->Report(step, {{"val", 1}});
      if (!result.should_stop()) continue;
      EXPECT_EQ(result.why(), "too slow");
      EXPECT_FALSE(result.should_pause());
      break;
    }
  }
  EXPECT_EQ(last, 3);
  EXPECT_EQ(service_.TrialOf(1).state(), v1::TRIAL_STATE_STOPPED);
}

TEST_F(TrialHelper, Contract21ALaterAnswerShowsAtALaterReport) {
  service_.CreateStudy(1);
  std::promise<void> go;
  const std::shared_future<void> went = go.get_future().share();
  service_.Tell([went](const tuner::Measurement& m) -> std::optional<tuner::Directive> {
    if (m.step != 1) return std::nullopt;
    went.wait_for(std::chrono::seconds(60));
    return tuner::Stop{"too slow"};
  });
  service_.Enter(service_.Suggest());
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Hasty());
  const auto trial = helper.NextTrial();
  const ReportResult first = trial->Report(1, {{"val", 1}});
  EXPECT_FALSE(first.should_stop());
  go.set_value();
  int64_t step = 1;
  std::string why;
  EXPECT_TRUE(Eventually([&] {
    const ReportResult later = trial->Report(++step, {{"val", 1}});
    why = later.why();
    return later.should_stop();
  }));
  EXPECT_EQ(why, "too slow");
  EXPECT_FALSE(first.should_stop());  // What a report showed stays.
}

TEST_F(TrialHelper, Contract21ChangesApplyToGet) {
  service_.CreateStudy(1);
  service_.Tell([](const tuner::Measurement& m) -> std::optional<tuner::Directive> {
    if (m.step != 2) return std::nullopt;
    tuner::Continue change;
    change.set["lr"] = 0.5;
    change.why = "warmer";
    return change;
  });
  service_.Enter(service_.Suggest());
  HelperOptions options = Patient();
  options.changeable = {"lr"};
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(options);
  const auto trial = helper.NextTrial();
  EXPECT_TRUE(trial->Report(1, {{"val", 1}}).changes().empty());
  EXPECT_LE(trial->Get<double>("lr", 0), 0.1);
  const auto changes = trial->Report(2, {{"val", 1}}).changes();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0], (std::pair<std::string, std::string>{"lr", "0.5"}));
  EXPECT_EQ(trial->Get<double>("lr", 0), 0.5);
  EXPECT_TRUE(trial->Report(3, {{"val", 1}}).changes().empty());
}

TEST_F(TrialHelper, Contract21RollingBackGoesOnFromTheEarlierStep) {
  service_.CreateStudy(1);
  int told = 0;
  service_.Tell([&](const tuner::Measurement& m) -> std::optional<tuner::Directive> {
    if (m.step != 4 || told++ > 0) return std::nullopt;
    tuner::Continue back;
    back.roll_back_to = 2;
    return back;
  });
  service_.Enter(service_.Suggest());
  HelperOptions options = Patient();
  options.can_roll_back = true;
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(options);
    const auto trial = helper.NextTrial();
    double value = 1;
    bool rolled = false;
    for (int64_t step = 1; step <= 6; ++step) {
      const ReportResult result = trial->Report(step, {{"val", value}});
      if (result.roll_back_to() < 0) continue;
      EXPECT_FALSE(rolled);
      rolled = true;
      EXPECT_EQ(result.roll_back_to(), 2);
      step = result.roll_back_to();
      value = 2;
    }
    EXPECT_TRUE(rolled);
  }
  EXPECT_EQ(service_.ValuesOf(1),
            (std::map<int64_t, double>{{1, 1}, {2, 1}, {3, 2}, {4, 2}, {5, 2}, {6, 2}}));
}

TEST_F(TrialHelper, APausedTrialGoesOnFromItsCheckpoint) {
  service_.CreateStudy(1);
  service_.Tell([](const tuner::Measurement& m) -> std::optional<tuner::Directive> {
    if (m.step != 2 || m.attempt != 1) return std::nullopt;
    return tuner::Pause{"let others run"};
  });
  service_.Enter(service_.Suggest());
  setenv("JIZI_ONE_TRIAL", "1", 1);
  HelperOptions options = Patient();
  options.can_pause = true;
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(options);
    const auto trial = helper.NextTrial();
    trial->Report(1, {{"val", 1}});
    EXPECT_TRUE(trial->Report(2, {{"val", 1}}).should_pause());
    EXPECT_TRUE(
        trial->Checkpoint(2, [](const std::string& path) { std::ofstream(path) << "weights"; }));
  }
  const v1::Trial trial = service_.TrialOf(1);
  EXPECT_EQ(trial.state(), v1::TRIAL_STATE_PAUSED);
  ASSERT_EQ(trial.checkpoints_size(), 1);
  EXPECT_EQ(trial.checkpoints(0).step(), 2);
}

TEST_F(TrialHelper, StoppingTheStudyStopsItsPrograms) {
  service_.CreateStudy(5);
  service_.Enter(service_.Suggest());
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
  auto trial = helper.NextTrial();
  trial->Report(1, {{"val", 1}});
  v1::SetStudyStateRequest request;
  request.set_study("study");
  request.set_state(v1::STUDY_STATE_STOPPED);
  ASSERT_TRUE(service_.client()
                  .Call(&v1::TuneService::Stub::SetStudyState, request, std::chrono::seconds(30))
                  .ok());
  EXPECT_TRUE(trial->Report(2, {{"val", 1}}).should_stop());
  trial.reset();
  EXPECT_EQ(service_.TrialOf(1).state(), v1::TRIAL_STATE_STOPPED);
  EXPECT_EQ(helper.NextTrial(), nullptr);
}

// ---- leases ----

void ReleaseByAnother(LocalService& service, const v1::Lease& lease) {
  v1::ReleaseRequest request;
  *request.mutable_lease() = lease;
  request.set_sequence(1);
  request.set_why("taken away");
  const auto released =
      service.client().Call(&v1::TuneService::Stub::Release, request, std::chrono::seconds(30));
  ASSERT_TRUE(released.ok()) << ForPeople(released.status());
}

TEST_F(TrialHelper, ALostLeaseStopsTheTrialAndTheNextOneComes) {
  service_.CreateStudy(2);
  const v1::Assignment assignment = service_.Suggest();
  service_.Enter(assignment);
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
  auto trial = helper.NextTrial();
  ReleaseByAnother(service_, assignment.lease());
  const ReportResult result = trial->Report(1, {{"val", 1}});
  EXPECT_TRUE(result.should_stop());
  EXPECT_NE(result.why().find("lease"), std::string::npos) << result.why();
  trial.reset();
  int trials = 0;
  while (auto next = helper.NextTrial()) {
    ++trials;
    next->Report(1, {{"val", 1}});
  }
  EXPECT_EQ(trials, 2);  // The released one again, and another.
  EXPECT_EQ(service_.StudyNow().counts().completed(), 2);
}

// That the lease is renewed in time: Contract9 in scripted_test.cc.
TEST_F(TrialHelper, ASilentStepOfSeveralLeasesKeepsTheAttempt) {
  service_.CreateStudy(1);
  service_.Enter(service_.Suggest(/*lease_s=*/1));
  JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(Patient());
  auto trial = helper.NextTrial();
  std::this_thread::sleep_for(std::chrono::seconds(3));
  EXPECT_FALSE(trial->Report(1, {{"val", 1}}).should_stop());
  trial.reset();
  EXPECT_EQ(service_.TrialOf(1).attempts_size(), 1);
  EXPECT_EQ(service_.TrialOf(1).state(), v1::TRIAL_STATE_COMPLETED);
}

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

TEST_F(TrialHelper, ResourcesTravelWithReportsOfTheProgram) {
  service_.CreateStudy(1);
  service_.Enter(service_.Suggest());
  HelperOptions options = Patient();
  options.resources_every_s = 1e-6;
  {
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(options);
    const auto trial = helper.NextTrial();
    for (int64_t step = 1; step <= 3; ++step) {
      trial->Report(step, {{"val", static_cast<double>(step)}}).should_stop();
    }
  }
  const v1::Trial trial = service_.TrialOf(1);
  EXPECT_EQ(trial.objective(), 3);
  ASSERT_EQ(trial.measurements_size(), 3);
  const auto& metrics = trial.measurements(2).metrics();
  EXPECT_GT(metrics.at("jizi/rss_bytes"), 1e6);
  EXPECT_GT(metrics.at("jizi/cpu_s"), 0);
  EXPECT_GT(metrics.at("jizi/steps_per_s"), 0);
}

}  // namespace
}  // namespace jizi
