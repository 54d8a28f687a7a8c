#pragma once
// core.h - the state machine of a study: pure, so that a restart, a replay and a simulator run the
// very same code.
//   command + state + scheduler + now -> events;   events -> state.
// Execute decides and applies; it may refuse, and then nothing has changed (but for AnswerCommand
// with a scheduler's error: it ends the pending decision and is Internal SCHEDULER_FAILED, or what
// a scheduler that is not there says, Unimplemented, for the parked callers). Apply cannot fail on
// what Execute or a log produced. Fails: NotFound (trial), InvalidArgument (your request),
// FailedPrecondition with LEASE_LOST, STALE_SEQUENCE, TRIAL_ENDED, STUDY_..., each with its mend;
// ResourceExhausted for a limit of size. "The study is finished" is an answer, not an error.
// Threads: none; the caller owns the state.   Cost: O(log n) a command; Suggest, Attach by worker
// and Tick also pass over the live leases.

#include <optional>
#include <vector>

#include "base/status.h"
#include "schedulers/scheduler.h"
#include "tuner-service/core/commands.h"
#include "tuner-service/core/events.h"
#include "tuner-service/core/state.h"

namespace jizi::tuner {

struct Context {
  Timestamp now;
  SteadyTime steady_now;
  const Scheduler& scheduler;
  Memo& memo;  // For OnChange.
};

// A Suggest (or the Suggest in a Complete) that the queue could not serve: the engine asks the
// scheduler for `count` more on a snapshot of this state, feeds the AnswerCommand back, and then
// executes all parked Suggests again, in order. Before it launches the decision it may raise the
// count to what all of them need. Parked without a need: a decision is under way already.
struct NeedDecision {
  int64_t decision = 0;
  int64_t log_position = 0;
  int count = 0;
};

struct Outcome {
  std::vector<Event>
      events;  // Already applied; empty if nothing changed (a repeat, a renewal, a read).
  std::optional<Reply> reply;        // Empty: parked, see need.
  std::optional<NeedDecision> need;  // Start this decision now (state.pending is set).
  std::optional<SuggestCommand>
      parked;  // What to execute again once the decision is in. Of a Complete: its `next` only.
  std::vector<Status> scheduler_errors;    // OnChange failed or answered nonsense (our bug, to be
                                           // logged): nothing came of it.
  std::optional<CompleteReply> completed;  // Of a parked Complete: the half that is done already.
};

// The events of a command get one log position and one time: state.log_position and
// state.last_event after the call, if there are any.
StatusOr<Outcome> Execute(StudyData& state, const Command& command, const Context& context);

// The first record of a study. Fails: InvalidArgument for a spec that Validate or MakeScheduler
// refuses.
StatusOr<LogRecord> CreateStudy(StudyId id, StudySpec spec, std::string request_id, Timestamp now);

// Replay. The state must be the one after record.position - 1 (a new one for 1).
void Apply(StudyData& state, const LogRecord& record);

// When the engine has to send the next Tick: the earliest lease deadline or end of budget; empty if
// nothing is due.
std::optional<SteadyTime> NextDeadline(const StudyData& state, const Context& context);

// Are these the same as far as events go (leases and pending decisions aside)? For "replay equals
// state".
bool SameDurableState(const StudyData& a, const StudyData& b);

}  // namespace jizi::tuner
