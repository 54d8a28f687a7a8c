#include "tuner-service/cli/show.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/view_testing.h"
#include "tuner-service/cli/closing.h"
#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

using testing::HasSubstr;

TEST(Show, AReasonThatHoldsTheLastLineOfStderrIsNotSaidTwice) {
  EXPECT_EQ(ReasonLine("exit code 1: boom\nTraceback\nboom"), "exit code 1: boom");
  EXPECT_EQ(ReasonLine("exit code 1"), "exit code 1");
  EXPECT_EQ(ReasonLine(""), "");
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
