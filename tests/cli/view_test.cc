#include "tuner-service/cli/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "tests/cli/view_testing.h"
#include "tuner-service/cli/closing.h"
#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(LiveView, AFrameShowsStateBestAndRunningTrials) {
  LiveView view(LiveView::Lines::kEnds);
  v1::Study study = StudyOf(4);
  v1::Trial first = TrialOf(1, v1::TRIAL_STATE_COMPLETED, 0.25);
  first.set_objective(0.75);
  EndAt(first, 40);
  v1::Trial second = TrialOf(2, v1::TRIAL_STATE_RUNNING, 0.5);
  Report(second, 5, 0.8);
  study.set_best_trial(1);
  study.set_best_objective(0.75);
  study.mutable_counts()->set_completed(1);
  study.mutable_counts()->set_running(1);
  EXPECT_THAT(view.Fold(Change(study, {first, second}, true), At(20)),
              ElementsAre("sweep: 1 trial has ended before"));
  EXPECT_THAT(
      view.Frame(At(20), {101, 24}),
      ElementsAre("sweep | active | 1 of 4 ended | 1 running | 20s | about 1m 40s left",
                  "best  #1  val_accuracy 0.75  lr=0.25",
                  "  #2  [=====>    ]  step 5/10   val_accuracy 0.8            20s  ETA     "
                  "20s  lr=0.5"));
}

// The service sends the spec where it is new, and not with each change.

TEST(LiveView, AChangeWithoutTheSpecKeepsIt) {
  LiveView view(LiveView::Lines::kEnds);
  v1::Study study = StudyOf(4);
  view.Fold(Change(study, {}, true), At(0));
  study.clear_spec();
  study.mutable_counts()->set_completed(1);
  view.Fold(Change(study, {}), At(10));
  EXPECT_THAT(view.Frame(At(10), {100, 24}).front(),
              testing::StartsWith("sweep | active | 1 of 4"));
}

TEST(LiveView, NoLineIsWiderThanTheTerminalAndNoFrameIsHigherThanHalfOfIt) {
  LiveView view(LiveView::Lines::kEnds);
  v1::Study study = StudyOf(600);
  study.mutable_spec()->set_name("参数" + std::string(100, 'x'));
  std::vector<v1::Trial> trials;
  for (int id = 1; id <= 500; ++id) {
    trials.push_back(TrialOf(id, v1::TRIAL_STATE_RUNNING, 1.0 / id));
    if (id % 2 == 0) Report(trials.back(), id % 11, 0.5);
  }
  study.mutable_counts()->set_running(500);
  view.Fold(Change(study, trials, true), At(5));
  for (const ScreenSize size :
       {ScreenSize{80, 24}, ScreenSize{200, 50}, ScreenSize{20, 5}, ScreenSize{1, 1}}) {
    const auto frame = view.Frame(At(10), size);
    EXPECT_LE(frame.size(), std::max<size_t>(3, size.rows / 2));
    for (const std::string& line : frame)
      EXPECT_LE(Width(line), std::max<size_t>(1, size.columns - 1)) << line;
  }
  EXPECT_EQ(view.Frame(At(10), {80, 24}).back(), "... and 491 more running");
}

TEST(LiveView, PlainLinesSayStartsProgressAndEnds) {
  LiveView view(LiveView::Lines::kProgress);
  v1::Study study = StudyOf(4);
  EXPECT_THAT(view.Fold(Change(study, {}, true), At(0)), IsEmpty());
  v1::Trial trial = TrialOf(1, v1::TRIAL_STATE_RUNNING, 0.5);
  EXPECT_THAT(view.Fold(Change(study, {trial}), At(0)), ElementsAre("trial 1 started  lr=0.5"));
  Report(trial, 1, 0.1);
  EXPECT_THAT(view.Fold(Change(study, {trial}), At(2)), IsEmpty());  // Throttled.
  Report(trial, 2, 0.2);
  EXPECT_THAT(view.Fold(Change(study, {trial}), At(11)),
              ElementsAre("trial 1 step 2/10  val_accuracy 0.2  ETA 44s"));
  trial.set_state(v1::TRIAL_STATE_COMPLETED);
  trial.set_objective(0.3);
  EndAt(trial, 60);
  study.set_best_trial(1);
  EXPECT_THAT(view.Fold(Change(study, {trial}), At(60)),
              ElementsAre("trial 1 completed  val_accuracy 0.3  in 1m 00s  best so far  lr=0.5"));
  study.set_state(v1::STUDY_STATE_PAUSED);
  study.set_state_why("by a person");
  EXPECT_THAT(view.Fold(Change(study, {}), At(61)), ElementsAre("sweep is paused: by a person"));
  // The outcome says it, once.
  study.set_state(v1::STUDY_STATE_FINISHED);
  EXPECT_THAT(view.Fold(Change(study, {}), At(62)), IsEmpty());
}

