// What the service orders reaches the program (docs/contracts.md, 21).
#include <gtest/gtest.h>

#include <future>

#include <fstream>

#include "tests/trial_helper/service_testing.h"

namespace jizi {
namespace {

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

}  // namespace
}  // namespace jizi
