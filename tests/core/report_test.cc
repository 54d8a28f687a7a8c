// Measurements, objectives and what the scheduler hears (docs/contracts.md, 7, 8 and 13).

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "tests/core/machine.h"

namespace jizi::tuner::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

NewMeasurement At(int64_t step, std::vector<Metric> metrics) {
  return {step, {}, std::move(metrics), std::nullopt};
}

TrialState EndOf(Machine& m, const std::vector<double>& losses) {
  const LeaseRef lease = m.Take("w");
  int64_t step = 0;
  for (const double loss : losses) m.Report(lease, ++step, loss);
  EXPECT_TRUE(m.Call(m.CompleteOf(lease)).ok());
  return m.StateOf(lease.trial);
}

TEST(Report, WhatIsWrongIsRejectedWithItsReasonAndTheRestIsStored) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  ReportCommand report = m.ReportOf(lease, 5, 0.5);
  report.measurements.push_back(At(4, {{"loss", 1}}));
  report.measurements.push_back(At(-1, {{"loss", 1}}));
  report.measurements.push_back(At(5, {{"loss", 2}, {"accuracy", 3}}));
  report.measurements.push_back(At(6, {}));
  report.measurements.push_back(At(6, {{"a", 1}, {"a", 2}}));
  report.measurements.push_back(At(6, {{"", 1}}));
  report.measurements.push_back(At(7, {{"unknown", kNan}, {"loss", -kInfinity}}));
  NewMeasurement gradient = At(8, {});
  gradient.gradient = GradientStatistics{1, kNan, 1, 2};
  report.measurements.push_back(gradient);
  const auto outcome = m.Run(report);
  ASSERT_TRUE(outcome.ok());
  const std::vector<Rejected>& rejected = std::get<ReportReply>(*outcome->reply).rejected;
  std::vector<int> indices;
  for (const Rejected& one : rejected) {
    indices.push_back(one.index);
    EXPECT_FALSE(one.why.empty());
  }
  EXPECT_EQ(indices, (std::vector<int>{1, 2, 3, 4, 5, 6, 8}));
  const Trial& trial = m.At(1);
  ASSERT_EQ(trial.measurements.size(), 3u);
  EXPECT_EQ(trial.measurements[1].metrics.size(), 1u);  // The new metric of the old step.
  EXPECT_TRUE(std::isnan(*Find(trial.measurements[2], "unknown")));
}

TEST(Report, ABacklogSkipsWhatIsThereAlready) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  for (int64_t step = 1; step <= 3; ++step) m.Report(lease, step, 0.5);
  ReportCommand backlog = m.ReportOf(lease, 2, 0.5);
  backlog.catching_up = true;
  backlog.measurements.push_back(At(3, {{"loss", 0.5}}));
  backlog.measurements.push_back(At(4, {{"loss", 0.4}}));
  backlog.measurements.push_back(At(1, {{"never seen", 1}}));
  const auto outcome = m.Run(backlog);
  ASSERT_TRUE(outcome.ok());
  const auto& reply = std::get<ReportReply>(*outcome->reply);
  ASSERT_EQ(reply.rejected.size(), 1u);
  EXPECT_EQ(reply.rejected[0].index, 3);
  EXPECT_EQ(m.At(1).measurements.size(), 4u);
}

TEST(Report, TooManyMeasurementsInOneReportAreRefused) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  ReportCommand report = m.ReportOf(lease, 1, 0.5);
  report.measurements.resize(kMaxMeasurementsPerReport + 1, report.measurements[0]);
  EXPECT_EQ(CodeOf(m.Run(report).status()), "TOO_MANY_MEASUREMENTS");
  report.measurements.resize(1);
  report.total_steps = -1;
  EXPECT_EQ(CodeOf(m.Run(report).status()), "NEGATIVE_STEPS");
}