TEST(LiveView, AFailureShowsItsReasonAndTheLastLineOfStderrOnOneLine) {
  LiveView view(LiveView::Lines::kEnds);
  v1::Study study = StudyOf(4);
  view.Fold(Change(study, {}, true), At(0));
  v1::Trial trial = TrialOf(3, v1::TRIAL_STATE_FAILED, 0.5);
  trial.set_end_why("exit code 1\nTraceback\n  x\nValueError: \x1b[2Jboom\n   ^^^^~~\n\n");
  EndAt(trial, 1, v1::ATTEMPT_END_FAILED);
  EXPECT_THAT(view.Fold(Change(study, {trial}), At(1)),
              ElementsAre("trial 3 failed  in 1.0s  exit code 1: ValueError: ?[2Jboom  lr=0.5"));
  EXPECT_THAT(view.Fold(Change(study, {trial}), At(1), 80),
              ElementsAre("trial  3 failed      in    1.0s  exit code 1: ValueError: ?[2Jboom  "
                          "lr=0.5"));
}

TEST(LiveView, AFailedAttemptThatIsTriedAgainIsToldOnce) {
  LiveView view(LiveView::Lines::kEnds);
  v1::Study study = StudyOf(4);
  v1::Trial trial = TrialOf(3, v1::TRIAL_STATE_RUNNING, 0.5);
  view.Fold(Change(study, {trial}, true), At(0));
  EndAt(trial, 1, v1::ATTEMPT_END_FAILED);
  trial.clear_ended();
  trial.mutable_attempts(0)->set_why("exit code 1: boom");
  v1::Trial queued = trial;
  queued.set_state(v1::TRIAL_STATE_QUEUED);
  NextAttempt(trial, 2);
  const char* const line = "trial 3 failed and is tried again: exit code 1: boom";
  LiveView fast = view;  // Hears only of the next attempt.
  EXPECT_THAT(view.Fold(Change(study, {queued}), At(1)), ElementsAre(line));
  EXPECT_THAT(view.Fold(Change(study, {trial}), At(2)), IsEmpty());
  EXPECT_THAT(fast.Fold(Change(study, {trial}), At(2)), ElementsAre(line));
  EXPECT_THAT(fast.Fold(Change(study, {trial}), At(3)), IsEmpty());
}

TEST(LiveView, TimesLeaveOutWhenNothingRan) {
  LiveView view(LiveView::Lines::kEnds);
  v1::Study study = StudyOf(4);
  v1::Trial trial = TrialOf(1, v1::TRIAL_STATE_RUNNING, 0.5);
  EndAt(trial, 10, v1::ATTEMPT_END_RELEASED);
  trial.clear_ended();
  NextAttempt(trial, 1000, 4);
  Report(trial, 7, 0.5);
  view.Fold(Change(study, {trial}, true), At(1005));
  EXPECT_EQ(view.TimeRunning(At(1005)).count(), 15);
  // 3 of its steps took 5 s, so 3 more take 5; the next three trials take 20 s each.
  EXPECT_EQ(view.TimeLeft(At(1005))->count(), 65);
  trial.set_state(v1::TRIAL_STATE_COMPLETED);
  trial.set_objective(0.5);
  EndAt(trial, 1010);
  EXPECT_EQ(TimeRun(trial, At(5000)).count(), 20);
  EXPECT_THAT(view.Fold(Change(study, {trial}), At(1010)),
              ElementsAre("trial 1 completed  val_accuracy 0.5  in 20s  lr=0.5"));
  EXPECT_EQ(view.TimeRunning(At(9000)).count(), 20);
}

