// What Apply, and Execute after it, take for granted. One overload an event: a new one does not
// compile until somebody has thought of what it takes for granted.

#include <map>
#include <string>

#include "tuner-service/core/core.h"
#include "tuner-service/store/record.h"
#include "tuner-service/store/spec_codec.h"

namespace jizi::tuner {
namespace {

// Times a million years from now: sums and differences of two do not overflow.
constexpr int64_t kMaxTimeUs = int64_t{1} << 61;

class FitsState {
 public:
  explicit FitsState(const StudyData& state)
      : state_(state),
        created_(state.study.spec != nullptr),
        decisions_(state.decisions),
        trials_(static_cast<int64_t>(state.study.trials.size())) {}

  Status Created() const {
    return created_ ? absl::OkStatus() : Damaged("a study without its creation");
  }

  Status operator()(const StudyCreated& event) {
    if (created_) return Damaged("a study that is created twice");
    created_ = true;
    return IsSane(event.spec);
  }
  Status operator()(const StudyResumed& event) {
    TRY(Created());
    StudySpec alone;  // Only these two are new.
    alone.name = "study";
    alone.budget = event.budget;
    alone.retries = event.retries;
    return IsSane(alone);
  }
  Status operator()(const StudyStateSet&) { return Created(); }
  Status operator()(const StudyDeleted&) { return Created(); }
  Status operator()(const Decided& event) {
    if (event.decision != decisions_ + 1) {
      return Damaged("a decision whose number does not follow the last");
    }
    ++decisions_;
    return Created();
  }
  Status operator()(const TrialCreated& event) {
    if (event.trial != trials_ + 1) return Damaged("a trial whose number does not follow the last");
    if (event.proposal.successor_of) TRY(Exists(*event.proposal.successor_of));
    if (event.proposal.warm_start) TRY(Exists(event.proposal.warm_start->trial));
    ++trials_;
    changed_[event.trial] = {};
    return Created();
  }
  Status operator()(const TrialAssigned& event) {
    TRY(Exists(event.trial));
    Known& trial = Change(event.trial);
    if (event.attempt != trial.attempts + 1) {
      return Damaged("an attempt whose number does not follow the last");
    }
    if (!(event.lease.count() > 0) || event.lease > kMaxLease) {
      return Damaged("a lease of " + std::to_string(event.lease.count()) + " s");
    }
    if (trial.state != TrialState::kQueued) {
      return Damaged("a trial was handed out that was not queued");
    }
    ++trial.attempts;
    trial.end = AttemptEnd::kRunning;
    trial.state = TrialState::kRunning;
    return absl::OkStatus();
  }
  Status operator()(const AttemptReclaimed& event) {
    TRY(IsLast(event.trial, event.attempt));
    Known& trial = Change(event.trial);
    if (trial.state != TrialState::kQueued || trial.end != AttemptEnd::kLost) {
      return Damaged("a trial came back that was not lost");
    }
    trial.end = AttemptEnd::kRunning;
    trial.state = TrialState::kRunning;
    return absl::OkStatus();
  }
  Status operator()(const AttemptEnded& event) {
    TRY(IsLast(event.trial, event.attempt));
    TRY(Runs(event.trial));
    if (event.end == AttemptEnd::kRunning || event.state == TrialState::kRunning) {
      return Damaged("an attempt that ended and still runs");
    }
    Known& trial = Change(event.trial);
    trial.end = event.end;
    trial.state = event.state;
    return absl::OkStatus();
  }
  Status operator()(const TrialRequeued& event) {
    TRY(Exists(event.trial));
    Known& trial = Change(event.trial);
    if (trial.state != TrialState::kFailed && trial.state != TrialState::kPaused) {
      return Damaged("a trial was queued again that had not failed or paused");
    }
    trial.state = TrialState::kQueued;
    return absl::OkStatus();
  }
  Status operator()(const RetryFoundNone&) { return Created(); }
  Status operator()(const AttemptAttached& event) { return HasAttempt(event.trial, event.attempt); }
  Status operator()(const MeasurementsReported& event) { return Runs(event.trial); }
  Status operator()(const CheckpointRegistered& event) { return Runs(event.trial); }
  Status operator()(const TrialTold& event) { return Runs(event.trial); }
  Status operator()(const DirectiveDelivered& event) { return Runs(event.trial); }
  Status operator()(const AttributesSet& event) {
    return event.trial == 0 ? Created() : Exists(event.trial);
  }
  Status operator()(const CallAnswered& event) {
    TRY(Created());
    if (event.call.sequence < 1 || event.call.sequence > kMaxSequence) {
      return Damaged("call number " + std::to_string(event.call.sequence));
    }
    const auto* suggestion = std::get_if<RecordedSuggestion>(&event.reply);
    if (event.worker.empty() == (suggestion != nullptr)) {
      return Damaged("an answer that its caller cannot have been given");
    }
    if (suggestion == nullptr) return HasAttempt(event.trial, event.attempt);
    for (const auto& [trial, attempt] : suggestion->assigned) TRY(HasAttempt(trial, attempt));
    return absl::OkStatus();
  }

