// The helper against a real service: the whole way from the program to the file.
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <thread>

#include "tests/trial_helper/service_testing.h"

namespace jizi {
namespace {

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

}  // namespace
}  // namespace jizi