// Without the bound one report of the largest size allowed would take the engine thread minutes.
TEST(Report, AStepHoldsAsManyMetricsAsAMeasurementHoweverManyCallsAddThem) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  ReportCommand report = m.ReportOf(lease, 1, 0.5);
  const auto names = [](size_t from, size_t count) {
    std::vector<Metric> metrics;
    for (size_t i = 0; i < count; ++i) metrics.push_back({"m" + std::to_string(from + i), 1});
    return metrics;
  };
  report.measurements.push_back(At(1, names(0, kMaxMetricsPerMeasurement - 1)));
  report.measurements.push_back(At(1, names(5000, 1)));
  report.measurements.push_back(At(2, names(0, kMaxMetricsPerMeasurement)));
  const auto outcome = m.Run(report);
  ASSERT_TRUE(outcome.ok());
  const std::vector<Rejected>& rejected = std::get<ReportReply>(*outcome->reply).rejected;
  ASSERT_EQ(rejected.size(), 1u);
  EXPECT_EQ(rejected[0].index, 2);
  EXPECT_EQ(rejected[0].why, "more than 1000 metrics at step 1");
  EXPECT_EQ(m.At(1).measurements.size(), 3u);
}

TEST(Report, ALargeReportAtOneStepIsQuick) {
  Machine m(SimpleSpec());
  m.check_replay = false;
  const LeaseRef lease = m.Take("w");
  ReportCommand report = m.ReportOf(lease, 1, 0.5);
  report.measurements.clear();
  for (int i = 0; i < kMaxMeasurementsPerReport / 2; ++i) {
    std::vector<Metric> metrics;
    for (size_t k = 0; k < kMaxMetricsPerMeasurement / 4; ++k) {
      metrics.push_back({"m" + std::to_string(i) + "." + std::to_string(k), 1});
    }
    report.measurements.push_back(At(1, std::move(metrics)));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto outcome = m.Run(report);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(m.At(1).measurements.size(), 4u);
  // A fraction of a second; it would be minutes if every measurement were compared with all.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Contract8, ATargetReachedWithinABatchIsReachedAfterARestartToo) {
  for (const ObjectiveKind kind :
       {ObjectiveKind::kLast, ObjectiveKind::kBest, ObjectiveKind::kMeanOfLast}) {
    StudySpec spec = SimpleSpec();
    spec.metrics[0].target = 0.1;
    spec.objective = {kind, 2};
    Machine m(spec);
    const LeaseRef lease = m.Take("w");
    ReportCommand report = m.ReportOf(lease, 1, 0.1);
    report.measurements.push_back(At(2, {{"loss", 0.1}}));
    report.measurements.push_back(At(3, {{"loss", 9}}));
    report.measurements.push_back(At(4, {{"other", 0}}));
    ASSERT_TRUE(m.Run(report).ok());  // The machine compares the log's replay with the state.
    EXPECT_EQ(m.state.target_reached, 1);
    m.Restart();
    EXPECT_EQ(m.state.target_reached, 1);
  }
}

TEST(Contract13, OnChangeRunsOncePerMeasurementInOrderHoweverCallsAreBatched) {
  std::vector<std::pair<int64_t, size_t>> heard[2];
  for (const bool batched : {false, true}) {
    Machine m(SimpleSpec());
    m.script.on_change = [&](const Study& study, TrialId trial, const Change& change) {
      if (const auto* reported = std::get_if<Reported>(&change)) {
        heard[batched].emplace_back(reported->measurement.step,
                                    study.Find(trial)->measurements.size());
      }
      return Decision{};
    };
    const LeaseRef lease = m.Take("w");
    ReportCommand report = m.ReportOf(lease, 1, 0.5);
    for (int64_t step = 2; step <= 5; ++step) {
      if (batched) {
        report.measurements.push_back(At(step, {{"loss", 0.5}}));
      } else {
        ASSERT_TRUE(m.Run(report).ok());
        report = m.ReportOf(lease, step, 0.5);
      }
    }
    const auto outcome = m.Run(report);
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome->events.size(), 2u);  // One of measurements, one of the answer.
  }
  EXPECT_EQ(heard[0].size(), 5u);
  EXPECT_EQ(heard[0], heard[1]);
}

