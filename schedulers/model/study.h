#pragma once
// study.h - a tuning problem and everything that is known about it: what a scheduler decides on.
// Threads: a value; copying one is O(1) but for a few strings, and shares the trials.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedulers/model/cow.h"
#include "schedulers/model/space.h"
#include "schedulers/model/trial.h"

namespace jizi::tuner {

enum class Goal { kMinimize, kMaximize };

struct MetricSpec {
  std::string name;
  Goal goal = Goal::kMinimize;
  std::optional<double> target;  // Once a trial reaches it, no new trials.
  bool operator==(const MetricSpec&) const = default;
};

enum class ObjectiveKind { kLast, kBest, kMeanOfLast };

struct Objective {
  ObjectiveKind kind = ObjectiveKind::kLast;
  int last_k = 1;  // Of kMeanOfLast.
  bool operator==(const Objective&) const = default;
};

struct Budget {
  std::optional<int64_t> run_cap;                           // Trials, not attempts.
  std::optional<std::chrono::duration<double>> wall_clock;  // Since the study was created.
  bool operator==(const Budget&) const = default;
};

struct RetryPolicy {
  int max_retries = 0;       // Of a trial whose program failed.
  int max_lost_workers = 5;  // Lease expiries before a trial is Failed.
  bool operator==(const RetryPolicy&) const = default;
};

struct StudySpec {
  std::string name;
  Space space;
  std::vector<MetricSpec> metrics;  // The first is the objective.
  Objective objective;
  std::string method;                // As MakeScheduler knows it.
  std::string settings_json = "{}";  // The scheduler's own.
  uint64_t seed = 0;
  Budget budget;
  RetryPolicy retries;
  std::map<std::string, std::string> attributes;
  bool operator==(const StudySpec&) const = default;

  const MetricSpec* Metric() const { return metrics.empty() ? nullptr : &metrics.front(); }
};

enum class StudyState { kActive, kPaused, kStopped, kFinished };

struct TrialCounts {
  int64_t by_state[7] = {};
  int64_t operator[](TrialState state) const { return by_state[static_cast<int>(state)]; }
  int64_t& operator[](TrialState state) { return by_state[static_cast<int>(state)]; }
  bool operator==(const TrialCounts&) const = default;
};

struct Study {
  std::shared_ptr<const StudySpec> spec;
  PersistentVector<Cow<Trial>> trials;  // Trial i + 1 at index i.
  TrialCounts counts;
  std::optional<TrialId> best;  // Of Completed (and Stopped, if measured) trials by the objective;
                                // the earliest of equals.

  const Trial* Find(TrialId id) const {
    return id >= 1 && static_cast<size_t>(id) <= trials.size()
               ? &*trials[static_cast<size_t>(id - 1)]
               : nullptr;
  }
};

// The objective of a trial from its counting measurements; empty without a metric or a measurement
// of it.
std::optional<double> ObjectiveOf(const StudySpec& spec, const Trial& trial);

// Is a better than b, for the goal? NaN is never better.
bool IsBetter(Goal goal, double a, double b);

// Names (1 to 256 bytes of printable UTF-8, no control characters), space, metrics, numbers:
// everything but the scheduler's settings.
Status Validate(const StudySpec& spec);

}  // namespace jizi::tuner
