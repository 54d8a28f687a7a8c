#include <algorithm>
#include <cmath>
#include <memory>

#include "tuner-service/core/draft.h"

namespace jizi::tuner {
namespace {

Trial& MutableTrial(StudyData& state, TrialId trial) {
  CHECK(trial >= 1 && static_cast<size_t>(trial) <= state.study.trials.size());
  return state.study.trials.Mutable(static_cast<size_t>(trial - 1)).Mutable();
}

Attempt& MutableAttempt(Trial& trial, int attempt) {
  CHECK(attempt >= 1 && static_cast<size_t>(attempt) <= trial.attempts.size());
  return trial.attempts[static_cast<size_t>(attempt - 1)];
}

void SetTrialState(StudyData& state, Trial& trial, TrialState to) {
  --state.study.counts[trial.state];
  ++state.study.counts[to];
  trial.state = to;
}

enum class Turn { kFirst, kLast };

void Queue(StudyData& state, TrialId trial, Turn turn) {
  if (turn == Turn::kFirst) {  // Behind those that came first before it.
    state.queue.insert(state.queue.begin() + static_cast<std::ptrdiff_t>(state.queue_first), trial);
    ++state.queue_first;
  } else {
    state.queue.push_back(trial);
  }
}

void Dequeue(StudyData& state, TrialId trial) {
  const auto place = std::find(state.queue.begin(), state.queue.end(), trial);
  CHECK(place != state.queue.end());
  if (static_cast<size_t>(place - state.queue.begin()) < state.queue_first) --state.queue_first;
  state.queue.erase(place);
}

void KeepRequest(StudyData& state, const std::string& request_id, KeptRequest::Kind kind,
                 TrialId made = 0) {
  if (request_id.empty()) return;
  KeptRequest& request =
      state.requests.try_emplace(request_id, KeptRequest{kind, {}}).first->second;
  if (made != 0) request.trials.push_back(made);
}

// From `step` on, a line of training was given up: what was measured and saved after it no longer
// counts.
void ForgetAfter(Trial& trial, int64_t step) {
  size_t keep = trial.measurements.size();
  while (keep > 0 && trial.measurements[keep - 1].step > step) --keep;
  trial.measurements.Truncate(keep);
  std::erase_if(trial.checkpoints, [step](const Checkpoint& c) { return c.step > step; });
}

void ConsiderBest(StudyData& state, const Trial& trial) {
  const MetricSpec* metric = state.study.spec->Metric();
  if (metric == nullptr || !trial.objective || !std::isfinite(*trial.objective)) return;
  if (trial.state != TrialState::kCompleted && trial.state != TrialState::kStopped) return;
  if (state.study.best) {
    const Trial& best = *state.study.Find(*state.study.best);
    if (IsBetter(metric->goal, *best.objective, *trial.objective)) return;
    const bool equal = !IsBetter(metric->goal, *trial.objective, *best.objective);
    if (equal && best.id < trial.id) return;
  }
  state.study.best = trial.id;
}

// metric.target: judged by the study's objective after each measurement of it, however calls were
// batched and events joined.
void ConsiderTarget(StudyData& state, const Trial& trial, const Measurement& added) {
  const MetricSpec* metric = state.study.spec->Metric();
  if (metric == nullptr || !metric->target || state.target_reached) return;
  const double* value = Find(added, metric->name);
  if (value == nullptr) return;
  const bool by_mean = state.study.spec->objective.kind == ObjectiveKind::kMeanOfLast;
  const double judged = by_mean ? *ObjectiveOf(*state.study.spec, trial) : *value;
  if (std::isfinite(judged) && !IsBetter(metric->goal, *metric->target, judged)) {
    state.target_reached = trial.id;
  }
}

void On(StudyData& state, const StudyCreated& event, Timestamp time) {
  state.study.spec = std::make_shared<const StudySpec>(event.spec);
  state.created = time;
  KeepRequest(state, event.request_id, KeptRequest::Kind::kCreateStudy);
}

void On(StudyData& state, const StudyResumed& event, Timestamp) {
  auto spec = std::make_shared<StudySpec>(*state.study.spec);
  spec->budget = event.budget;
  spec->retries = event.retries;
  state.study.spec = std::move(spec);
  state.exhausted = false;
  state.exhausted_why.clear();
  state.scheduler_waits.reset();
  KeepRequest(state, event.request_id, KeptRequest::Kind::kResumeStudy);
}

void On(StudyData& state, const StudyStateSet& event, Timestamp) {
  state.state = event.state;
  state.state_why = event.why;
  state.scheduler_waits.reset();
}

void On(StudyData&, const StudyDeleted&, Timestamp) {}

void On(StudyData& state, const Decided& event, Timestamp) {
  state.decisions = event.decision;
  state.scheduler_waits.reset();
  if (event.next == Next::kWait) state.scheduler_waits = event.why;
  if (event.next == Next::kExhausted) {
    state.exhausted = true;
    state.exhausted_why = event.why;
  }
}

void On(StudyData& state, const TrialCreated& event, Timestamp time) {
  CHECK(event.trial == static_cast<TrialId>(state.study.trials.size()) + 1);
  Trial trial;
  trial.id = event.trial;
  trial.params = event.proposal.params;
  trial.warm_start = event.proposal.warm_start;
  trial.successor_of = event.proposal.successor_of;
  trial.tags = event.proposal.tags;
  trial.why = event.proposal.why;
  trial.decision = event.decision;
  trial.created = time;
  state.study.trials.push_back(Cow<Trial>(std::move(trial)));
  ++state.study.counts[TrialState::kQueued];
  Queue(state, event.trial, event.decision == 0 ? Turn::kFirst : Turn::kLast);
  if (event.decision <= 0) state.scheduler_waits.reset();
  KeepRequest(state, event.request_id, KeptRequest::Kind::kEnqueueTrial, event.trial);
}

void On(StudyData& state, const TrialAssigned& event, Timestamp time) {
  Trial& trial = MutableTrial(state, event.trial);
  CHECK(event.attempt == static_cast<int>(trial.attempts.size()) + 1);
  Attempt attempt;
  attempt.number = event.attempt;
  attempt.worker = event.worker;
  attempt.token = event.token;
  attempt.started = time;
  attempt.start_step = event.start ? event.start->checkpoint.step : 0;
  const bool own = event.start && event.start->trial == event.trial;
  ForgetAfter(trial, own ? event.start->checkpoint.step : -1);
  if (event.attempt == 1) trial.started = time;
  trial.attempts.push_back(std::move(attempt));
  Dequeue(state, event.trial);
  SetTrialState(state, trial, TrialState::kRunning);
  state.leases[event.trial] = {SteadyTime::max(), event.lease};
  state.attempts.erase({event.trial, event.attempt - 2});
}

void On(StudyData& state, const AttemptReclaimed& event, Timestamp) {
  Trial& trial = MutableTrial(state, event.trial);
  Attempt& attempt = MutableAttempt(trial, event.attempt);
  attempt.end = AttemptEnd::kRunning;
  attempt.ended = {};
  attempt.why.clear();
  --trial.losses;  // It was not lost after all.
  Dequeue(state, event.trial);
  SetTrialState(state, trial, TrialState::kRunning);
  state.scheduler_waits.reset();
}

void On(StudyData& state, const AttemptAttached& event, Timestamp) {
  Trial& trial = MutableTrial(state, event.trial);
  if (event.capabilities) MutableAttempt(trial, event.attempt).capabilities = *event.capabilities;
  if (event.total_steps) trial.total_steps = event.total_steps;
  state.scheduler_waits.reset();
}

void On(StudyData& state, const MeasurementsReported& event, Timestamp) {
  Trial& trial = MutableTrial(state, event.trial);
  for (const Measurement& measurement : event.measurements) {
    trial.measurements.push_back(measurement);
    ConsiderTarget(state, trial, measurement);
  }
  if (event.total_steps) trial.total_steps = event.total_steps;
  state.scheduler_waits.reset();
}

void On(StudyData& state, const CheckpointRegistered& event, Timestamp) {
  MutableTrial(state, event.trial).checkpoints.push_back(event.checkpoint);
  state.scheduler_waits.reset();
}

void On(StudyData& state, const TrialTold& event, Timestamp) {
  MutableTrial(state, event.trial).told = event.directive;
}

void On(StudyData& state, const DirectiveDelivered& event, Timestamp) {
  Trial& trial = MutableTrial(state, event.trial);
  trial.told.reset();
  if (!event.rolled_back_to) return;
  ++trial.attempts.back().rollbacks;
  ForgetAfter(trial, *event.rolled_back_to);
}

void On(StudyData& state, const AttemptEnded& event, Timestamp time) {
  Trial& trial = MutableTrial(state, event.trial);
  Attempt& attempt = MutableAttempt(trial, event.attempt);
  attempt.end = event.end;
  attempt.ended = time;
  attempt.why = event.why;
  attempt.next_anew = event.next_anew;
  if (event.end == AttemptEnd::kFailed) ++trial.failures;
  if (event.end == AttemptEnd::kLost) ++trial.losses;
  SetTrialState(state, trial, event.state);
  trial.told.reset();
  if (event.state == TrialState::kQueued) Queue(state, event.trial, Turn::kFirst);
  if (event.state == TrialState::kQueued && event.end == AttemptEnd::kLost) {
    state.leases[event.trial].deadline = SteadyTime::max();  // It may come back.
  } else {
    state.leases.erase(event.trial);
  }
  if (IsEnded(event.state)) {
    trial.objective = event.objective;
    trial.end_why = event.why;
    trial.ended = time;
    ConsiderBest(state, trial);
  }
  state.scheduler_waits.reset();
}

void On(StudyData& state, const TrialRequeued& event, Timestamp) {
  Trial& trial = MutableTrial(state, event.trial);
  if (trial.state == TrialState::kFailed) {  // A person's retry: the allowances start anew.
    trial.failures = 0;
    trial.losses = 0;
    trial.objective.reset();
    trial.end_why.clear();
    trial.ended = {};
    state.scheduler_waits.reset();
  }
  SetTrialState(state, trial, TrialState::kQueued);
  Queue(state, event.trial, Turn::kFirst);
  KeepRequest(state, event.request_id, KeptRequest::Kind::kRetryTrials, event.trial);
}

void On(StudyData& state, const RetryFoundNone& event, Timestamp) {
  KeepRequest(state, event.request_id, KeptRequest::Kind::kRetryTrials);
}

void On(StudyData& state, const AttributesSet& event, Timestamp) {
  const auto edit = [&event](std::map<std::string, std::string>& attributes) {
    for (const std::string& key : event.remove) attributes.erase(key);
    for (const auto& [key, value] : event.set) attributes[key] = value;
  };
  if (event.trial != 0) {
    edit(MutableTrial(state, event.trial).attributes);
    return;
  }
  auto spec = std::make_shared<StudySpec>(*state.study.spec);
  edit(spec->attributes);
  state.study.spec = std::move(spec);
}

void On(StudyData& state, const CallAnswered& event, Timestamp) {
  LastCall& last = event.worker.empty() ? state.attempts[{event.trial, event.attempt}]
                                        : state.workers[event.worker];
  last.call = event.call;
  last.reply = event.reply;
}

}  // namespace

void ApplyEvent(StudyData& state, const Event& event, Timestamp time) {
  std::visit([&](const auto& happened) { On(state, happened, time); }, event);
}

void Apply(StudyData& state, const LogRecord& record) {
  CHECK(record.position == state.log_position + 1);
  state.id = record.study;
  state.log_position = record.position;
  state.last_event = std::max(state.last_event, record.time);
  for (const Event& event : record.events) ApplyEvent(state, event, state.last_event);
}

}  // namespace jizi::tuner
