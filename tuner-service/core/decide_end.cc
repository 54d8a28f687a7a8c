// How attempts end: Complete, Release, and a lease that ran out.

#include <cmath>
#include <set>

#include "tuner-service/core/draft.h"

namespace jizi::tuner {
namespace {

// What a finished program's numbers make of the trial.
struct Verdict {
  TrialState state = TrialState::kCompleted;
  std::string why;
};
// What it reported instead: most often a metric of another name.
std::string NamesReported(const Trial& trial) {
  constexpr size_t kLastMeasurements = 1000;
  constexpr size_t kMostNames = 10;
  const size_t count = trial.measurements.size();
  std::set<std::string> names;
  for (size_t i = count; i > 0 && count - i < kLastMeasurements; --i) {
    for (const Metric& metric : trial.measurements[i - 1].metrics) {
      if (!metric.name.starts_with("jizi/")) names.insert(metric.name);  // The helper's own.
    }
  }
  if (names.empty()) return "; it reported nothing";
  std::string text;
  size_t listed = 0;
  for (const std::string& name : names) {
    if (listed++ == kMostNames) break;
    text += (text.empty() ? "" : ", ") + name;
  }
  return "; reported: " + text + (names.size() > kMostNames ? ", ..." : "");
}

Verdict Judge(const StudySpec& spec, const Trial& trial) {
  const MetricSpec* metric = spec.Metric();
  if (metric == nullptr) return {};
  const double* last = nullptr;
  for (size_t i = trial.measurements.size(); i > 0 && last == nullptr; --i) {
    last = Find(trial.measurements[i - 1], metric->name);
  }
  if (last == nullptr) {
    return {TrialState::kFailed, "the program ended well but never reported the metric '" +
                                     metric->name + "'" + NamesReported(trial)};
  }
  const std::optional<double> objective = ObjectiveOf(spec, trial);
  if (!std::isfinite(*last) || !objective || !std::isfinite(*objective)) {
    return {TrialState::kInfeasible, "the final value of '" + metric->name + "' is not finite"};
  }
  return {};
}

struct Plan {
  TrialState state = TrialState::kQueued;
  std::string why;
};

// After Stop and Pause an end is that, whatever its code; so a stopped trial is not tried again
// when its worker dies.
std::optional<Plan> AsTold(const Trial& trial) {
  if (!trial.told) return std::nullopt;
  if (const auto* stop = std::get_if<Stop>(&*trial.told)) {
    return Plan{TrialState::kStopped, stop->why};
  }
  if (const auto* pause = std::get_if<Pause>(&*trial.told)) {
    return Plan{TrialState::kPaused, pause->why};
  }
  return std::nullopt;
}

Plan AfterFailure(const StudySpec& spec, const Trial& trial, std::string why) {
  const bool again = trial.failures < spec.retries.max_retries;
  return {again ? TrialState::kQueued : TrialState::kFailed, std::move(why)};
}

Plan AfterLoss(const StudySpec& spec, const Trial& trial, std::string why) {
  if (trial.losses < spec.retries.max_lost_workers) return {TrialState::kQueued, std::move(why)};
  return {TrialState::kFailed,
          "lost " + std::to_string(trial.losses + 1) + " workers, the last: " + why};
}

}  // namespace

void EndAttempt(Draft& draft, TrialId id, AttemptEnd end, std::string why, bool infeasible) {
  const Trial& trial = draft.At(id);
  why = Clip(why);
  Plan plan{TrialState::kQueued, why};
  bool next_anew = false;
  if (const std::optional<Plan> told = AsTold(trial)) {
    plan = *told;
    if (end != AttemptEnd::kLost && end != AttemptEnd::kReleased) {
      end = plan.state == TrialState::kStopped ? AttemptEnd::kStopped : AttemptEnd::kPaused;
    }
  } else if (infeasible) {
    plan.state = TrialState::kInfeasible;
  } else if (end == AttemptEnd::kFinished) {
    const Verdict verdict = Judge(draft.spec(), trial);
    plan = {verdict.state, verdict.why.empty() ? why : verdict.why};
    if (verdict.state == TrialState::kFailed) {
      end = AttemptEnd::kFailed;
      next_anew = true;
      plan = AfterFailure(draft.spec(), trial, verdict.why);
    }
  } else if (end == AttemptEnd::kFailed) {
    plan = AfterFailure(draft.spec(), trial, why);
  } else if (end == AttemptEnd::kLost) {
    plan = AfterLoss(draft.spec(), trial, why);
  }
  if (plan.state == TrialState::kQueued && trial.attempts.size() >= kMaxAttemptsPerTrial) {
    plan = {TrialState::kFailed, "begun " + std::to_string(kMaxAttemptsPerTrial) +
                                     " times without an end, the last: " + why};
  }
  AttemptEnded ended{id,       trial.attempts.back().number, end, Clip(plan.why), plan.state, {},
                     next_anew};
  if (plan.state == TrialState::kCompleted || plan.state == TrialState::kStopped) {
    ended.objective = ObjectiveOf(draft.spec(), trial);
    if (ended.objective && !std::isfinite(*ended.objective)) ended.objective.reset();
  }
  draft.Emit(std::move(ended));
  if (plan.state != TrialState::kQueued) {
    draft.Changed(id, Ended{});
  } else if (end == AttemptEnd::kLost) {
    draft.Changed(id, Lost{});
  }
}

StatusOr<Outcome> Decide(Draft& draft, const ReleaseCommand& command) {
  const TrialId id = command.lease.trial;
  const RecordedReply* recorded = TRY(Admit(draft.state(), command.lease, command.call));
  if (recorded != nullptr) return draft.Take(Reply(ReleaseReply{}));
  Hold(draft, command.lease);
  draft.Emit(CallAnswered{"", id, command.lease.attempt, command.call, RecordedDone{}});
  const std::string why = command.why.empty() ? "given back by its worker" : command.why;
  EndAttempt(draft, id, AttemptEnd::kReleased, why, false);
  return draft.Take(Reply(ReleaseReply{}));
}

namespace {

// Was this attempt completed already, by whatever call? Then a repeat changes nothing.
bool IsCompleted(const Trial& trial, int attempt) {
  const AttemptEnd end = trial.attempts[static_cast<size_t>(attempt - 1)].end;
  return end != AttemptEnd::kRunning && end != AttemptEnd::kLost && end != AttemptEnd::kReleased;
}

void End(Draft& draft, const CompleteCommand& command) {
  const TrialId id = command.lease.trial;
  Hold(draft, command.lease);
  std::string note;
  if (command.final_measurement) {
    const std::vector<Rejected> rejected =
        Record(draft, id, {*command.final_measurement}, std::nullopt, true);
    if (!rejected.empty()) note = "final measurement rejected: " + rejected.front().why;
  }
  const auto noted = [&note](const std::string& why) {
    return note.empty() ? why : (why.empty() ? note : why + "; " + note);
  };
  if (const auto* failed = std::get_if<FailedOutcome>(&command.outcome)) {
    const std::string why = failed->why.empty() ? "the program failed" : failed->why;
    EndAttempt(draft, id, AttemptEnd::kFailed, noted(why), false);
  } else if (const auto* infeasible = std::get_if<InfeasibleOutcome>(&command.outcome)) {
    const std::string why =
        infeasible->why.empty() ? "the program found it infeasible" : infeasible->why;
    EndAttempt(draft, id, AttemptEnd::kFinished, noted(why), true);
  } else {
    EndAttempt(draft, id, AttemptEnd::kFinished, noted(""), false);
  }
}

// May the attempt be ended by this call? False: it is ended so already.
StatusOr<bool> AdmitComplete(const StudyData& state, const CompleteCommand& command) {
  const Standing standing = TRY(StandingOf(state, command.lease));
  const Trial& trial = *state.study.Find(command.lease.trial);
  if (standing == Standing::kEnded) {
    if (IsCompleted(trial, command.lease.attempt)) return false;
    return IsEnded(trial.state) ? TrialEnded(trial) : LeaseLost(command.lease);
  }
  const LastCall* last = LastCallOf(state, command.lease);
  const std::string whose =
      Named(command.lease.trial) + ", attempt " + std::to_string(command.lease.attempt);
  if (TRY(PlaceOf(last, command.call, whose)) == Place::kRepeat) {
    // The number and the digest of a call that did not complete: a caller that mixes up its calls.
    return Refuse(StatusCode::kInvalidArgument, "SEQUENCE_REUSED", whose,
                  "this number was used for another call of the attempt",
                  "give each call its own number; Attach tells the next");
  }
  return true;
}

}  // namespace

StatusOr<Outcome> Decide(Draft& draft, const CompleteCommand& command) {
  // Both halves make their refusals first, so that a refused call has done nothing.
  const bool goes_on = TRY(AdmitComplete(draft.state(), command));
  const RecordedReply* recorded = nullptr;
  if (command.next) recorded = TRY(AdmitSuggest(draft.state(), *command.next));
  if (goes_on) End(draft, command);
  FinishIfDone(draft);
  CompleteReply reply;
  Suggested suggested;
  if (recorded != nullptr) {
    reply.next = Repeat(draft, *recorded);
  } else if (command.next) {
    suggested = Serve(draft, *command.next);
    reply.next = std::move(suggested.reply);
  }
  reply.trial = draft.Share(command.lease.trial);
  if (!command.next || reply.next) return draft.Take(Reply(std::move(reply)));
  Outcome outcome = draft.Take(std::nullopt);
  outcome.need = suggested.need;
  outcome.parked = command.next;
  outcome.completed = std::move(reply);
  return outcome;
}

}  // namespace jizi::tuner