 private:
  // Of a trial, after the events so far.
  struct Known {
    TrialState state = TrialState::kQueued;
    AttemptEnd end = AttemptEnd::kRunning;  // Of the last attempt, if there is one.
    int attempts = 0;
  };

  static Status IsSane(const StudySpec& spec) {
    const Status valid = Validate(spec);
    return valid.ok() ? valid : Damaged(std::string(valid.message()));
  }
  Status Exists(TrialId trial) const {
    if (trial < 1 || trial > trials_) {
      return Damaged("trial " + std::to_string(trial) + " of " + std::to_string(trials_));
    }
    return Created();
  }
  Known At(TrialId trial) const {
    const auto changed = changed_.find(trial);
    if (changed != changed_.end()) return changed->second;
    const Trial& before = *state_.study.Find(trial);
    const Attempt* last = before.LastAttempt();
    return {before.state, last == nullptr ? AttemptEnd::kRunning : last->end,
            static_cast<int>(before.attempts.size())};
  }
  Known& Change(TrialId trial) { return changed_.try_emplace(trial, At(trial)).first->second; }
  Status HasAttempt(TrialId trial, int attempt) const {
    TRY(Exists(trial));
    if (attempt >= 1 && attempt <= At(trial).attempts) return absl::OkStatus();
    return Damaged("trial " + std::to_string(trial) + " has no attempt " + std::to_string(attempt));
  }
  Status IsLast(TrialId trial, int attempt) const {
    TRY(HasAttempt(trial, attempt));
    if (attempt == At(trial).attempts) return absl::OkStatus();
    return Damaged("an event of an attempt that is not the last");
  }
  Status Runs(TrialId trial) const {
    TRY(Exists(trial));
    if (At(trial).state == TrialState::kRunning) return absl::OkStatus();
    return Damaged("an event of trial " + std::to_string(trial) + ", which is not running");
  }

  const StudyData& state_;
  bool created_;
  int64_t decisions_;
  int64_t trials_;
  std::map<TrialId, Known> changed_;
};

}  // namespace

Status CheckFits(const StudyData& state, const LogRecord& record) {
  const auto judge = [&record](const Status& status) {
    return InRecord(record.study, record.position, status);
  };
  if (record.position != state.log_position + 1) {
    return judge(Damaged("the record before it is missing"));
  }
  const int64_t time_us = record.time.time_since_epoch().count();
  if (time_us < -kMaxTimeUs || time_us > kMaxTimeUs) {
    return judge(Damaged("a time of " + std::to_string(time_us) + " us"));
  }
  FitsState fits(state);
  for (const Event& event : record.events) TRY(judge(std::visit(fits, event)));
  return judge(fits.Created());
}

}  // namespace jizi::tuner
