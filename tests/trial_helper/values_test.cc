// Values that the service does not take: each costs itself alone, also where reports are batched.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "tests/trial_helper/local_service.h"
#include "trial-helper/jizi_trial_helper.h"

namespace jizi {
namespace {

using jizi::testing::LocalService;

class TrialHelperValues : public ::testing::Test {
 protected:
  void SetUp() override {
    service_.CreateStudy(1);
    service_.Enter(service_.Suggest());
  }
  void TearDown() override { testing::LeaveEnvironment(); }

  // The one trial of a program that does this.
  v1::Trial After(const std::function<void(Trial&)>& work) {
    HelperOptions options;
    options.report_wait_s = 30;  // Of a slow machine: the answer is waited for.
    JiziTrialHelper helper = JiziTrialHelper::FromEnvironment(options);
    work(*helper.NextTrial());
    return service_.TrialOf(1);
  }

  LocalService service_;
};

TEST_F(TrialHelperValues, ABadNameCostsItselfAlone) {
  const v1::Trial trial = After([](Trial& run) {
    run.Report(1, {{"val", 1}, {"", 2}});
    run.Report(2, {{"val", 2}, {"a\tb", 2}, {std::string(257, 'x'), 2}});
    run.Report(3, {{"caf\xE9", 2}, {"val", 3}, {std::string(256, 'x'), 4}});
  });
  EXPECT_EQ(trial.state(), v1::TRIAL_STATE_COMPLETED);
  EXPECT_EQ(service_.ValuesOf(1), (std::map<int64_t, double>{{1, 1}, {2, 2}, {3, 3}}));
  EXPECT_EQ(trial.measurements(2).metrics().size(), 2U);
}

TEST_F(TrialHelperValues, AThousandMetricsAreTakenAndWhatIsMoreIsLeftOut) {
  After([](Trial& run) {
    Metrics metrics = {{"val", 1}};
    for (int i = 0; i < 1500; ++i) metrics.emplace_back("m" + std::to_string(i), i);
    run.Report(1, metrics);
    run.Report(2, {{"val", 2}});
  });
  EXPECT_EQ(service_.TrialOf(1).measurements(0).metrics().size(), 1000U);
  EXPECT_EQ(service_.ValuesOf(1), (std::map<int64_t, double>{{1, 1}, {2, 2}}));
}

TEST_F(TrialHelperValues, GradientStatisticsOfNoBatchCostThemselvesAlone) {
  const v1::Trial trial = After([](Trial& run) {
    run.Report(1, {{"val", 1}}, 2, 1, 0, 64);
    run.Report(2, {{"val", 2}}, 2, 1, 32, 64);
  });
  EXPECT_EQ(service_.ValuesOf(1), (std::map<int64_t, double>{{1, 1}, {2, 2}}));
  EXPECT_FALSE(trial.measurements(0).has_gradient());
  EXPECT_TRUE(trial.measurements(1).has_gradient());
}

TEST_F(TrialHelperValues, APlanOfLessThanNoStepsIsNone) {
  const v1::Trial trial = After([](Trial& run) {
    run.PlanSteps(-1);
    run.Report(1, {{"val", 1}});
  });
  EXPECT_EQ(service_.ValuesOf(1), (std::map<int64_t, double>{{1, 1}}));
  EXPECT_FALSE(trial.has_total_steps());
}

TEST_F(TrialHelperValues, AReasonThatIsNoUtf8StillFailsTheTrial) {
  const v1::Trial trial = After([](Trial& run) {
    run.Report(1, {{"val", 1}});
    run.Fail("cannot open caf\xE9.csv");
  });
  EXPECT_EQ(trial.state(), v1::TRIAL_STATE_FAILED);
  EXPECT_NE(trial.end_why().find("cannot open caf?.csv"), std::string::npos);
}

}  // namespace
}  // namespace jizi