TEST(LiveView, TheTimeLeftIsNeverBelowThatOfARunningTrial) {
  LiveView view(LiveView::Lines::kEnds);
  v1::Study study = StudyOf(5);
  std::vector<v1::Trial> trials;
  for (int id = 1; id <= 4; ++id) {
    trials.push_back(TrialOf(id, v1::TRIAL_STATE_RUNNING, 0.5));
    Report(trials.back(), id == 1 ? 1 : 5, 0.5);
  }
  view.Fold(Change(study, trials, true), At(10));
  // 90 s for the first, 10 s for the others, then one of (100 + 3 * 20) / 4 = 40 s.
  EXPECT_EQ(view.TimeLeft(At(10))->count(), 90);
  study.mutable_spec()->mutable_budget()->set_run_cap(8);
  view.Fold(Change(study, trials, true), At(10));
  EXPECT_EQ(view.TimeLeft(At(10))->count(), 90);  // The other three workers do them.
}

TEST(LiveView, AnEqualResultIsNoNewBest) {
  LiveView view(LiveView::Lines::kEnds);
  v1::Study study = StudyOf(4);
  study.set_best_trial(1);
  study.set_best_objective(0.5);
  view.Fold(Change(study, {}, true), At(0));
  v1::Trial trial = TrialOf(2, v1::TRIAL_STATE_COMPLETED, 0.5);
  trial.set_objective(0.5);
  study.set_best_trial(2);
  EXPECT_THAT(view.Fold(Change(study, {trial}), At(1)),
              ElementsAre(testing::Not(HasSubstr("best so far"))));
  trial.set_id(3);
  trial.set_objective(0.6);
  study.set_best_trial(3);
  study.set_best_objective(0.6);
  EXPECT_THAT(view.Fold(Change(study, {trial}), At(1)), ElementsAre(HasSubstr("best so far")));
}

TEST(LiveView, LinesOfEndsStandInColumnsAndAreCutAtTheWidth) {
  LiveView view(LiveView::Lines::kEnds);
  v1::Study study = StudyOf(400);
  auto* momentum = study.mutable_spec()->add_parameters();
  momentum->set_name("momentum");
  momentum->mutable_numeric()->mutable_uniform()->set_max(1);
  std::vector<v1::Trial> trials;
  for (int id : {9, 10, 111}) {
    trials.push_back(TrialOf(id, v1::TRIAL_STATE_COMPLETED, id == 9 ? 0.123456 : 0.5));
    (*trials.back().mutable_params())["momentum"].set_float_value(0.9);
    trials.back().set_objective(id == 9 ? 0.91 : 0.912345);
    EndAt(trials.back(), id);
  }
  view.Fold(Change(study, {}, true), At(0));
  const auto wide = view.Fold(Change(study, trials), At(200), 200);
  for (const char* part : {"val_accuracy", "in ", "lr=", "momentum="}) {
    for (const std::string& line : wide) EXPECT_EQ(line.find(part), wide[0].find(part)) << line;
  }
  for (size_t columns = 1; columns < 130; ++columns) {
    for (const std::string& line : view.Fold(Change(study, trials), At(200), columns)) {
      EXPECT_LT(Width(line), columns);
    }
  }
  // A parameter is shown whole or not at all.
  EXPECT_THAT(view.Fold(Change(study, {trials[1]}), At(200), 78),
              ElementsAre(testing::EndsWith("lr=0.5 …")));
}

