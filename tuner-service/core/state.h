#pragma once
// state.h - a study's whole state: what events made of it, and the two things that are not stored
// (lease deadlines, the decision under way). Threads: a value, owned by the engine thread. Cost: a
// copy of `study` alone is cheap (persistent_vector.h), one of all is not.

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner-service/core/events.h"

namespace jizi::tuner {

struct LastCall {
  CallNumber call;
  RecordedReply reply;
};

// What a call with a request id made, for its repeats.
struct KeptRequest {
  enum class Kind { kCreateStudy, kResumeStudy, kEnqueueTrial, kRetryTrials };
  Kind kind = Kind::kCreateStudy;
  std::vector<TrialId> trials;
  bool operator==(const KeptRequest&) const = default;
};

struct StudyData {
  // From events.
  StudyId id = 0;
  Study study;
  StudyState state = StudyState::kActive;
  std::string state_why;
  Timestamp created;
  Timestamp last_event;
  int64_t log_position = 0;
  int64_t decisions = 0;  // Taken so far; the next has number decisions + 1.
  bool exhausted = false;
  std::string exhausted_why;
  std::optional<std::string>
      scheduler_waits;  // It said kWait, for this reason, and nothing has changed since.
  std::optional<TrialId> target_reached;  // By this trial: no new ones (metric.target).
  std::deque<TrialId> queue;  // Queued trials in the order they will be handed out; enqueued by
                              // hand and retries first.
  size_t queue_first = 0;     // So many at its front were enqueued by hand or are tried again.
  std::map<std::string, LastCall> workers;
  std::map<std::pair<TrialId, int>, LastCall> attempts;  // The last two of each trial.
  std::map<std::string, KeptRequest> requests;           // By request id.

  // Not stored: in memory on the steady clock (contract 9).
  struct Lease {
    SteadyTime deadline;
    Seconds length{};
  };
  std::map<TrialId, Lease>
      leases;  // Of Running trials, and (never due) of lost attempts that may still come back.
  // Not stored: a decision is read from the log, never resumed.
  struct Pending {
    int64_t decision = 0;
    int64_t log_position = 0;
    int count =
        0;  // The engine raises it to what all parked calls need, before it launches the decision.
  };
  std::optional<Pending> pending;
};

}  // namespace jizi::tuner
