#include "schedulers/model/study.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/utf8.h"
#include "schedulers/model/text.h"

namespace jizi::tuner {
namespace {

constexpr size_t kMaxMetrics = 100;
constexpr size_t kMaxAttributes = 1000;
constexpr size_t kMaxAttributeBytes = 65536;
constexpr int kMaxLastK = 10'000;  // With a target, each measurement looks at so many.
constexpr int kMaxTries = 1000;
constexpr char kNameMend[] = "give 1 to 256 bytes of UTF-8 without control characters";

Status Bad(const std::string& subject, const std::string& what, std::string mend) {
  return Error(StatusCode::kInvalidArgument, what, {"INVALID_STUDY", subject, std::move(mend)});
}

// The values of the metric that count, last first, as many as `limit`.
std::vector<double> LastValues(const Trial& trial, const std::string& metric, size_t limit) {
  std::vector<double> values;
  for (size_t i = trial.measurements.size(); i > 0 && values.size() < limit; --i) {
    if (const double* value = Find(trial.measurements[i - 1], metric)) values.push_back(*value);
  }
  return values;
}

double BestOf(Goal goal, const std::vector<double>& last_first) {
  // An infinity on the way is a fault, not a record; where nothing is finite, the last value says
  // what happened.
  double best = last_first.front();
  for (const double value : last_first) {
    if (!std::isfinite(value)) continue;
    if (!std::isfinite(best) || IsBetter(goal, value, best)) best = value;
  }
  return best;
}

Status ValidateMetrics(const StudySpec& spec) {
  if (spec.metrics.size() > kMaxMetrics) {
    return Bad("metrics", "the study has more than 100 metrics", "give fewer");
  }
  std::set<std::string> names;
  for (const MetricSpec& metric : spec.metrics) {
    if (!IsName(metric.name)) {
      return Bad("metric.name", "metric " + Quoted(metric.name) + ": this is no name", kNameMend);
    }
    if (!names.insert(metric.name).second) {
      return Bad(metric.name, "metric " + Quoted(metric.name) + " is there twice", "list it once");
    }
    if (metric.target && !std::isfinite(*metric.target)) {
      return Bad("metric.target", "the target of metric " + Quoted(metric.name) + " is not finite",
                 "give a finite number");
    }
  }
  if (spec.objective.last_k < 1 || spec.objective.last_k > kMaxLastK) {
    return Bad("objective", "mean_of_last is " + std::to_string(spec.objective.last_k),
               "give 1 to 10000");
  }
  return {};
}

Status ValidateNumbers(const StudySpec& spec) {
  if (spec.budget.run_cap && *spec.budget.run_cap < 1) {
    return Bad("run_cap", "run_cap is " + std::to_string(*spec.budget.run_cap),
               "give at least 1, or leave it out");
  }
  if (spec.budget.wall_clock) {
    const double seconds = spec.budget.wall_clock->count();
    if (!std::isfinite(seconds) || seconds <= 0) {
      return Bad("wall_clock", "the time limit of the study is not above 0 and finite",
                 "give seconds above 0, or leave it out");
    }
  }
  const auto is_count = [](int count) { return count >= 0 && count <= kMaxTries; };
  if (!is_count(spec.retries.max_retries) || !is_count(spec.retries.max_lost_workers)) {
    return Bad("retries", "a number of retries is below 0 or above 1000", "give 0 to 1000");
  }
  return {};
}

Status ValidateAttributes(const StudySpec& spec) {
  if (spec.attributes.size() > kMaxAttributes) {
    return Bad("attributes", "the study has more than 1000 attributes", "give fewer");
  }
  for (const auto& [name, value] : spec.attributes) {
    if (!IsName(name)) {
      return Bad("attributes", "attribute " + Quoted(name) + ": this is no name", kNameMend);
    }
    if (value.size() > kMaxAttributeBytes || !IsUtf8(value)) {
      return Bad(name, "the value of attribute " + Quoted(name) + " is too long or not UTF-8",
                 "give at most 65536 bytes of UTF-8");
    }
  }
  return {};
}

}  // namespace

std::optional<double> ObjectiveOf(const StudySpec& spec, const Trial& trial) {
  const MetricSpec* metric = spec.Metric();
  if (metric == nullptr) return std::nullopt;
  const size_t limit = spec.objective.kind == ObjectiveKind::kBest ? trial.measurements.size()
                       : spec.objective.kind == ObjectiveKind::kMeanOfLast
                           ? static_cast<size_t>(std::max(spec.objective.last_k, 1))
                           : 1;
  const std::vector<double> values = LastValues(trial, metric->name, limit);
  if (values.empty()) return std::nullopt;
  if (spec.objective.kind == ObjectiveKind::kBest) return BestOf(metric->goal, values);
  double mean = 0;  // Of one value it is that value. Divided first: a sum could overflow.
  for (const double value : values) mean += value / static_cast<double>(values.size());
  return mean;
}

bool IsBetter(Goal goal, double a, double b) {
  if (std::isnan(a)) return false;
  if (std::isnan(b)) return true;
  return goal == Goal::kMinimize ? a < b : a > b;
}

Status Validate(const StudySpec& spec) {
  if (!IsName(spec.name)) {
    return Bad("name", "study " + Quoted(spec.name) + ": this is no name", kNameMend);
  }
  TRY(Validate(spec.space));
  TRY(ValidateMetrics(spec));
  TRY(ValidateNumbers(spec));
  return ValidateAttributes(spec);
}

}  // namespace jizi::tuner