TEST(LiveView, NothingMovesInARowFromFrameToFrame) {
  LiveView view(LiveView::Lines::kEnds);
  v1::Study study = StudyOf(4);
  v1::Trial trial = TrialOf(2, v1::TRIAL_STATE_RUNNING, 0.5);
  std::set<size_t> places;
  for (const auto& [step, value, seconds] :
       {std::tuple{1, 0.5, 3}, {2, 0.123457, 4}, {9, -1.5e-05, 75}, {10, 0.1, 3000}}) {
    Report(trial, step, value);
    view.Fold(Change(study, {trial}), At(seconds));
    for (const size_t columns : {81, 201}) {
      places.insert(columns * 1000 + view.Frame(At(seconds), {columns, 24})[2].find("lr="));
    }
  }
  EXPECT_EQ(places.size(), 2u);
}

TEST(LiveView, ALongNameLeavesRoomForWhatChanges) {
  LiveView view(LiveView::Lines::kEnds);
  v1::Study study = StudyOf(4);
  study.mutable_spec()->set_name(std::string(100, 'x'));
  v1::Trial trial = TrialOf(2, v1::TRIAL_STATE_RUNNING, 0.5);
  Report(trial, 5, 0.5);
  study.mutable_counts()->set_failed(1);
  study.mutable_counts()->set_running(1);
  view.Fold(Change(study, {trial}, true), At(10));
  EXPECT_THAT(view.Frame(At(10), {80, 24})[0],
              testing::EndsWith("… | active | 1 of 4 ended | 1 failed | 1 running | 10s | about "
                                "50s left"));
}

TEST(LiveView, NoLineCanMoveTheCursor) {
  LiveView view(LiveView::Lines::kProgress);
  v1::Study study = StudyOf(4);
  study.mutable_spec()->set_name("s\x1b[2J");
  study.mutable_spec()->mutable_metrics(0)->set_name("m\x1b[2J");
  study.mutable_spec()->mutable_parameters(0)->set_name("l\nr");
  study.set_best_trial(1);
  study.set_best_objective(0.5);
  view.Fold(Change(study, {}, true), At(0));
  v1::Trial trial = TrialOf(1, v1::TRIAL_STATE_RUNNING, 0.5);
  (*trial.mutable_params())["l\nr"].set_string_value("a\x1b[2J\nb");
  std::vector<std::string> lines = view.Fold(Change(study, {trial}), At(1));
  for (const std::string& line : view.Frame(At(1), {80, 24})) lines.push_back(line);
  EXPECT_GT(lines.size(), 3u);
  for (const std::string& line : lines) EXPECT_EQ(Printable(line), line);
  for (const std::string& line : lines) EXPECT_EQ(line.find('\n'), std::string::npos) << line;
}

TEST(LiveView, AReleasedTrialIsSaid) {
  LiveView view(LiveView::Lines::kEnds);
  v1::Study study = StudyOf(4);
  v1::Trial trial = TrialOf(3, v1::TRIAL_STATE_RUNNING, 0.5);
  view.Fold(Change(study, {trial}, true), At(0));
  trial.set_state(v1::TRIAL_STATE_QUEUED);
  EXPECT_THAT(view.Fold(Change(study, {trial}), At(1)), ElementsAre("trial 3 is queued again"));
  EXPECT_EQ(view.Frame(At(1), {80, 24}).size(), 2u);
}

TEST(LiveView, ColoursOnlyWhenAsked) {
  LiveView plain(LiveView::Lines::kEnds);
  LiveView coloured(LiveView::Lines::kEnds, {true});
  for (LiveView* view : {&plain, &coloured}) view->Fold(Change(StudyOf(4), {}, true), At(0));
  EXPECT_THAT(plain.Frame(At(0), {80, 24})[0], testing::Not(HasSubstr("\x1b")));
  EXPECT_THAT(coloured.Frame(At(0), {80, 24})[0], HasSubstr("\x1b[1m"));
}

TEST(LiveView, ProgressBars) {
  EXPECT_EQ(ProgressBar(0, 6), "[>   ]");
  EXPECT_EQ(ProgressBar(0.5, 6), "[==> ]");
  EXPECT_EQ(ProgressBar(1, 6), "[====]");
  EXPECT_EQ(ProgressBar(7, 2), "[]");
}

}  // namespace
}  // namespace jizi::tuner
