#include "schedulers/model/study.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

Trial Measured(const std::vector<double>& losses) {
  Trial trial;
  for (const double loss : losses) {
    Measurement measurement;
    measurement.step = static_cast<int64_t>(trial.measurements.size());
    measurement.metrics = {{"loss", loss}};
    trial.measurements.push_back(measurement);
  }
  Measurement other;  // The last report need not carry the metric.
  other.step = 1000;
  other.metrics = {{"throughput", 5.0}};
  trial.measurements.push_back(other);
  return trial;
}

StudySpec Spec(ObjectiveKind kind, int last_k = 1, Goal goal = Goal::kMinimize) {
  StudySpec spec = SpecOf({{Real("x", 0, 1)}}, "random");
  spec.metrics[0].goal = goal;
  spec.objective = {kind, last_k};
  return spec;
}

TEST(StudyObjective, IsTheLastTheBestOrTheMeanOfTheLast) {
  const Trial trial = Measured({3, 1, 2, 4});
  EXPECT_EQ(ObjectiveOf(Spec(ObjectiveKind::kLast), trial), 4);
  EXPECT_EQ(ObjectiveOf(Spec(ObjectiveKind::kBest), trial), 1);
  EXPECT_EQ(ObjectiveOf(Spec(ObjectiveKind::kBest, 1, Goal::kMaximize), trial), 4);
  EXPECT_EQ(ObjectiveOf(Spec(ObjectiveKind::kMeanOfLast, 2), trial), 3);
  EXPECT_EQ(ObjectiveOf(Spec(ObjectiveKind::kMeanOfLast, 100), trial), 2.5);
}

TEST(StudyObjective, IsEmptyWithoutAMetricOrAMeasurementOfIt) {
  EXPECT_EQ(ObjectiveOf(Spec(ObjectiveKind::kLast), Measured({})), std::nullopt);
  EXPECT_EQ(ObjectiveOf(Spec(ObjectiveKind::kBest), Trial{}), std::nullopt);
  StudySpec none = Spec(ObjectiveKind::kLast);
  none.metrics.clear();
  EXPECT_EQ(ObjectiveOf(none, Measured({1})), std::nullopt);
}

TEST(StudyObjective, BestPassesOverNanAndInfinityAndALastOneShows) {
  EXPECT_EQ(ObjectiveOf(Spec(ObjectiveKind::kBest), Measured({3, -kInf, kNan, 2, kInf})), 2);
  EXPECT_TRUE(std::isnan(ObjectiveOf(Spec(ObjectiveKind::kBest), Measured({kNan})).value()));
  EXPECT_TRUE(std::isnan(ObjectiveOf(Spec(ObjectiveKind::kLast), Measured({1, kNan})).value()));
  EXPECT_TRUE(
      std::isnan(ObjectiveOf(Spec(ObjectiveKind::kMeanOfLast, 2), Measured({1, kNan})).value()));
  EXPECT_EQ(ObjectiveOf(Spec(ObjectiveKind::kMeanOfLast, 2), Measured({1.5e308, 1.5e308})),
            1.5e308);
}

TEST(StudyIsBetter, FollowsTheGoalAndNanIsNeverBetter) {
  EXPECT_TRUE(IsBetter(Goal::kMinimize, 1, 2));
  EXPECT_FALSE(IsBetter(Goal::kMinimize, 2, 2));
  EXPECT_TRUE(IsBetter(Goal::kMaximize, 2, 1));
  EXPECT_FALSE(IsBetter(Goal::kMaximize, kNan, 1));
  EXPECT_TRUE(IsBetter(Goal::kMaximize, -kInf, kNan));
  EXPECT_FALSE(IsBetter(Goal::kMinimize, kNan, kNan));
}

TEST(StudyValidate, TakesAGoodSpecAndNamesWhatIsWrongInABadOne) {
  const StudySpec good = Spec(ObjectiveKind::kLast);
  EXPECT_TRUE(Validate(good).ok());
  const auto refuses = [&good](auto change) {
    StudySpec spec = good;
    change(spec);
    const Status status = Validate(spec);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_FALSE(DetailOf(status).mend.empty());
  };
  refuses([](StudySpec& s) { s.name = ""; });
  refuses([](StudySpec& s) { s.name = std::string(10000, 'x'); });
  refuses([](StudySpec& s) { s.name = "a\nb"; });
  refuses([](StudySpec& s) { s.space = {{Real("x", 2, 1)}}; });
  refuses([](StudySpec& s) { s.metrics[0].name = ""; });
  refuses([](StudySpec& s) { s.metrics.push_back(s.metrics[0]); });
  refuses([](StudySpec& s) { s.metrics[0].target = kNan; });
  refuses([](StudySpec& s) { s.objective.last_k = 0; });
  refuses([](StudySpec& s) { s.objective.last_k = 10'001; });
  refuses([](StudySpec& s) { s.budget.run_cap = 0; });
  refuses([](StudySpec& s) { s.budget.wall_clock = std::chrono::duration<double>(kInf); });
  refuses([](StudySpec& s) { s.budget.wall_clock = std::chrono::duration<double>(0); });
  refuses([](StudySpec& s) { s.retries.max_retries = -1; });
  refuses([](StudySpec& s) { s.retries.max_lost_workers = 1001; });
  refuses([](StudySpec& s) { s.attributes["\n"] = "x"; });
  refuses([](StudySpec& s) { s.attributes["a"] = "\xFF"; });
  StudySpec odd = good;
  odd.name = "it's \"\xE2\x82\xAC\"; drop";
  EXPECT_TRUE(Validate(odd).ok());
}

TEST(Trial, MeasurementsAreEqualWithNanToo) {
  Measurement a;
  a.metrics = {{"loss", kNan}, {"acc", 1}};
  Measurement b = a;
  EXPECT_TRUE(a == b);
  b.metrics[0].value = 1;
  EXPECT_FALSE(a == b);
  b = a;
  b.step = 3;
  EXPECT_FALSE(a == b);
  ASSERT_NE(Find(a, "acc"), nullptr);
  EXPECT_EQ(*Find(a, "acc"), 1);
  EXPECT_EQ(Find(a, "none"), nullptr);
}

TEST(Trial, StartsFromItsLastCheckpointElseTheDonorsElseNothing) {
  Trial trial;
  trial.id = 4;
  EXPECT_EQ(StartOf(trial), std::nullopt);
  trial.warm_start =
      CheckpointRef{2, {.step = 7, .path = "d", .sha256 = "", .bytes = 1, .attempt = 1}};
  EXPECT_EQ(StartOf(trial), trial.warm_start);
  trial.checkpoints.push_back({.step = 9, .path = "a", .sha256 = "", .bytes = 1, .attempt = 1});
  trial.checkpoints.push_back({.step = 3, .path = "b", .sha256 = "", .bytes = 1, .attempt = 2});
  EXPECT_EQ(StartOf(trial)->trial, 4);
  EXPECT_EQ(StartOf(trial)->checkpoint.path, "b");
}

}  // namespace
}  // namespace jizi::tuner
