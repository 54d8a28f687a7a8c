#pragma once
// trial.h - a trial as schedulers and the service see it: parameters, attempts, measurements,
// checkpoints, and what a directive can say. Units: times are wall clock, UTC, microseconds. Steps
// are the program's own (epochs, steps, samples), >= 0. Threads: values; copies share their
// measurements (persistent_vector.h).

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "schedulers/model/params.h"
#include "schedulers/model/persistent_vector.h"

namespace jizi::tuner {

using Timestamp = std::chrono::sys_time<std::chrono::microseconds>;
using TrialId = int64_t;  // Dense from 1 in its study.

enum class TrialState { kQueued, kRunning, kPaused, kCompleted, kStopped, kInfeasible, kFailed };

// Completed, Stopped and Infeasible trials never change again; a Failed one only by a retry.
constexpr bool IsEnded(TrialState state) {
  return state >= TrialState::kCompleted;
}

struct Metric {
  std::string name;
  double value = 0;  // NaN and infinities allowed.
};

struct GradientStatistics {
  double small_batch_norm_squared = 0;
  double big_batch_norm_squared = 0;
  double small_batch_size = 0;
  double big_batch_size = 0;
  bool operator==(const GradientStatistics&) const = default;
};

struct Measurement {
  int attempt = 0;
  int rollback = 0;  // How often this attempt had been rolled back before it was measured.
  int64_t step = 0;
  Timestamp time;  // By the program's clock.
  std::vector<Metric> metrics;
  std::optional<GradientStatistics> gradient;
};
bool operator==(const Measurement& a, const Measurement& b);  // NaN equals NaN.

// The value of a metric there, if measured.
const double* Find(const Measurement& measurement, const std::string& metric);

struct Checkpoint {
  int64_t step = 0;
  std::string path;    // Relative to the folder of the trial that wrote it.
  std::string sha256;  // Hex.
  int64_t bytes = 0;
  int attempt = 0;
  bool operator==(const Checkpoint&) const = default;
};

struct CheckpointRef {
  TrialId trial = 0;
  Checkpoint checkpoint;
  bool operator==(const CheckpointRef&) const = default;
};

struct Capabilities {
  bool stop = false;
  bool pause = false;
  bool roll_back = false;
  std::vector<std::string> changeable;  // Parameters that can change while running.
  bool operator==(const Capabilities&) const = default;
};

enum class AttemptEnd { kRunning, kFinished, kStopped, kPaused, kFailed, kLost, kReleased };

using Token = std::array<uint8_t, 16>;  // Of a lease; 128 random bits.

struct Attempt {
  int number = 0;  // From 1.
  std::string worker;
  Token token{};
  Timestamp started;
  Timestamp ended;
  AttemptEnd end = AttemptEnd::kRunning;
  std::string why;
  int64_t start_step = 0;  // Of the checkpoint that it started from; 0 without one.
  int rollbacks = 0;
  // It ended well, but without a value of the study's metric: the next one does not go on from its
  // last checkpoint, which is most often at the training's end, and would report nothing again.
  bool next_anew = false;
  Capabilities capabilities;
  bool operator==(const Attempt&) const = default;
};

// The answer to a report.
struct Continue {
  Params set;                           // Changed values.
  std::optional<int64_t> roll_back_to;  // Go on from this earlier step.
  std::string why;
  bool operator==(const Continue&) const = default;
};
struct Pause {
  std::string why;
  bool operator==(const Pause&) const = default;
};
struct Stop {
  std::string why;
  bool operator==(const Stop&) const = default;
};
using Directive = std::variant<Continue, Pause, Stop>;

struct Trial {
  TrialId id = 0;
  TrialState state = TrialState::kQueued;
  Params params;
  std::optional<CheckpointRef> warm_start;  // A donor's checkpoint, for the first attempt.
  std::optional<TrialId> successor_of;
  std::map<std::string, std::string> tags;
  std::string why;       // Of the scheduler, for proposing it.
  int64_t decision = 0;  // The decision that proposed it, from 1; 0: enqueued by a person.
  std::vector<Attempt> attempts;
  PersistentVector<Measurement> measurements;  // Those that count (contract 7), steps not falling.
  std::vector<Checkpoint> checkpoints;         // Confirmed, in the order of registration.
  std::optional<int64_t> total_steps;          // As the program planned.
  std::optional<Directive>
      told;  // A Pause, Stop or change that the next report has to deliver or has delivered.
  std::optional<double> objective;  // Once ended, by the study's objective.
  std::string end_why;
  Timestamp created;
  Timestamp started;  // Of the first attempt.
  Timestamp ended;
  int failures = 0;  // Attempts that failed.
  int losses = 0;    // Attempts whose lease expired.
  std::map<std::string, std::string> attributes;
  bool operator==(const Trial&) const = default;

  const Attempt* LastAttempt() const { return attempts.empty() ? nullptr : &attempts.back(); }
};

// The checkpoint that an attempt would start from: the last confirmed one, else the donor's, else
// none.
std::optional<CheckpointRef> StartOf(const Trial& trial);

}  // namespace jizi::tuner
