#include "schedulers/bayes/history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace jizi::tuner {
namespace {

constexpr int64_t kEver = std::numeric_limits<int64_t>::max();

// The last value of the metric up to the step; empty if there is none that is finite.
std::optional<double> ValueBy(const Trial& trial, const MetricSpec& metric, int64_t step) {
  std::optional<double> found;
  for (const Measurement& measurement : trial.measurements) {
    if (measurement.step > step) break;
    const double* value = Find(measurement, metric.name);
    if (value != nullptr && std::isfinite(*value)) found = *value;
  }
  if (found && metric.goal == Goal::kMinimize) found = -*found;
  return found;
}

struct Finished {
  const Trial* trial;
  double value;
};

// What a stopped trial would have ended with.
double Censored(const Trial& stopped, const MetricSpec& metric,
                const std::vector<Finished>& finished) {
  const double own = *ValueBy(stopped, metric, kEver);
  if (finished.empty()) return own;
  const int64_t step = stopped.measurements.back().step;
  std::vector<double> ends;
  size_t ahead_of = 0;
  for (const Finished& each : finished) {
    const auto then = ValueBy(*each.trial, metric, step);
    if (!then) continue;
    ends.push_back(each.value);
    ahead_of += *then < own ? 1 : 0;
  }
  if (ends.empty()) {
    double worst = finished.front().value;
    for (const Finished& each : finished) worst = std::min(worst, each.value);
    return worst;
  }
  std::sort(ends.begin(), ends.end());
  return std::min(ends[std::min(ahead_of, ends.size() - 1)], ends[ends.size() / 2]);
}

std::optional<LearntRow> RowOf(const Trial& trial, const MetricSpec& metric) {
  if (trial.state == TrialState::kStopped) {
    if (!ValueBy(trial, metric, kEver)) return std::nullopt;
    return LearntRow{trial.id, true, true, 0};
  }
  if (trial.state != TrialState::kCompleted || !trial.objective ||
      !std::isfinite(*trial.objective)) {
    return LearntRow{trial.id, false, false, 0};
  }
  const double sign = metric.goal == Goal::kMinimize ? -1 : 1;
  return LearntRow{trial.id, true, false, sign * *trial.objective};
}

}  // namespace

History HistoryOf(const Study& study) {
  History history;
  const MetricSpec* metric = study.spec->Metric();
  std::vector<const Trial*> ended;
  for (const Cow<Trial>& each : study.trials) {
    if (IsEnded(each->state)) {
      ended.push_back(&*each);
    } else {
      history.pending.push_back(each->id);
    }
  }
  if (metric == nullptr) return history;
  std::sort(ended.begin(), ended.end(), [](const Trial* a, const Trial* b) {
    return std::tuple(a->ended, a->id) < std::tuple(b->ended, b->id);
  });
  for (const Trial* trial : ended) {
    if (const auto row = RowOf(*trial, *metric)) history.learnt.push_back(*row);
  }
  return history;
}

std::vector<LearntRow> Valued(const Study& study, const std::vector<LearntRow>& learnt,
                              size_t count) {
  std::vector<LearntRow> rows(learnt.begin(), learnt.begin() + static_cast<ptrdiff_t>(count));
  std::vector<Finished> finished;
  for (const LearntRow& row : rows) {
    if (row.feasible && !row.censored) finished.push_back({study.Find(row.trial), row.value});
  }
  for (LearntRow& row : rows) {
    if (row.censored) row.value = Censored(*study.Find(row.trial), *study.spec->Metric(), finished);
  }
  return rows;
}

}  // namespace jizi::tuner
