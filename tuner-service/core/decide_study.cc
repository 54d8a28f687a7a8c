// What people ask of a study: its state, attributes, more trials, more budget; and the passing of
// time.

#include <set>

#include "tuner-service/core/draft.h"

namespace jizi::tuner {

Status CheckId(const std::string& id, const std::string& what, bool may_be_empty) {
  if ((!id.empty() || may_be_empty) && id.size() <= kMaxIdBytes) return absl::OkStatus();
  return Refuse(StatusCode::kInvalidArgument, "BAD_NAME", what,
                what + " is " + std::to_string(id.size()) + " bytes long",
                "give 1 to " + std::to_string(kMaxIdBytes) + " bytes");
}

// Of all attributes of a study, or of a trial: they travel whole with each of its answers.
static constexpr size_t kMaxAttributesBytes = size_t{1} << 20;

Status CheckAttributes(const std::map<std::string, std::string>& attributes,
                       const std::string& subject) {
  if (attributes.size() > kMaxAttributes) {
    return Refuse(StatusCode::kResourceExhausted, "TOO_MANY_ATTRIBUTES", subject,
                  subject + " would have " + std::to_string(attributes.size()) + " attributes",
                  "keep at most " + std::to_string(kMaxAttributes));
  }
  size_t bytes = 0;
  for (const auto& [key, value] : attributes) {
    bytes += key.size() + value.size();
    if (Status status = CheckId(key, "attribute's name", false); !status.ok()) return status;
    if (value.size() > kMaxAttributeBytes) {
      return Refuse(StatusCode::kResourceExhausted, "ATTRIBUTE_TOO_LONG", key,
                    "attribute '" + key + "' is " + std::to_string(value.size()) + " bytes long",
                    "keep at most " + std::to_string(kMaxAttributeBytes) +
                        " bytes, and larger things in a file");
    }
  }
  if (bytes > kMaxAttributesBytes) {
    return Refuse(
        StatusCode::kResourceExhausted, "TOO_MANY_ATTRIBUTES", subject,
        "the attributes of " + subject + " would have " + std::to_string(bytes) + " bytes together",
        "keep at most 1 MiB, and larger things in a file");
  }
  return absl::OkStatus();
}

namespace {

Status StudyStopped(const std::string& what) {
  return Refuse(StatusCode::kFailedPrecondition, "STUDY_STOPPED", what,
                "the study is stopped: nothing of it is handed out any more",
                "resume the study first");
}

Status RequestReused(const std::string& request_id) {
  return Refuse(StatusCode::kInvalidArgument, "REQUEST_ID_REUSED", request_id,
                "request id '" + request_id + "' was used for another request",
                "give each request a random id of its own");
}

// More work for a study that had finished.
void GoOn(Draft& draft, const std::string& why) {
  if (draft.state().state != StudyState::kFinished) return;
  draft.Emit(StudyStateSet{StudyState::kActive, why});
}

const KeptRequest* MadeBefore(const StudyData& state, const std::string& request_id) {
  const auto found = state.requests.find(request_id);
  return request_id.empty() || found == state.requests.end() ? nullptr : &found->second;
}

}  // namespace

StatusOr<Outcome> Decide(Draft& draft, const EnqueueCommand& command) {
  TRY(CheckId(command.request_id, "request_id", true));
  const Params params = Coerce(draft.spec().space, command.params);
  if (const KeptRequest* made = MadeBefore(draft.state(), command.request_id)) {
    const bool same = made->kind == KeptRequest::Kind::kEnqueueTrial &&
                      draft.At(made->trials.front()).params == params;
    if (!same) return RequestReused(command.request_id);
    return draft.Take(Reply(EnqueueReply{draft.Share(made->trials.front())}));
  }
  if (draft.state().state == StudyState::kStopped) return StudyStopped("EnqueueTrial");
  TRY(Check(draft.spec().space, params));
  const auto count = static_cast<int64_t>(draft.study().trials.size());
  if (count >= kMaxTrialsPerStudy) {
    return Refuse(StatusCode::kResourceExhausted, "TOO_MANY_TRIALS", draft.spec().name,
                  "the study holds " + std::to_string(kMaxTrialsPerStudy) + " trials already",
                  "go on in another study");
  }
  Proposal proposal;
  proposal.params = params;
  proposal.why = "enqueued by hand";
  draft.Emit(TrialCreated{count + 1, 0, std::move(proposal), command.request_id});
  GoOn(draft, "a trial was enqueued by hand");
  return draft.Take(Reply(EnqueueReply{draft.Share(count + 1)}));
}

StatusOr<Outcome> Decide(Draft& draft, const RetryCommand& command) {
  TRY(CheckId(command.request_id, "request_id", true));
  const std::set<TrialId> asked(command.trials.begin(), command.trials.end());
  if (const KeptRequest* made = MadeBefore(draft.state(), command.request_id)) {
    const std::set<TrialId> queued(made->trials.begin(), made->trials.end());
    const bool same =
        made->kind == KeptRequest::Kind::kRetryTrials && (asked.empty() || asked == queued);
    if (!same) return RequestReused(command.request_id);
    return draft.Take(Reply(RetryReply{made->trials}));
  }
  if (draft.state().state == StudyState::kStopped) return StudyStopped("RetryTrials");
  std::set<TrialId> chosen = asked;
  for (const TrialId id : chosen) {
    const Trial* trial = draft.study().Find(id);
    if (trial == nullptr) {
      return Refuse(StatusCode::kNotFound, "TRIAL_NOT_FOUND", Named(id),
                    "the study has no " + Named(id), "list its trials");
    }
    if (trial->state != TrialState::kFailed) {
      return Refuse(StatusCode::kFailedPrecondition, "TRIAL_NOT_FAILED", Named(id),
                    Named(id) + " has not failed", "only failed trials can be tried again");
    }
  }
  if (command.trials.empty()) {
    for (const Cow<Trial>& trial : draft.study().trials) {
      if (trial->state == TrialState::kFailed) chosen.insert(trial->id);
    }
  }
  RetryReply reply;
  for (const TrialId id : chosen) {
    draft.Emit(TrialRequeued{id, "retried by hand", command.request_id});
    reply.queued.push_back(id);
  }
  if (!chosen.empty()) {
    GoOn(draft, "failed trials are tried again");
  } else if (!command.request_id.empty()) {
    draft.Emit(RetryFoundNone{command.request_id});
  }
  return draft.Take(Reply(std::move(reply)));
}

StatusOr<Outcome> Decide(Draft& draft, const SetStateCommand& command) {
  const StudyState from = draft.state().state;
  const StudyState to = command.state;
  if (to == StudyState::kFinished) {
    return Refuse(StatusCode::kInvalidArgument, "BAD_STATE", "state", "a study finishes by itself",
                  "ask for active, paused or stopped");
  }
  const bool over = from == StudyState::kFinished && to == StudyState::kStopped;
  if (from == to || over) return draft.Take(Reply(DoneReply{}));
  if (from == StudyState::kFinished) {
    return Refuse(StatusCode::kFailedPrecondition, "STUDY_FINISHED", draft.spec().name,
                  "the study is finished: " + draft.state().state_why,
                  "raise its budget (run with --resume), enqueue a trial or retry failed ones");
  }
  if (from == StudyState::kStopped && to == StudyState::kPaused) return StudyStopped("pause");
  if (to == StudyState::kActive) {
    draft.Emit(StudyStateSet{to, ""});
    FinishIfDone(draft);
    return draft.Take(Reply(DoneReply{}));
  }
  const std::string why = to == StudyState::kPaused ? "paused by hand" : "stopped by hand";
  draft.Emit(StudyStateSet{to, why});
  if (to == StudyState::kStopped) {
    for (const auto& [trial, lease] : draft.state().leases) {
      const Trial& live = draft.At(trial);
      const bool told = live.told && std::holds_alternative<Stop>(*live.told);
      if (live.state == TrialState::kRunning && !told) {
        draft.Emit(TrialTold{trial, Stop{"the study was stopped by hand"}});
      }
    }
  }
  return draft.Take(Reply(DoneReply{}));
}

StatusOr<Outcome> Decide(Draft& draft, const SetAttributesCommand& command) {
  if (command.trial != 0 && draft.study().Find(command.trial) == nullptr) {
    return Refuse(StatusCode::kNotFound, "TRIAL_NOT_FOUND", Named(command.trial),
                  "the study has no " + Named(command.trial), "list its trials");
  }
  const std::map<std::string, std::string>& before =
      command.trial == 0 ? draft.spec().attributes : draft.At(command.trial).attributes;
  std::map<std::string, std::string> after = before;
  for (const std::string& key : command.remove) after.erase(key);
  for (const auto& [key, value] : command.set) after[key] = value;
  if (after == before) return draft.Take(Reply(DoneReply{}));
  // What is only taken away may leave more than fits, in a file of an earlier release.
  if (!command.set.empty()) {
    TRY(CheckAttributes(after, command.trial == 0 ? "the study" : Named(command.trial)));
  }
  draft.Emit(AttributesSet{command.trial, command.set, command.remove});
  return draft.Take(Reply(DoneReply{}));
}

StatusOr<Outcome> Decide(Draft& draft, const ResumeCommand& command) {
  TRY(CheckId(command.request_id, "request_id", true));
  if (const KeptRequest* made = MadeBefore(draft.state(), command.request_id)) {
    const bool same = made->kind == KeptRequest::Kind::kCreateStudy ||
                      made->kind == KeptRequest::Kind::kResumeStudy;
    if (!same) return RequestReused(command.request_id);
    return draft.Take(Reply(DoneReply{}));
  }
  TRY(Validate(command.spec));
  const std::string differences = Differences(draft.spec(), command.spec);
  if (!differences.empty()) {
    return Refuse(StatusCode::kFailedPrecondition, "STUDY_DIFFERS", draft.spec().name,
                  "study '" + draft.spec().name + "' exists and differs: " + differences,
                  "restore what differs, or give the study another name");
  }
  draft.Emit(StudyResumed{command.spec.budget, command.spec.retries, command.request_id});
  const StudyState from = draft.state().state;
  const bool more =
      from != StudyState::kFinished || !NothingMore(draft.state(), draft.context().now).has_value();
  if (from != StudyState::kActive && more) {
    draft.Emit(StudyStateSet{StudyState::kActive, "resumed"});
  }
  FinishIfDone(draft);
  return draft.Take(Reply(DoneReply{}));
}

StatusOr<Outcome> Decide(Draft& draft, const TickCommand&) {
  ExpireLeases(draft);
  FinishIfDone(draft);
  return draft.Take(Reply(DoneReply{}));
}

StatusOr<Outcome> Decide(Draft& draft, const LoadedCommand&) {
  draft.pending().reset();
  for (const auto& [trial, lease] : draft.state().leases) {
    if (draft.At(trial).state == TrialState::kRunning) draft.RenewLease(trial);
  }
  return draft.Take(Reply(DoneReply{}));
}

}  // namespace jizi::tuner
