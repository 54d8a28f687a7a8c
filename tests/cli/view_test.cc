#include "tuner-service/cli/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  first.mutable_ended()->set_seconds(kStart + 40);
  v1::Trial second = TrialOf(2, v1::TRIAL_STATE_RUNNING, 0.5);
  Report(second, 5, 0.8);
  study.set_best_trial(1);
  study.set_best_objective(0.75);
  study.mutable_counts()->set_completed(1);
  study.mutable_counts()->set_running(1);
  EXPECT_THAT(view.Fold(Change(study, {first, second}, true), At(20)),
              ElementsAre("sweep: 1 trials have ended before"));
  EXPECT_THAT(
      view.Frame(At(20), {100, 24}),
      ElementsAre("sweep | active | 1 of 4 ended | 1 running | 20s | about 1m 40s left",
                  "best  #1  val_accuracy 0.75  lr=0.25",
                  "    #2  [=====>    ]  step 5/10       val_accuracy 0.8  20s  ETA 20s  lr=0.5"));
}

TEST(LiveView, NoLineIsWiderThanTheTerminalAndNoFrameIsHigher) {
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
    EXPECT_LT(frame.size(), std::max<size_t>(5, size.rows));
    for (const std::string& line : frame)
      EXPECT_LE(Width(line), std::max<size_t>(1, size.columns - 1)) << line;
  }
  EXPECT_EQ(view.Frame(At(10), {80, 24}).back(), "        and 480 more running");
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
  trial.mutable_ended()->set_seconds(kStart + 60);
  study.set_best_trial(1);
  EXPECT_THAT(view.Fold(Change(study, {trial}), At(60)),
              ElementsAre("trial 1 completed  val_accuracy 0.3  in 1m 00s  best so far  lr=0.5"));
  study.set_state(v1::STUDY_STATE_FINISHED);
  study.set_state_why("run_cap of 1 reached");
  EXPECT_THAT(view.Fold(Change(study, {}), At(61)),
              ElementsAre("sweep is finished: run_cap of 1 reached"));
}

TEST(LiveView, AFailureShowsItsReasonAndTheLastLineOfStderrOnOneLine) {
  LiveView view(LiveView::Lines::kEnds);
  v1::Study study = StudyOf(4);
  view.Fold(Change(study, {}, true), At(0));
  v1::Trial trial = TrialOf(3, v1::TRIAL_STATE_FAILED, 0.5);
  trial.set_end_why("exit code 1\nTraceback\n  x\nValueError: \x1b[2Jboom\n\n");
  EXPECT_THAT(view.Fold(Change(study, {trial}), At(1)),
              ElementsAre("trial 3 failed  lr=0.5  exit code 1: ValueError: ?[2Jboom"));
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
  good.mutable_ended()->set_seconds(kStart + 40);
  Report(good, 10, 0.75);
  EXPECT_EQ(TrialsTable(study.spec(), {good}, 0),
            "trial  state      val_accuracy   step  time    lr\n"
            "    1  completed          0.75  10/10   40s  0.25\n");
  v1::Trial bad = TrialOf(2, v1::TRIAL_STATE_FAILED, 0.5);
  bad.set_end_why("exit code 1\nboom");
  EXPECT_EQ(TrialsTable(study.spec(), {bad}, 0),
            "trial  state   val_accuracy  step  time   lr  why\n"
            "    2  failed                            0.5  exit code 1 boom\n");
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
