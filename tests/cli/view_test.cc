#include "tuner-service/cli/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "tuner-service/cli/closing.h"
#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kStart = 1'000'000;

WallTime At(int64_t seconds) {
  return WallTime(std::chrono::seconds(kStart + seconds));
}

v1::Study StudyOf(int64_t run_cap) {
  v1::Study study;
  study.mutable_spec()->set_name("sweep");
  auto* metric = study.mutable_spec()->add_metrics();
  metric->set_name("val_accuracy");
  metric->set_goal(v1::GOAL_MAXIMIZE);
  auto* lr = study.mutable_spec()->add_parameters();
  lr->set_name("lr");
  lr->mutable_numeric()->mutable_uniform()->set_max(1);
  auto* constant = study.mutable_spec()->add_parameters();
  constant->set_name("epochs");
  constant->mutable_constant()->mutable_value()->set_int_value(10);
  study.mutable_spec()->mutable_budget()->set_run_cap(run_cap);
  study.set_state(v1::STUDY_STATE_ACTIVE);
  study.mutable_created()->set_seconds(kStart);
  return study;
}

v1::Trial TrialOf(int64_t id, v1::TrialState state, double lr) {
  v1::Trial trial;
  trial.set_id(id);
  trial.set_state(state);
  (*trial.mutable_params())["lr"].set_float_value(lr);
  (*trial.mutable_params())["epochs"].set_int_value(10);
  trial.mutable_started()->set_seconds(kStart);
  auto* attempt = trial.add_attempts();
  attempt->set_number(1);
  attempt->mutable_started()->set_seconds(kStart);
  return trial;
}

void EndAt(v1::Trial& trial, int64_t seconds, v1::AttemptEnd end = v1::ATTEMPT_END_FINISHED) {
  auto* attempt = trial.mutable_attempts(trial.attempts_size() - 1);
  attempt->set_end(end);
  attempt->mutable_ended()->set_seconds(kStart + seconds);
  trial.mutable_ended()->set_seconds(kStart + seconds);
}

void NextAttempt(v1::Trial& trial, int64_t seconds, int64_t start_step = 0) {
  auto* attempt = trial.add_attempts();
  attempt->set_number(trial.attempts_size());
  attempt->mutable_started()->set_seconds(kStart + seconds);
  attempt->set_start_step(start_step);
}

void Report(v1::Trial& trial, int64_t step, double accuracy) {
  trial.set_total_steps(10);
  trial.mutable_last_measurement()->set_step(step);
  (*trial.mutable_last_measurement()->mutable_metrics())["val_accuracy"] = accuracy;
}

v1::WatchStudyResponse Change(const v1::Study& study, const std::vector<v1::Trial>& trials,
                              bool snapshot = false) {
  v1::WatchStudyResponse change;
  *change.mutable_study() = study;
  for (const v1::Trial& trial : trials) *change.add_trials() = trial;
  change.set_snapshot(snapshot);
  return change;
}

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

