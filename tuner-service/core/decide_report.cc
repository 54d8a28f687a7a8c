#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "tuner-service/core/draft.h"

namespace jizi::tuner {
namespace {

bool AllFinite(const GradientStatistics& g) {
  return std::isfinite(g.small_batch_norm_squared) && std::isfinite(g.big_batch_norm_squared) &&
         std::isfinite(g.small_batch_size) && std::isfinite(g.big_batch_size);
}

// Why this measurement is no measurement, whatever the trial; empty if it is one.
std::string Malformed(const NewMeasurement& measurement) {
  if (measurement.step < 0) return "the step is negative";
  if (measurement.metrics.empty() && !measurement.gradient) return "it measures nothing";
  if (measurement.metrics.size() > kMaxMetricsPerMeasurement) {
    return "more than " + std::to_string(kMaxMetricsPerMeasurement) + " metrics";
  }
  std::set<std::string> names;
  for (const Metric& metric : measurement.metrics) {
    if (metric.name.empty() || metric.name.size() > kMaxIdBytes) {
      return "a metric's name is not 1 to " + std::to_string(kMaxIdBytes) + " bytes long";
    }
    if (!names.insert(metric.name).second) return "metric '" + metric.name + "' is there twice";
  }
  if (measurement.gradient && !AllFinite(*measurement.gradient)) {
    return "the gradient statistics are not finite";
  }
  return "";
}

// The first counting measurement at or after the step; steps never fall among them.
size_t FirstAt(const Trial& trial, int64_t step) {
  size_t low = 0;
  size_t high = trial.measurements.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (trial.measurements[middle].step < step) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

struct Judgement {
  std::string rejected;               // Why, if something of it was.
  std::optional<Measurement> stored;  // What is left to store.
};

// Takes out what is there already. `measurement` is well-formed.
Judgement Judge(const Trial& trial, const NewMeasurement& measurement, bool catching_up) {
  Judgement judgement;
  const std::string at = " at step " + std::to_string(measurement.step);
  Measurement kept;
  kept.attempt = trial.attempts.back().number;
  kept.rollback = trial.attempts.back().rollbacks;
  kept.step = measurement.step;
  kept.time = measurement.time;
  kept.gradient = measurement.gradient;
  const size_t first = FirstAt(trial, measurement.step);
  size_t end = first;
  while (end < trial.measurements.size() && trial.measurements[end].step == measurement.step) ++end;
  std::set<std::string_view> there;  // Bounded: what is stored below sees to it.
  for (size_t i = first; i < end; ++i) {
    for (const Metric& metric : trial.measurements[i].metrics) there.insert(metric.name);
  }
  std::string doubled;  // The first of them.
  for (const Metric& metric : measurement.metrics) {
    if (!there.contains(metric.name)) {
      kept.metrics.push_back(metric);
    } else if (!catching_up) {
      if (doubled.empty()) doubled = "'" + metric.name + "'";
    }
  }
  for (size_t i = first; i < end && kept.gradient; ++i) {
    if (trial.measurements[i].gradient) kept.gradient.reset();
  }
  if (!doubled.empty()) judgement.rejected = "already measured" + at + ": " + doubled;
  const bool nothing_left = kept.metrics.empty() && !kept.gradient;
  if (nothing_left && judgement.rejected.empty() && !catching_up) {
    judgement.rejected = "already measured" + at + ": the gradient statistics";
  }
  if (nothing_left) return judgement;
  if (end < trial.measurements.size()) {
    judgement.rejected = "steps must not fall: step " +
                         std::to_string(trial.measurements.back().step) +
                         " was measured before step " + std::to_string(measurement.step);
  } else if (trial.measurements.size() >= kMaxMeasurementsPerTrial) {
    judgement.rejected = "the trial has " + std::to_string(kMaxMeasurementsPerTrial) +
                         " measurements: report less often";
  } else if (end - first >= kMaxMeasurementsPerStep) {
    judgement.rejected = "too many calls added metrics" + at;
  } else if (there.size() + kept.metrics.size() > kMaxMetricsPerMeasurement) {
    judgement.rejected = "more than " + std::to_string(kMaxMetricsPerMeasurement) + " metrics" + at;
  } else {
    judgement.stored = std::move(kept);
  }
  return judgement;
}

}  // namespace

std::vector<Rejected> Record(Draft& draft, TrialId id,
                             const std::vector<NewMeasurement>& measurements,
                             std::optional<int64_t> total_steps, bool catching_up) {
  std::vector<Rejected> rejected;
  if (total_steps && total_steps != draft.At(id).total_steps) {
    draft.Emit(MeasurementsReported{id, {}, total_steps});
  }
  for (size_t i = 0; i < measurements.size(); ++i) {
    std::string why = Malformed(measurements[i]);
    std::optional<Measurement> stored;
    if (why.empty()) {
      Judgement judgement = Judge(draft.At(id), measurements[i], catching_up);
      why = std::move(judgement.rejected);
      stored = std::move(judgement.stored);
    }
    if (!why.empty()) rejected.push_back({static_cast<int>(i), std::move(why)});
    if (!stored) continue;
    draft.Emit(MeasurementsReported{id, {*stored}, std::nullopt});
    // A Stop absorbs what follows: it is stored, and the scheduler has nothing more to say.
    const std::optional<Directive>& told = draft.At(id).told;
    if (told && std::holds_alternative<Stop>(*told)) continue;
    draft.Changed(id, Reported{*std::move(stored)});
  }
  return rejected;
}

StatusOr<Outcome> Decide(Draft& draft, const ReportCommand& command) {
  const TrialId id = command.lease.trial;
  if (command.measurements.size() > static_cast<size_t>(kMaxMeasurementsPerReport)) {
    return Refuse(StatusCode::kInvalidArgument, "TOO_MANY_MEASUREMENTS", Named(id),
                  "more measurements than one report may carry",
                  "send at most " + std::to_string(kMaxMeasurementsPerReport) + " in a report");
  }
  if (command.total_steps && *command.total_steps < 0) {
    return Refuse(StatusCode::kInvalidArgument, "NEGATIVE_STEPS", "total_steps",
                  "total_steps is " + std::to_string(*command.total_steps),
                  "give 0 or more, or leave it out");
  }
  const RecordedReply* recorded = TRY(Admit(draft.state(), command.lease, command.call));
  if (recorded != nullptr) {
    ReportReply reply;
    if (const auto* report = std::get_if<RecordedReport>(recorded)) {
      reply.directive = report->directive;
      reply.rejected = report->rejected;
    }
    HoldIfMine(draft, command.lease);
    reply.lease = draft.LeaseOf(id, command.lease.attempt);
    return draft.Take(Reply(std::move(reply)));
  }
  Hold(draft, command.lease);
  RecordedReport answer;
  answer.rejected =
      Record(draft, id, command.measurements, command.total_steps, command.catching_up);
  answer.directive = draft.At(id).told.value_or(Continue{});
  if (const auto* go_on = std::get_if<Continue>(&answer.directive); draft.At(id).told && go_on) {
    draft.Emit(DirectiveDelivered{id, go_on->roll_back_to});
  }
  ReportReply reply{answer.directive, draft.LeaseOf(id, command.lease.attempt), answer.rejected};
  draft.Emit(CallAnswered{"", id, command.lease.attempt, command.call, std::move(answer)});
  return draft.Take(Reply(std::move(reply)));
}

}  // namespace jizi::tuner