TEST(Contract13, AChangeTouchesTheTrialThatItIsAboutHoweverManyThereAre) {
  for (const int others : {3, 300}) {
    Machine m(SimpleSpec());
    m.check_replay = false;
    int heard = 0;
    m.script.on_change = [&](const Study&, TrialId, const Change&) {
      ++heard;
      return Decision{};
    };
    for (int i = 0; i < others; ++i) {
      m.Report(m.Take("w" + std::to_string(i)), 1, 0.5);
    }
    const LeaseRef lease = m.Take("w");
    heard = 0;
    const Study before = m.state.study;  // As a reader or a decision holds it.
    m.Report(lease, 1, 0.25);
    EXPECT_EQ(heard, 1);
    int copied = 0;
    for (size_t i = 0; i < before.trials.size(); ++i) {
      copied += &*before.trials[i] != &*m.state.study.trials[i] ? 1 : 0;
    }
    EXPECT_EQ(copied, 1) << "of " << others;
  }
}

TEST(Contract13, AStopAbsorbsWhatFollows) {
  Machine m(SimpleSpec());
  int heard = 0;
  m.script.on_change = [&](const Study&, TrialId trial, const Change&) {
    ++heard;
    Decision decision;
    decision.tell[trial] = Stop{"at step 1"};
    return decision;
  };
  const LeaseRef lease = m.Take("w");
  ReportCommand report = m.ReportOf(lease, 1, 0.5);
  report.measurements.push_back(At(2, {{"loss", 0.5}}));
  const auto outcome = m.Run(report);
  EXPECT_EQ(std::get<ReportReply>(*outcome->reply).directive, Directive(Stop{"at step 1"}));
  EXPECT_EQ(m.Report(lease, 3, 0.1).directive, Directive(Stop{"at step 1"}));
  EXPECT_EQ(heard, 1);
  EXPECT_EQ(m.At(1).measurements.size(), 3u);
}

TEST(Contract13, AFailingOnChangeIsToldToTheLogAndTheReportGoesOn) {
  Machine m(SimpleSpec());
  m.script.on_change = [](const Study&, TrialId, const Change&) -> StatusOr<Decision> {
    return absl::InternalError("oops");
  };
  const LeaseRef lease = m.Take("w");
  const auto outcome = m.Run(m.ReportOf(lease, 1, 0.5));
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->scheduler_errors.size(), 1u);
  m.script.on_change = [](const Study&, TrialId, const Change&) {
    Decision outside;
    outside.start.push_back(ProposalAt(7));
    return outside;
  };
  EXPECT_EQ(m.Run(m.ReportOf(lease, 2, 0.5))->scheduler_errors.size(), 1u);
  EXPECT_EQ(m.state.study.trials.size(), 1u);
}

TEST(Contract8, TheObjectiveIsTheLastValueTheBestOrTheMeanOfTheLast) {
  const auto objective = [](Objective kind) {
    StudySpec spec = SimpleSpec();
    spec.objective = kind;
    Machine m(spec);
    EXPECT_EQ(EndOf(m, {4, 1, 2, 6}), TrialState::kCompleted);
    return *m.At(1).objective;
  };
  EXPECT_EQ(objective({ObjectiveKind::kLast, 1}), 6);
  EXPECT_EQ(objective({ObjectiveKind::kBest, 1}), 1);
  EXPECT_EQ(objective({ObjectiveKind::kMeanOfLast, 2}), 4);
}

TEST(Contract8, AFinalNanOrInfinityIsInfeasibleNeverBestAndNeverTriedAgain) {
  StudySpec spec = SimpleSpec();
  spec.retries.max_retries = 3;
  Machine m(spec);
  EXPECT_EQ(EndOf(m, {0.1, kNan}), TrialState::kInfeasible);
  EXPECT_EQ(EndOf(m, {-kInfinity}), TrialState::kInfeasible);
  EXPECT_FALSE(m.state.study.best);
  EXPECT_EQ(EndOf(m, {kNan, 0.5}), TrialState::kCompleted);
  EXPECT_EQ(m.state.study.best, 3);
  EXPECT_EQ(CodeOf(m.Run(RetryCommand{{1}, "a"}).status()), "TRIAL_NOT_FAILED");
}

TEST(Contract8, ExitZeroWithoutTheMetricIsFailedAndWithoutAMetricCompleted) {
  Machine with(SimpleSpec());
  EXPECT_EQ(EndOf(with, {}), TrialState::kFailed);
  EXPECT_NE(with.At(1).end_why.find("'loss'"), std::string::npos);
  StudySpec spec = SimpleSpec();
  spec.metrics.clear();
  Machine without(spec);
  EXPECT_EQ(EndOf(without, {}), TrialState::kCompleted);
}

