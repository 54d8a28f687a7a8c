// Who holds what: leases, places in a sequence, Attach, Renew, RegisterCheckpoint, and the end of a
// lease.

#include <algorithm>

#include "tuner-service/core/draft.h"

namespace jizi::tuner {

StatusOr<Standing> StandingOf(const StudyData& state, const LeaseRef& lease) {
  const Trial* trial = state.study.Find(lease.trial);
  if (trial == nullptr) {
    return Refuse(StatusCode::kNotFound, "TRIAL_NOT_FOUND", Named(lease.trial),
                  "the study has no " + Named(lease.trial), "list its trials");
  }
  const bool known =
      lease.attempt >= 1 && static_cast<size_t>(lease.attempt) <= trial->attempts.size();
  if (!known) return LeaseLost(lease);
  const Attempt& attempt = trial->attempts[static_cast<size_t>(lease.attempt - 1)];
  if (attempt.token != lease.token) return LeaseLost(lease);
  if (attempt.end == AttemptEnd::kRunning) return Standing::kHeld;
  const bool last = static_cast<size_t>(lease.attempt) == trial->attempts.size();
  const bool lost = attempt.end == AttemptEnd::kLost && trial->state == TrialState::kQueued;
  // A retry by hand starts anew: the lease of a lost attempt is then gone.
  if (last && lost && state.leases.contains(lease.trial)) return Standing::kMayReturn;
  return Standing::kEnded;
}

Status LeaseLost(const LeaseRef& lease) {
  return Refuse(StatusCode::kFailedPrecondition, "LEASE_LOST", Named(lease.trial),
                "attempt " + std::to_string(lease.attempt) + " of " + Named(lease.trial) +
                    " is not (or no longer) held under this lease",
                "stop working on it and ask for another trial");
}

Status TrialEnded(const Trial& trial) {
  return Refuse(StatusCode::kFailedPrecondition, "TRIAL_ENDED", Named(trial.id),
                Named(trial.id) + " has ended: " +
                    (trial.end_why.empty() ? std::string("it was completed") : trial.end_why),
                "ask for another trial");
}

StatusOr<Place> PlaceOf(const LastCall* last, const CallNumber& call, const std::string& whose,
                        Gaps gaps) {
  const int64_t before = last == nullptr ? 0 : last->call.sequence;
  const std::string number = std::to_string(call.sequence);
  const std::string expected = std::to_string(before + 1);
  if (call.sequence < 1 || call.sequence > kMaxSequence) {
    return Refuse(StatusCode::kInvalidArgument, "SEQUENCE_INVALID", whose,
                  "sequence " + number + " of " + whose + " is not from 1 to 2^53",
                  "number the calls 1, 2, 3, ...; the next is " + expected);
  }
  if (call.sequence == before) {
    if (call.digest == last->call.digest) return Place::kRepeat;
    return Refuse(StatusCode::kInvalidArgument, "SEQUENCE_REUSED", whose,
                  "sequence " + number + " of " + whose + " was used for another request",
                  "give each request its own number; the next is " + expected);
  }
  if (call.sequence < before) {
    return Refuse(StatusCode::kFailedPrecondition, "STALE_SEQUENCE", whose,
                  "sequence " + number + " of " + whose + " was answered long ago",
                  "the next number is " + expected + "; Attach tells it");
  }
  if (call.sequence > before + 1 && gaps == Gaps::kRefused) {
    return Refuse(StatusCode::kInvalidArgument, "SEQUENCE_GAP", whose,
                  "sequence " + number + " of " + whose + " leaves a gap",
                  "send number " + expected + " first; Attach tells it");
  }
  return Place::kNext;
}

const LastCall* LastCallOf(const StudyData& state, const LeaseRef& lease) {
  const auto found = state.attempts.find({lease.trial, lease.attempt});
  return found == state.attempts.end() ? nullptr : &found->second;
}

int64_t NextSequence(const LastCall* last) {
  return last == nullptr ? 1 : last->call.sequence + 1;
}

StatusOr<const RecordedReply*> Admit(const StudyData& state, const LeaseRef& lease,
                                     const CallNumber& call) {
  const Standing standing = TRY(StandingOf(state, lease));
  const LastCall* last = LastCallOf(state, lease);
  const std::string whose = Named(lease.trial) + ", attempt " + std::to_string(lease.attempt);
  const StatusOr<Place> place = PlaceOf(last, call, whose);
  if (place.ok() && *place == Place::kRepeat) return &last->reply;
  if (standing == Standing::kEnded) {
    const Trial& trial = *state.study.Find(lease.trial);
    return IsEnded(trial.state) ? TrialEnded(trial) : LeaseLost(lease);
  }
  if (!place.ok()) return place.status();
  return static_cast<const RecordedReply*>(nullptr);
}

void Hold(Draft& draft, const LeaseRef& lease) {
  if (draft.At(lease.trial).state == TrialState::kQueued) {
    draft.Emit(AttemptReclaimed{lease.trial, lease.attempt});
    if (draft.state().state == StudyState::kStopped) {
      draft.Emit(TrialTold{lease.trial, Stop{draft.state().state_why}});
    }
  }
  draft.RenewLease(lease.trial);
}

bool HoldIfMine(Draft& draft, const LeaseRef& lease) {
  const StatusOr<Standing> standing = StandingOf(draft.state(), lease);
  const bool mine = standing.ok() && *standing != Standing::kEnded;
  if (mine) Hold(draft, lease);
  return mine;
}

Assigned AssignedOf(const Draft& draft, TrialId id, int number) {
  const Trial& trial = draft.At(id);
  Assigned assigned;
  assigned.trial = draft.Share(id);
  assigned.attempt = number;
  assigned.token = trial.attempts[static_cast<size_t>(number - 1)].token;
  assigned.lease = draft.LeaseOf(id, number);
  for (const Checkpoint& checkpoint : trial.checkpoints) {  // The last from before this attempt.
    if (checkpoint.attempt < number) assigned.start = CheckpointRef{id, checkpoint};
  }
  if (!assigned.start) assigned.start = trial.warm_start;
  return assigned;
}

void ExpireLeases(Draft& draft) {
  std::vector<TrialId> over;
  for (const auto& [trial, lease] : draft.state().leases) {
    if (lease.deadline <= draft.context().steady_now) over.push_back(trial);
  }
  for (const TrialId trial : over) {
    const std::string worker = draft.At(trial).attempts.back().worker;
    EndAttempt(draft, trial, AttemptEnd::kLost,
               "nothing was heard of worker '" + worker + "' for the time of its lease", false);
  }
}

namespace {

AttachReply::Held HeldOf(Draft& draft, TrialId id) {
  draft.RenewLease(id);
  const Trial& trial = draft.At(id);
  AttachReply::Held held;
  held.assigned = AssignedOf(draft, id, trial.attempts.back().number);
  held.next_sequence =
      NextSequence(LastCallOf(draft.state(), {id, trial.attempts.back().number, {}}));
  held.last_step = trial.measurements.empty() ? -1 : trial.measurements.back().step;
  return held;
}

Status CheckCapabilities(const Capabilities& capabilities) {
  if (capabilities.changeable.size() > kMaxParameters) {
    return Refuse(StatusCode::kInvalidArgument, "TOO_MANY_NAMES", "capabilities.changeable",
                  "more changeable parameters than a study can have",
                  "name at most " + std::to_string(kMaxParameters));
  }
  for (const std::string& name : capabilities.changeable) {
    if (Status status = CheckId(name, "capabilities.changeable", false); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

Status CheckTotalSteps(const std::optional<int64_t>& total_steps) {
  if (!total_steps || *total_steps >= 0) return absl::OkStatus();
  return Refuse(StatusCode::kInvalidArgument, "NEGATIVE_STEPS", "total_steps",
                "total_steps is " + std::to_string(*total_steps),
                "give 0 or more, or leave it out");
}

}  // namespace

StatusOr<Outcome> Decide(Draft& draft, const AttachCommand& command) {
  if (command.capabilities) TRY(CheckCapabilities(*command.capabilities));
  TRY(CheckTotalSteps(command.total_steps));
  AttachReply reply;
  std::string worker = command.worker;
  if (command.lease) {
    const TrialId id = command.lease->trial;
    if (TRY(StandingOf(draft.state(), *command.lease)) == Standing::kEnded) {
      const Trial& trial = draft.At(id);
      return IsEnded(trial.state) ? TrialEnded(trial) : LeaseLost(*command.lease);
    }
    Hold(draft, *command.lease);
    const Trial& trial = draft.At(id);
    const Attempt& attempt = trial.attempts.back();
    const bool news = (command.capabilities && !(*command.capabilities == attempt.capabilities)) ||
                      (command.total_steps && command.total_steps != trial.total_steps);
    if (news) {
      draft.Emit(AttemptAttached{id, attempt.number, command.capabilities, command.total_steps});
    }
    worker = draft.At(id).attempts.back().worker;
    reply.held.push_back(HeldOf(draft, id));
  } else {
    TRY(CheckId(command.worker, "worker", false));
    for (const auto& [trial, lease] : draft.state().leases) {
      const Trial& held = draft.At(trial);
      if (held.state != TrialState::kRunning || held.attempts.back().worker != worker) continue;
      reply.held.push_back(HeldOf(draft, trial));
    }
  }
  const auto last = draft.state().workers.find(worker);
  reply.next_worker_sequence =
      NextSequence(last == draft.state().workers.end() ? nullptr : &last->second);
  return draft.Take(Reply(std::move(reply)));
}

StatusOr<Outcome> Decide(Draft& draft, const RenewCommand& command) {
  if (command.leases.size() > kMaxLeasesPerRenew) {
    return Refuse(StatusCode::kInvalidArgument, "TOO_MANY_LEASES", "leases",
                  "more leases than one call may renew",
                  "renew at most " + std::to_string(kMaxLeasesPerRenew) + " in a call");
  }
  RenewReply reply;
  for (const LeaseRef& lease : command.leases) {
    RenewReply::Renewed renewed;
    if (HoldIfMine(draft, lease)) {
      renewed.held = true;
      renewed.lease = draft.LeaseOf(lease.trial, lease.attempt);
      renewed.directive = draft.At(lease.trial).told.value_or(Continue{});
    }
    reply.leases.push_back(std::move(renewed));
  }
  return draft.Take(Reply(std::move(reply)));
}

namespace {

Status CheckCheckpoint(const Trial& trial, const Checkpoint& checkpoint) {
  const auto refuse = [](const std::string& subject, const std::string& message,
                         const std::string& mend) {
    return Refuse(StatusCode::kInvalidArgument, "BAD_CHECKPOINT", subject, message, mend);
  };
  const std::string& path = checkpoint.path;
  const std::string slashed = "/" + path + "/";
  if (path.empty() || path.size() > 4096 || path.front() == '/' ||
      path.find('\0') != std::string::npos || slashed.find("/../") != std::string::npos) {
    return refuse("path", "the checkpoint's path is empty, absolute, too long or leaves its folder",
                  "give a path relative to the trial's folder");
  }
  const bool hex = std::all_of(checkpoint.sha256.begin(), checkpoint.sha256.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (!hex || (checkpoint.sha256.size() != 64 && !checkpoint.sha256.empty())) {
    return refuse("sha256", "sha256 is not 64 lower-case hexadecimal digits",
                  "give the digest of the file, or none");
  }
  if (checkpoint.bytes < 0) return refuse("bytes", "the size is negative", "give the file's size");
  const int64_t least = trial.checkpoints.empty() ? 0 : trial.checkpoints.back().step;
  if (checkpoint.step < least) {
    return refuse("step",
                  "step " + std::to_string(checkpoint.step) + " is before the last checkpoint's, " +
                      std::to_string(least),
                  "register checkpoints in the order of their steps");
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Outcome> Decide(Draft& draft, const RegisterCheckpointCommand& command) {
  const TrialId id = command.lease.trial;
  const RecordedReply* recorded = TRY(Admit(draft.state(), command.lease, command.call));
  if (recorded != nullptr) {
    HoldIfMine(draft, command.lease);
    return draft.Take(Reply(RegisterCheckpointReply{draft.LeaseOf(id, command.lease.attempt)}));
  }
  const Trial& trial = draft.At(id);
  TRY(CheckCheckpoint(trial, command.checkpoint));
  if (trial.checkpoints.size() >= kMaxCheckpointsPerTrial) {
    return Refuse(StatusCode::kResourceExhausted, "TOO_MANY_CHECKPOINTS", Named(id),
                  Named(id) + " has " + std::to_string(kMaxCheckpointsPerTrial) + " checkpoints",
                  "save less often");
  }
  Hold(draft, command.lease);
  CheckpointRegistered registered{id, command.checkpoint};
  registered.checkpoint.attempt = command.lease.attempt;
  draft.Emit(std::move(registered));
  draft.Emit(CallAnswered{"", id, command.lease.attempt, command.call, RecordedDone{}});
  return draft.Take(Reply(RegisterCheckpointReply{draft.LeaseOf(id, command.lease.attempt)}));
}

}  // namespace jizi::tuner