TEST(Show, AReasonThatHoldsTheLastLineOfStderrIsNotSaidTwice) {
  EXPECT_EQ(ReasonLine("exit code 1: boom\nTraceback\nboom"), "exit code 1: boom");
  EXPECT_EQ(ReasonLine("exit code 1"), "exit code 1");
  EXPECT_EQ(ReasonLine(""), "");
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

TEST(Show, TrialsTableLeavesConstantsOutAndSaysWhy) {
  v1::Study study = StudyOf(4);
  v1::Trial good = TrialOf(1, v1::TRIAL_STATE_COMPLETED, 0.25);
  good.set_objective(0.75);
  EndAt(good, 40);
  Report(good, 10, 0.75);
  EXPECT_EQ(TrialsTable(study.spec(), {good}, At(50), 0),
            "trial  state      val_accuracy   step  time    lr\n"
            "    1  completed          0.75  10/10   40s  0.25\n");
  v1::Trial bad = TrialOf(2, v1::TRIAL_STATE_FAILED, 0.5);
  bad.set_end_why("exit code 1\nTraceback:\nboom\n");
  EndAt(bad, 2, v1::ATTEMPT_END_FAILED);
  EXPECT_EQ(TrialsTable(study.spec(), {bad}, At(50), 0),
            "trial  state   val_accuracy  step  time   lr  why\n"
            "    2  failed                      2.0s  0.5  exit code 1: boom\n");
  const v1::Trial running = TrialOf(3, v1::TRIAL_STATE_RUNNING, 0.5);
  EXPECT_THAT(TrialsTable(study.spec(), {running}, At(50), 0), HasSubstr("50s"));
}

TEST(Show, ATrialInFullShowsTheLastMeasurementsBeforeTheCheckpoints) {
  v1::Study study = StudyOf(4);
  v1::Trial trial = TrialOf(1, v1::TRIAL_STATE_COMPLETED, 0.25);
  EndAt(trial, 40);
  for (int step = 1; step <= 25; ++step) {
    v1::Measurement* measurement = trial.add_measurements();
    measurement->set_step(step);
    (*measurement->mutable_metrics())["loss"] = 1.5;
    (*measurement->mutable_metrics())["val_accuracy"] = step / 100.0;
    trial.add_checkpoints()->set_step(step);
  }
  trial.set_checkpoint_count(30);
  const std::string text = TrialInFull(study.spec(), trial, At(99), 0);
  EXPECT_THAT(text, HasSubstr("ran         40s\n"));
  const size_t measurements = text.find(
      "... 15 more measurements before these: --json, or jizi export --format json\n"
      "step  loss  val_accuracy\n  16   1.5          0.16\n");
  const size_t checkpoints = text.find("... 20 more checkpoints before these");
  EXPECT_LT(measurements, checkpoints);
  EXPECT_NE(checkpoints, std::string::npos);
}

TEST(Show, JsonHasTheProtosNamesAndNanAsText) {
  v1::Trial trial = TrialOf(1, v1::TRIAL_STATE_INFEASIBLE, 0.25);
  trial.set_objective(std::nan(""));
  const std::string json = Json(trial);
  EXPECT_THAT(json, HasSubstr("\"objective\":\"NaN\""));
  EXPECT_THAT(json, HasSubstr("\"end_why\":\"\""));
  EXPECT_THAT(json, HasSubstr("\"float_value\":0.25"));
  EXPECT_EQ(json.find('\n'), std::string::npos);
}

TEST(Show, JsonOfEqualMessagesIsEqualAndInOrder) {
  v1::Trial forwards;
  v1::Trial backwards;
  for (int i = 0; i < 40; ++i) {
    (*forwards.mutable_params())["p" + std::to_string(10 + i)].set_int_value(1);
    (*backwards.mutable_params())["p" + std::to_string(49 - i)].set_int_value(1);
  }
  const std::string json = Json(forwards);
  EXPECT_EQ(json, Json(backwards));
  size_t last = 0;
  for (int i = 0; i < 40; ++i) {
    const size_t place = json.find("\"p" + std::to_string(10 + i) + "\"");
    EXPECT_LT(last, place);
    last = place;
  }
  EXPECT_LT(json.find("\"id\""), json.find("\"params\""));
  EXPECT_LT(json.find("\"params\""), json.find("\"end_why\""));
}

TEST(Closing, NamesTheCommandsThatWorkWhateverTheFileIsCalled) {
  v1::Study study = StudyOf(4);
  study.mutable_spec()->set_name("my study");
  study.set_state(v1::STUDY_STATE_STOPPED);
  const ClosingWords words = {"/d/x.db", " --db /d/x.db", "jizi run x.yaml --resume"};
  const std::string text = Closing(study, nullptr, nullptr, words);
  EXPECT_THAT(text, HasSubstr("everything is in /d/x.db\n"));
  EXPECT_THAT(text, HasSubstr("jizi trials 'my study' --db /d/x.db\n"));
  EXPECT_THAT(text, HasSubstr("to go on: jizi run x.yaml --resume\n"));
}

TEST(Closing, OneTrialIsNotMany) {
  v1::Study study = StudyOf(1);
  study.set_state(v1::STUDY_STATE_FINISHED);
  study.mutable_counts()->set_completed(1);
  v1::Trial best = TrialOf(1, v1::TRIAL_STATE_COMPLETED, 0.5);
  best.set_objective(0.75);
  EndAt(best, 12);
  const std::string text = OutcomeText(study, &best, nullptr, "");
  EXPECT_THAT(text, testing::StartsWith("best trial  1  val_accuracy 0.75  in 12s\n"));
  EXPECT_THAT(text, testing::EndsWith("sweep is finished; 1 trial has ended\n"));
}

TEST(Closing, WhereEveryTrialFailedItSaysWhyAndWhereTheRestIs) {
  v1::Study study = StudyOf(2);
  study.set_state(v1::STUDY_STATE_FINISHED);
  study.mutable_counts()->set_failed(2);
  EXPECT_TRUE(AllFailed(study));
  v1::Trial trial = TrialOf(2, v1::TRIAL_STATE_FAILED, 0.5);
  trial.set_end_why("exit code 3\nfirst\nModuleNotFoundError: no module");
  const std::string text =
      Closing(study, nullptr, &trial, {"/d/sweep.db", " --db /d/sweep.db", "jizi run s.yaml"});
  EXPECT_THAT(text, HasSubstr("trial 2: exit code 3: ModuleNotFoundError: no module\n"));
  EXPECT_THAT(text, HasSubstr("jizi show sweep 2 --db /d/sweep.db\n"));
  EXPECT_THAT(text, HasSubstr("jizi retry sweep --db /d/sweep.db, then jizi run s.yaml\n"));
  study.mutable_counts()->set_completed(1);
  EXPECT_FALSE(AllFailed(study));
}

TEST(Show, CsvHasOneRowATrial) {
  v1::Study study = StudyOf(4);
  v1::Trial trial = TrialOf(1, v1::TRIAL_STATE_COMPLETED, 0.1);
  trial.set_objective(0.75);
  Report(trial, 10, 0.75);
  trial.set_end_why("a, \"b\"");
  EXPECT_EQ(TrialsCsv(study.spec(), {trial}),
            "trial,state,objective,last_step,attempts,param.lr,param.epochs,metric.val_accuracy,"
            "created,started,ended,end_why\r\n"
            "1,completed,0.75,10,1,0.1,10,0.75,,1970-01-12 13:46:40,,\"a, \"\"b\"\"\"\r\n");
}

}  // namespace
}  // namespace jizi::tuner