TEST(Contract8, TheBestIsKeptForEitherGoalAndTheEarliestOfEquals) {
  Machine m(SimpleSpec());
  for (const double loss : {3.0, 1.0, 2.0, 1.0}) EndOf(m, {loss});
  EXPECT_EQ(m.state.study.best, 2);
  StudySpec spec = SimpleSpec();
  spec.metrics[0].goal = Goal::kMaximize;
  Machine up(spec);
  for (const double loss : {3.0, 4.0, 2.0}) EndOf(up, {loss});
  EXPECT_EQ(up.state.study.best, 2);
}

TEST(Contract8, OnceTheTargetIsReachedThereAreNoNewTrials) {
  StudySpec spec = SimpleSpec();
  spec.metrics[0].target = 0.1;
  Machine m(spec);
  const LeaseRef other = m.Take("v");
  const LeaseRef lease = m.Take("w");
  m.Report(lease, 1, kNan);
  m.Report(lease, 2, 0.1);
  EXPECT_TRUE(std::holds_alternative<Wait>(m.Suggest("x")));
  ASSERT_TRUE(m.Call(m.CompleteOf(lease)).ok());
  m.Report(other, 1, 5);
  ASSERT_TRUE(m.Call(m.CompleteOf(other)).ok());
  EXPECT_EQ(m.state.state, StudyState::kFinished);
  const SuggestReply end = m.Suggest("x");
  ASSERT_TRUE(std::holds_alternative<Finished>(end));
  EXPECT_NE(std::get<Finished>(end).why.find("target"), std::string::npos);
}

TEST(Complete, TheFinalMeasurementCountsOnceAndABadOneIsSaidInTheEnd) {
  Machine m(SimpleSpec());
  for (const int64_t step : {3, 2, -1}) {
    const LeaseRef lease = m.Take("w");
    m.Report(lease, 2, 0.5);
    CompleteCommand complete = m.CompleteOf(lease);
    complete.final_measurement = At(step, {{"loss", 0.25}});
    ASSERT_TRUE(m.Call(complete).ok());
    const Trial& trial = m.At(lease.trial);
    EXPECT_EQ(trial.objective, step == 3 ? 0.25 : 0.5);
    EXPECT_EQ(trial.end_why.empty(), step != -1);
  }
}

TEST(Complete, LongReasonsKeepHeadAndTail) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  CompleteCommand complete = m.CompleteOf(lease);
  complete.outcome = FailedOutcome{"head" + std::string(1'000'000, '-') + "tail"};
  ASSERT_TRUE(m.Call(complete).ok());
  const std::string& why = m.At(1).end_why;
  EXPECT_LE(why.size(), kMaxWhyBytes);
  EXPECT_EQ(why.substr(0, 4), "head");
  EXPECT_EQ(why.substr(why.size() - 4), "tail");
}

TEST(RegisterCheckpoint, BadPathsDigestsAndStepsAreRefused) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  const auto code = [&](const Checkpoint& checkpoint) {
    return CodeOf(m.Run(RegisterCheckpointCommand{lease, m.NextCall(lease), checkpoint}).status());
  };
  for (const std::string path : {"", "/etc/passwd", "../other", "a/../../b", ".."}) {
    EXPECT_EQ(code({1, path, "", 1, 0}), "BAD_CHECKPOINT") << path;
  }
  EXPECT_EQ(code({1, "c", "xyz", 1, 0}), "BAD_CHECKPOINT");
  EXPECT_EQ(code({1, "c", "", -1, 0}), "BAD_CHECKPOINT");
  EXPECT_EQ(code({-1, "c", "", 1, 0}), "BAD_CHECKPOINT");
  EXPECT_EQ(code({5, "..c/d", std::string(64, 'a'), 1, 0}), "");
  EXPECT_EQ(code({4, "c", "", 1, 0}), "BAD_CHECKPOINT");
}

}  // namespace
}  // namespace jizi::tuner::testing
