#include <algorithm>

#include "tuner-service/core/draft.h"

namespace jizi::tuner {
namespace {

int64_t Running(const StudyData& state) {
  return state.study.counts[TrialState::kRunning];
}

int64_t TrialCount(const StudyData& state) {
  return static_cast<int64_t>(state.study.trials.size());
}

bool WallClockOver(const StudyData& state, Timestamp now) {
  const std::optional<Seconds>& budget = state.study.spec->budget.wall_clock;
  return budget && Seconds(now - state.created) >= *budget;
}

int64_t TrialsLeft(const StudyData& state) {
  const int64_t cap =
      std::min(state.study.spec->budget.run_cap.value_or(kMaxTrialsPerStudy), kMaxTrialsPerStudy);
  return std::max<int64_t>(0, cap - TrialCount(state));
}

}  // namespace

bool MayCreate(const StudyData& state, Timestamp now) {
  return (state.state == StudyState::kActive || state.state == StudyState::kPaused) &&
         !state.target_reached && !WallClockOver(state, now) && TrialsLeft(state) > 0;
}

std::optional<std::string> NothingMore(const StudyData& state, Timestamp now) {
  if (state.target_reached) {
    return "the target of '" + state.study.spec->Metric()->name + "' was reached by " +
           Named(*state.target_reached);
  }
  if (WallClockOver(state, now)) return "the wall-clock budget is used up";
  if (state.exhausted) {
    return state.exhausted_why.empty() ? "the scheduler has nothing more to try"
                                       : state.exhausted_why;
  }
  // A paused trial may be resumed at the cap: it counts trials, not attempts.
  if (TrialsLeft(state) == 0 && state.study.counts[TrialState::kPaused] == 0) {
    const std::optional<int64_t>& cap = state.study.spec->budget.run_cap;
    if (cap && *cap <= kMaxTrialsPerStudy) {
      return "run_cap of " + std::to_string(*cap) + " reached";
    }
    return "a study holds at most " + std::to_string(kMaxTrialsPerStudy) + " trials";
  }
  if (state.scheduler_waits) {
    return "the scheduler waits for a change" +
           (state.scheduler_waits->empty() ? "" : " (" + *state.scheduler_waits + ")");
  }
  return std::nullopt;
}

void FinishIfDone(Draft& draft) {
  const StudyData& state = draft.state();
  if (state.state != StudyState::kActive || state.pending || Running(state) > 0 ||
      !state.queue.empty()) {
    return;
  }
  std::optional<std::string> why = NothingMore(state, draft.context().now);
  if (!why) return;
  // Nothing is left that could change: the wait has no end.
  const bool waits = state.scheduler_waits && !state.exhausted;
  if (waits) *why += ", and nothing is running or queued";
  draft.Emit(StudyStateSet{StudyState::kFinished, Clip(*why)});
}

namespace {

// A successor waits for the worker that holds its predecessor; that one takes it in the same
// process.
bool IsReserved(const Study& study, const Trial& trial, const std::string& worker) {
  if (!trial.successor_of || !trial.attempts.empty()) return false;
  const Trial& before = *study.Find(*trial.successor_of);
  return before.state == TrialState::kRunning && before.attempts.back().worker != worker;
}

bool IsForMe(const Study& study, const Trial& trial, const std::string& worker) {
  if (!trial.successor_of || !trial.attempts.empty()) return false;
  const Attempt* last = study.Find(*trial.successor_of)->LastAttempt();
  return last != nullptr && last->worker == worker;
}

std::vector<TrialId> Pick(const StudyData& state, const std::string& worker, size_t count) {
  std::vector<TrialId> picked;
  // Successors are never among the first of the queue: those were enqueued by hand or have been
  // tried.
  for (size_t i = state.queue_first; i < state.queue.size() && picked.size() < count; ++i) {
    const Trial& trial = *state.study.Find(state.queue[i]);
    if (IsForMe(state.study, trial, worker)) picked.push_back(trial.id);
  }
  const size_t successors = picked.size();
  for (const TrialId id : state.queue) {
    if (picked.size() >= count) break;
    const auto end = picked.begin() + static_cast<std::ptrdiff_t>(successors);
    if (std::find(picked.begin(), end, id) != end) continue;
    if (!IsReserved(state.study, *state.study.Find(id), worker)) picked.push_back(id);
  }
  return picked;
}

SuggestReply Rebuild(const Draft& draft, const RecordedSuggestion& recorded) {
  if (recorded.wait) return *recorded.wait;
  if (recorded.finished) return *recorded.finished;
  std::vector<Assigned> assigned;
  for (const auto& [trial, attempt] : recorded.assigned) {
    assigned.push_back(AssignedOf(draft, trial, attempt));
  }
  return assigned;
}

Suggested Answer(Draft& draft, const SuggestCommand& command, RecordedSuggestion recorded) {
  SuggestReply reply = Rebuild(draft, recorded);
  draft.Emit(CallAnswered{command.worker, 0, 0, command.call, std::move(recorded)});
  return {std::move(reply), std::nullopt};
}

// Not recorded: it gave nothing, so the same number may be decided anew. An idle study would
// otherwise grow its log with every poll of every worker.
Suggested AnswerWait(std::string why) {
  return {SuggestReply(Wait{Seconds(1), std::move(why)}), std::nullopt};
}

Suggested AnswerFinished(Draft& draft, const SuggestCommand& command) {
  RecordedSuggestion recorded;
  const std::string& why = draft.state().state_why;
  const bool stopped = draft.state().state == StudyState::kStopped;
  recorded.finished = Finished{!why.empty() ? why : stopped ? "the study is stopped" : "finished"};
  return Answer(draft, command, std::move(recorded));
}

// The decision under way, or a new one.
Suggested Park(Draft& draft, size_t missing) {
  if (draft.state().pending) return {};
  const StudyData& state = draft.state();
  int64_t count = static_cast<int64_t>(missing);
  if (state.study.counts[TrialState::kPaused] == 0) count = std::min(count, TrialsLeft(state));
  const NeedDecision need{state.decisions + 1, state.log_position, static_cast<int>(count)};
  draft.pending() = StudyData::Pending{need.decision, need.log_position, need.count};
  return {std::nullopt, need};
}

}  // namespace

SuggestReply Repeat(Draft& draft, const RecordedReply& recorded) {
  const auto* suggestion = std::get_if<RecordedSuggestion>(&recorded);
  CHECK(suggestion != nullptr);  // Workers are answered with nothing else.
  for (const auto& [trial, attempt] : suggestion->assigned) {
    const Attempt& made = draft.At(trial).attempts[static_cast<size_t>(attempt - 1)];
    HoldIfMine(draft, LeaseRef{trial, attempt, made.token});
  }
  return Rebuild(draft, *suggestion);
}

StatusOr<const RecordedReply*> AdmitSuggest(const StudyData& state, const SuggestCommand& command) {
  TRY(CheckId(command.worker, "worker", false));
  const auto found = state.workers.find(command.worker);
  const LastCall* last = found == state.workers.end() ? nullptr : &found->second;
  const std::string whose = "worker '" + command.worker + "'";
  if (TRY(PlaceOf(last, command.call, whose, Gaps::kAllowed)) == Place::kRepeat) {
    return &last->reply;
  }
  if (command.count < 1 || command.count > kMaxSuggestions) {
    return Refuse(StatusCode::kInvalidArgument, "BAD_COUNT", "count",
                  "count is " + std::to_string(command.count),
                  "ask for 1 to " + std::to_string(kMaxSuggestions) + " trials");
  }
  if (!(command.lease.count() > 0) || command.lease > kMaxLease) {
    return Refuse(StatusCode::kInvalidArgument, "BAD_LEASE", "lease_s",
                  "a lease of " + std::to_string(command.lease.count()) + " s cannot be given",
                  "ask for more than 0 s and at most 30 days");
  }
  if (command.tokens.size() < static_cast<size_t>(command.count)) {
    return Refuse(StatusCode::kInternal, "TOKENS_MISSING", "tokens",
                  "fewer lease tokens than trials were made for this call",
                  "report this as a bug of Jizi");
  }
  if (last == nullptr && state.workers.size() >= kMaxWorkersPerStudy) {
    return Refuse(
        StatusCode::kResourceExhausted, "TOO_MANY_WORKERS", whose,
        "the study has seen " + std::to_string(kMaxWorkersPerStudy) + " different workers",
        "let workers keep their names");
  }
  return static_cast<const RecordedReply*>(nullptr);
}

Suggested Serve(Draft& draft, const SuggestCommand& command) {
  ExpireLeases(draft);
  FinishIfDone(draft);
  const StudyData& state = draft.state();
  if (state.state == StudyState::kStopped || state.state == StudyState::kFinished) {
    return AnswerFinished(draft, command);
  }
  if (state.state == StudyState::kPaused) {
    return AnswerWait("the study is paused");
  }
  const auto count = static_cast<size_t>(command.count);
  const std::vector<TrialId> picked = Pick(state, command.worker, count);
  const std::optional<std::string> nothing_more = NothingMore(state, draft.context().now);
  // With a decision under way, what it brings may serve this call too.
  if (picked.size() < count && (state.pending || !nothing_more)) {
    return Park(draft, count - picked.size());
  }
  if (picked.empty()) {
    return AnswerWait(*nothing_more + "; " + std::to_string(Running(state)) +
                      " running trials may still come back");
  }
  RecordedSuggestion recorded;
  for (size_t i = 0; i < picked.size(); ++i) {
    const Trial& trial = draft.At(picked[i]);
    const int attempt = static_cast<int>(trial.attempts.size()) + 1;
    recorded.assigned.emplace_back(trial.id, attempt);
    const bool anew = !trial.attempts.empty() && trial.attempts.back().next_anew;
    draft.Emit(TrialAssigned{trial.id, attempt, command.worker, command.tokens[i], command.lease,
                             anew ? trial.warm_start : StartOf(trial)});
    draft.StartLease(picked[i], command.lease);
  }
  return Answer(draft, command, std::move(recorded));
}

StatusOr<Outcome> Decide(Draft& draft, const SuggestCommand& command) {
  const RecordedReply* recorded = TRY(AdmitSuggest(draft.state(), command));
  if (recorded != nullptr) return draft.Take(Reply(Repeat(draft, *recorded)));
  Suggested suggested = Serve(draft, command);
  if (suggested.reply) return draft.Take(Reply(*std::move(suggested.reply)));
  Outcome outcome = draft.Take(std::nullopt);
  outcome.need = suggested.need;
  outcome.parked = command;
  return outcome;
}

StatusOr<Outcome> Decide(Draft& draft, const AnswerCommand& command) {
  const StudyData& state = draft.state();
  if (!state.pending || state.pending->decision != command.decision) {
    return Refuse(StatusCode::kFailedPrecondition, "STALE_DECISION",
                  "decision " + std::to_string(command.decision), "no such decision is under way",
                  "drop it");
  }
  draft.pending().reset();
  // Nobody's bug: this build does not know the method, and the answer says so.
  if (command.answer.status().code() == StatusCode::kUnimplemented) return command.answer.status();
  if (!command.answer.ok()) {
    return Refuse(StatusCode::kInternal, "SCHEDULER_FAILED", draft.spec().method,
                  "the scheduler of method '" + draft.spec().method +
                      "' failed: " + std::string(command.answer.status().message()),
                  "report this as a bug of Jizi; running trials go on");
  }
  const Decision& decision = *command.answer;
  TRY(CheckDecision(state, decision, command.count));
  // The number comes first in the log. What it says about the future is known only after the trials
  // were judged, so count them here.
  Decided decided{command.decision, command.log_position, command.count, decision.next,
                  Clip(decision.why)};
  const bool open = state.state == StudyState::kActive;
  const int64_t room = MayCreate(state, draft.context().now) && open ? TrialsLeft(state) : 0;
  const auto proposed = static_cast<int64_t>(decision.start.size());
  const bool cut = room < proposed || (!open && !decision.resume.empty());
  const bool resumes =
      open && std::any_of(decision.resume.begin(), decision.resume.end(), [&](TrialId trial) {
        return draft.At(trial).state == TrialState::kPaused;
      });
  if (cut) decided.next = Next::kMore;  // It is not exhausted: what it gave was not taken.
  const bool nothing = std::min(room, proposed) == 0 && !resumes;
  if (nothing && decided.next == Next::kMore) {
    decided.next = Next::kWait;  // Asking again at once would go on for ever.
    if (decided.why.empty()) decided.why = "nothing of its last answer could be used";
  }
  // A wait that was decided before the last change, when no other change can come: ask once more.
  const bool idle = Running(state) == 0 && state.queue.empty();
  const bool outdated = state.log_position != command.log_position;
  if (decided.next == Next::kWait && nothing && idle && outdated && open)
    decided.next = Next::kMore;
  draft.Emit(std::move(decided));
  Decision taken = decision;
  taken.start.resize(static_cast<size_t>(std::min(room, proposed)));
  if (!open) taken.resume.clear();
  Enact(draft, taken, command.decision);
  FinishIfDone(draft);
  return draft.Take(Reply(DoneReply{}));
}

}  // namespace jizi::tuner
