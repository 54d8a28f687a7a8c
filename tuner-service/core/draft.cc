#include "tuner-service/core/draft.h"

#include <algorithm>
#include <set>

namespace jizi::tuner {

const Cow<Trial>& Draft::Share(TrialId trial) const {
  return state_.study.trials[static_cast<size_t>(trial - 1)];
}

void Draft::Emit(Event event) {
  if (events_.empty()) {
    ++state_.log_position;
    state_.last_event = std::max(state_.last_event, context_.now);
  }
  ApplyEvent(state_, event, state_.last_event);
  // Measurements in a row are one event: they were applied one by one only for OnChange.
  if (auto* added = std::get_if<MeasurementsReported>(&event); added != nullptr && changed()) {
    auto* last = std::get_if<MeasurementsReported>(&events_.back());
    if (last != nullptr && last->trial == added->trial) {
      for (Measurement& one : added->measurements) last->measurements.push_back(std::move(one));
      if (added->total_steps) last->total_steps = added->total_steps;
      return;
    }
  }
  events_.push_back(std::move(event));
}

void Draft::Changed(TrialId id, const Change& change) {
  const Trial& trial = At(id);
  const int attempt = static_cast<int>(trial.attempts.size());
  const int rollback = trial.attempts.empty() ? 0 : trial.attempts.back().rollbacks;
  const int64_t step = trial.measurements.empty() ? -1 : trial.measurements.back().step;
  const Rng rng =
      Rng::ForChange(spec().seed, id, attempt, rollback, step, static_cast<int>(change.index()));
  const StatusOr<Decision> answer =
      context_.scheduler.OnChange(study(), id, change, rng, context_.memo);
  Status sane = answer.ok() ? CheckDecision(state_, *answer, -1) : answer.status();
  if (!sane.ok()) {
    scheduler_errors_.push_back(std::move(sane));
    return;
  }
  Enact(*this, *answer, -1);
}

void Draft::StartLease(TrialId trial, Seconds length) {
  state_.leases[trial].length = length;
  RenewLease(trial);
}

void Draft::RenewLease(TrialId trial) {
  StudyData::Lease& lease = state_.leases[trial];
  lease.deadline =
      context_.steady_now + std::chrono::duration_cast<SteadyTime::duration>(lease.length);
}

Seconds Draft::LeaseOf(TrialId id, int attempt) const {
  const Trial& trial = At(id);
  const bool live = trial.state == TrialState::kRunning && trial.attempts.back().number == attempt;
  const auto found = state_.leases.find(id);
  return live && found != state_.leases.end() ? found->second.length : Seconds(0);
}

Outcome Draft::Take(std::optional<Reply> reply) {
  Outcome outcome;
  outcome.events = std::move(events_);
  outcome.scheduler_errors = std::move(scheduler_errors_);
  outcome.reply = std::move(reply);
  return outcome;
}

Status CheckDecision(const StudyData& state, const Decision& decision, int count) {
  const auto wrong = [&state](const std::string& what) {
    return Refuse(StatusCode::kInternal, "SCHEDULER_FAILED", state.study.spec->method,
                  "the scheduler of method '" + state.study.spec->method + "' " + what,
                  "report this as a bug of Jizi; the study itself is unharmed");
  };
  const auto asked = static_cast<size_t>(std::max(count, 0));
  if (count >= 0 && decision.start.size() + decision.resume.size() > asked) {
    return wrong("gave more than it was asked for");
  }
  for (const Proposal& proposal : decision.start) {
    const Status inside = Check(state.study.spec->space, proposal.params);
    if (!inside.ok()) return wrong("left the search space: " + std::string(inside.message()));
    if (proposal.warm_start && state.study.Find(proposal.warm_start->trial) == nullptr) {
      return wrong("starts from " + Named(proposal.warm_start->trial) + ", which is not there");
    }
    if (proposal.successor_of && state.study.Find(*proposal.successor_of) == nullptr) {
      return wrong("succeeds " + Named(*proposal.successor_of) + ", which is not there");
    }
    if (proposal.tags.size() > kMaxAttributes) return wrong("gave too many tags");
  }
  std::set<TrialId> resumed;
  for (const TrialId trial : decision.resume) {
    if (state.study.Find(trial) == nullptr)
      return wrong("resumes " + Named(trial) + ", which is not there");
    if (!resumed.insert(trial).second) return wrong("resumes " + Named(trial) + " twice");
  }
  for (const auto& [trial, directive] : decision.tell) {
    if (state.study.Find(trial) == nullptr)
      return wrong("tells " + Named(trial) + ", which is not there");
  }
  return absl::OkStatus();
}

namespace {

// Has the program said that it can do this? A Stop needs no consent: the trial is Stopped when it
// ends.
bool CanDo(const Trial& trial, const Directive& directive) {
  const Capabilities& can = trial.attempts.back().capabilities;
  if (std::holds_alternative<Pause>(directive)) return can.pause;
  const auto* go_on = std::get_if<Continue>(&directive);
  if (go_on == nullptr) return true;
  if (go_on->roll_back_to && !can.roll_back) return false;
  return std::all_of(go_on->set.begin(), go_on->set.end(), [&can](const auto& change) {
    return std::find(can.changeable.begin(), can.changeable.end(), change.first) !=
           can.changeable.end();
  });
}

void Tell(Draft& draft, TrialId id, const Directive& directive) {
  const Trial& trial = draft.At(id);
  if (trial.state != TrialState::kRunning || !CanDo(trial, directive)) return;
  const auto* go_on = std::get_if<Continue>(&directive);
  if (go_on != nullptr && go_on->set.empty() && !go_on->roll_back_to) return;
  Directive joined = trial.told ? Join(*trial.told, directive) : directive;
  std::visit([](auto& said) { said.why = Clip(said.why); }, joined);
  if (trial.told && *trial.told == joined) return;
  draft.Emit(TrialTold{id, std::move(joined)});
}

}  // namespace

void Enact(Draft& draft, const Decision& decision, int64_t number) {
  for (const auto& [trial, directive] : decision.tell) Tell(draft, trial, directive);
  const bool handing_out = draft.state().state != StudyState::kStopped;
  for (const TrialId trial : decision.resume) {
    // It may have been resumed since the scheduler looked.
    if (!handing_out || draft.At(trial).state != TrialState::kPaused) continue;
    draft.Emit(TrialRequeued{trial, "resumed by the scheduler", ""});
  }
  for (const Proposal& proposal : decision.start) {
    if (!MayCreate(draft.state(), draft.context().now)) break;
    TrialCreated created{static_cast<TrialId>(draft.study().trials.size()) + 1, number, proposal,
                         ""};
    created.proposal.why = Clip(proposal.why);
    draft.Emit(std::move(created));
  }
}

Directive Join(const Directive& first, const Directive& second) {
  if (std::holds_alternative<Stop>(first)) return first;
  if (std::holds_alternative<Stop>(second)) return second;
  if (std::holds_alternative<Pause>(first)) return first;
  if (std::holds_alternative<Pause>(second)) return second;
  Continue joined = std::get<Continue>(second);
  joined.set.insert(std::get<Continue>(first).set.begin(), std::get<Continue>(first).set.end());
  if (!joined.roll_back_to) joined.roll_back_to = std::get<Continue>(first).roll_back_to;
  return joined;
}

std::string Clip(const std::string& why) {
  if (why.size() <= kMaxWhyBytes) return why;
  constexpr size_t kHead = kMaxWhyBytes / 4;
  constexpr char kCut[] = " ... ";
  const auto inside_character = [&why](size_t at) {
    return at < why.size() && (static_cast<unsigned char>(why[at]) & 0xC0) == 0x80;
  };
  size_t head = kHead;
  while (head > 0 && inside_character(head)) --head;
  size_t tail = why.size() - (kMaxWhyBytes - kHead - (sizeof(kCut) - 1));
  while (tail < why.size() && inside_character(tail)) ++tail;
  return why.substr(0, head) + kCut + why.substr(tail);
}

Status Refuse(StatusCode kind, std::string code, std::string subject, const std::string& message,
              std::string mend) {
  return Error(kind, message, {std::move(code), std::move(subject), std::move(mend)});
}

std::string Named(TrialId trial) {
  return "trial " + std::to_string(trial);
}

}  // namespace jizi::tuner
