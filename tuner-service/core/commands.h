#pragma once
// commands.h - what can be asked of a study, and the answers. One struct a request; the wire's
// calls map onto them one to one. Threads: values.

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "schedulers/model/cow.h"
#include "schedulers/model/study.h"
#include "schedulers/scheduler.h"

namespace jizi::tuner {

using Seconds = std::chrono::duration<double>;
using SteadyTime = std::chrono::steady_clock::time_point;
using Digest =
    std::array<uint8_t, 16>;  // Of a request's body: the same number with another body is refused.

inline constexpr Seconds kDefaultLease{60};
inline constexpr int kMaxSuggestions = 1000;  // In one call.
inline constexpr int kMaxMeasurementsPerReport = 1000;
inline constexpr int64_t kMaxTrialsPerStudy = 1'000'000;
inline constexpr size_t kMaxMeasurementsPerTrial = 1'000'000;
inline constexpr Seconds kMaxLease{30 * 24 * 3600.0};
inline constexpr size_t kMaxIdBytes = 256;      // Workers, request ids, metric and attribute names.
inline constexpr size_t kMaxWhyBytes = 4096;    // Longer reasons keep head and tail.
inline constexpr size_t kMaxAttributes = 1000;  // Of a study, or of a trial.
inline constexpr size_t kMaxAttributeBytes = 65536;        // One value.
inline constexpr size_t kMaxMetricsPerMeasurement = 1000;  // And at one step, by all calls.
inline constexpr size_t kMaxMeasurementsPerStep = 1000;    // Calls may add metrics to one step.
inline constexpr size_t kMaxCheckpointsPerTrial = 10'000;
inline constexpr size_t kMaxAttemptsPerTrial = 1000;
inline constexpr size_t kMaxWorkersPerStudy = 100'000;
inline constexpr size_t kMaxLeasesPerRenew = 1000;
inline constexpr int64_t kMaxSequence = int64_t{1} << 53;

// The place of a call in its caller's sequence (contract 12).
struct CallNumber {
  int64_t sequence = 0;  // 1, 2, 3, ...
  Digest digest{};
};

struct LeaseRef {
  TrialId trial = 0;
  int attempt = 0;
  Token token{};
};

struct SuggestCommand {
  std::string worker;
  CallNumber call;
  int count = 1;
  Seconds lease = kDefaultLease;
  std::vector<Token> tokens;  // Fresh random ones, `count` of them: randomness is an argument.
};
struct AttachCommand {
  std::optional<LeaseRef> lease;  // Without one: everything that the worker holds.
  std::string worker;
  std::optional<Capabilities> capabilities;
  std::optional<int64_t> total_steps;
};
struct NewMeasurement {
  int64_t step = 0;
  Timestamp time;
  std::vector<Metric> metrics;
  std::optional<GradientStatistics> gradient;
};
struct ReportCommand {
  LeaseRef lease;
  CallNumber call;
  std::vector<NewMeasurement> measurements;
  std::optional<int64_t> total_steps;
  bool catching_up = false;  // A step or metric that is there already is skipped, not rejected.
};
struct RegisterCheckpointCommand {
  LeaseRef lease;
  CallNumber call;
  Checkpoint checkpoint;
};
struct RenewCommand {
  std::vector<LeaseRef> leases;
};
struct ReleaseCommand {
  LeaseRef lease;
  CallNumber call;
  std::string why;
};
struct FinishedOutcome {};
struct FailedOutcome {
  std::string why;
};
struct InfeasibleOutcome {
  std::string why;
};
struct CompleteCommand {
  LeaseRef lease;
  CallNumber call;
  std::variant<FinishedOutcome, FailedOutcome, InfeasibleOutcome> outcome;
  std::optional<NewMeasurement> final_measurement;
  std::optional<SuggestCommand> next;
};
struct EnqueueCommand {
  Params params;
  std::string request_id;
};
struct RetryCommand {
  std::vector<TrialId> trials;  // None: every Failed one.
  std::string request_id;
};
struct SetStateCommand {
  StudyState state = StudyState::kActive;  // kActive, kPaused, kStopped.
};
struct SetAttributesCommand {
  TrialId trial = 0;  // 0: the study's own.
  std::map<std::string, std::string> set;
  std::vector<std::string> remove;
};
// CreateStudy with `resume` on an existing name: budgets and retries are updated, any other
// difference is refused and shown (contract 15).
struct ResumeCommand {
  StudySpec spec;
  std::string request_id;
};
// A scheduler's answer comes back (contract 10). Made by the engine.
struct AnswerCommand {
  int64_t decision = 0;      // As NeedDecision gave it.
  int64_t log_position = 0;  // Of the snapshot that it was decided on.
  int count = 0;
  StatusOr<Decision> answer;
};
// Time has passed: leases expire, wall-clock budgets end. Made by the engine.
struct TickCommand {};
// The study was just loaded: every live lease is renewed in full (contract 9). Made by the engine.
struct LoadedCommand {};

using Command =
    std::variant<SuggestCommand, AttachCommand, ReportCommand, RegisterCheckpointCommand,
                 RenewCommand, ReleaseCommand, CompleteCommand, EnqueueCommand, RetryCommand,
                 SetStateCommand, SetAttributesCommand, ResumeCommand, AnswerCommand, TickCommand,
                 LoadedCommand>;

// ---- answers ----

struct Assigned {
  Cow<Trial> trial;
  int attempt = 0;
  Token token{};
  Seconds lease{};
  std::optional<CheckpointRef> start;  // The checkpoint that this attempt starts from.
};
struct Wait {
  Seconds retry_after{1};
  std::string why;
};
struct Finished {
  std::string why;
};
using SuggestReply = std::variant<std::vector<Assigned>, Wait, Finished>;
struct AttachReply {
  struct Held {
    Assigned assigned;
    int64_t next_sequence = 1;
    int64_t last_step = -1;
  };
  std::vector<Held> held;
  int64_t next_worker_sequence = 1;
};
struct Rejected {
  int index = 0;
  std::string why;
  bool operator==(const Rejected&) const = default;
};
struct ReportReply {
  Directive directive;
  Seconds lease{};
  std::vector<Rejected> rejected;
};
struct RegisterCheckpointReply {
  Seconds lease{};
};
struct RenewReply {
  struct Renewed {
    bool held = false;
    Seconds lease{};
    Directive directive;
  };
  std::vector<Renewed> leases;
};
struct ReleaseReply {};
struct CompleteReply {
  Cow<Trial> trial;
  std::optional<SuggestReply> next;
};
struct EnqueueReply {
  Cow<Trial> trial;
};
struct RetryReply {
  std::vector<TrialId> queued;
};
struct DoneReply {};  // Everything else: the caller reads the study.

using Reply =
    std::variant<SuggestReply, AttachReply, ReportReply, RegisterCheckpointReply, RenewReply,
                 ReleaseReply, CompleteReply, EnqueueReply, RetryReply, DoneReply>;

}  // namespace jizi::tuner
