// Trials and what is measured of them: to the wire.

#include <google/protobuf/util/time_util.h>

#include <algorithm>

#include "tuner-service/rpc/convert.h"
#include "tuner-service/rpc/limits.h"

namespace jizi::tuner {
namespace {

v1::TrialState ToWire(TrialState state) {
  switch (state) {
    case TrialState::kQueued:
      return v1::TRIAL_STATE_QUEUED;
    case TrialState::kRunning:
      return v1::TRIAL_STATE_RUNNING;
    case TrialState::kPaused:
      return v1::TRIAL_STATE_PAUSED;
    case TrialState::kCompleted:
      return v1::TRIAL_STATE_COMPLETED;
    case TrialState::kStopped:
      return v1::TRIAL_STATE_STOPPED;
    case TrialState::kInfeasible:
      return v1::TRIAL_STATE_INFEASIBLE;
    case TrialState::kFailed:
      return v1::TRIAL_STATE_FAILED;
  }
  return v1::TRIAL_STATE_UNSPECIFIED;
}

v1::AttemptEnd ToWire(AttemptEnd end) {
  switch (end) {
    case AttemptEnd::kRunning:
      return v1::ATTEMPT_END_UNSPECIFIED;
    case AttemptEnd::kFinished:
      return v1::ATTEMPT_END_FINISHED;
    case AttemptEnd::kStopped:
      return v1::ATTEMPT_END_STOPPED;
    case AttemptEnd::kPaused:
      return v1::ATTEMPT_END_PAUSED;
    case AttemptEnd::kFailed:
      return v1::ATTEMPT_END_FAILED;
    case AttemptEnd::kLost:
      return v1::ATTEMPT_END_LOST;
    case AttemptEnd::kReleased:
      return v1::ATTEMPT_END_RELEASED;
  }
  return v1::ATTEMPT_END_UNSPECIFIED;
}

google::protobuf::Timestamp ToWire(Timestamp time) {
  return google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(time.time_since_epoch().count());
}
// What has not happened yet is left out.
bool Happened(Timestamp time) {
  return time != Timestamp();
}

v1::Attempt ToWire(const Attempt& attempt) {
  v1::Attempt converted;
  converted.set_number(attempt.number);
  converted.set_worker(attempt.worker);
  if (Happened(attempt.started)) *converted.mutable_started() = ToWire(attempt.started);
  if (Happened(attempt.ended)) *converted.mutable_ended() = ToWire(attempt.ended);
  converted.set_end(ToWire(attempt.end));
  converted.set_why(attempt.why);
  converted.set_start_step(attempt.start_step);
  v1::Capabilities* capabilities = converted.mutable_capabilities();
  capabilities->set_stop(attempt.capabilities.stop);
  capabilities->set_pause(attempt.capabilities.pause);
  capabilities->set_roll_back(attempt.capabilities.roll_back);
  for (const std::string& name : attempt.capabilities.changeable)
    capabilities->add_changeable(name);
  return converted;
}

}  // namespace

StatusOr<TrialState> FromWire(v1::TrialState state, const Field& field) {
  switch (state) {
    case v1::TRIAL_STATE_QUEUED:
      return TrialState::kQueued;
    case v1::TRIAL_STATE_RUNNING:
      return TrialState::kRunning;
    case v1::TRIAL_STATE_PAUSED:
      return TrialState::kPaused;
    case v1::TRIAL_STATE_COMPLETED:
      return TrialState::kCompleted;
    case v1::TRIAL_STATE_STOPPED:
      return TrialState::kStopped;
    case v1::TRIAL_STATE_INFEASIBLE:
      return TrialState::kInfeasible;
    case v1::TRIAL_STATE_FAILED:
      return TrialState::kFailed;
    default:
      return Refuse(field, "is no state of a trial that this server knows",
                    "give one of v1.TrialState");
  }
}

v1::Checkpoint ToWire(const Checkpoint& checkpoint) {
  v1::Checkpoint converted;
  converted.set_step(checkpoint.step);
  converted.set_path(checkpoint.path);
  converted.set_sha256(checkpoint.sha256);
  converted.set_bytes(checkpoint.bytes);
  converted.set_attempt(checkpoint.attempt);
  return converted;
}

v1::WarmStart ToWire(const CheckpointRef& checkpoint) {
  v1::WarmStart converted;
  converted.set_trial(checkpoint.trial);
  *converted.mutable_checkpoint() = ToWire(checkpoint.checkpoint);
  return converted;
}

v1::Measurement ToWire(const Measurement& measurement) {
  v1::Measurement converted;
  converted.set_step(measurement.step);
  for (const Metric& metric : measurement.metrics)
    (*converted.mutable_metrics())[metric.name] = metric.value;
  if (Happened(measurement.time)) *converted.mutable_time() = ToWire(measurement.time);
  if (measurement.gradient) {
    v1::GradientStatistics* gradient = converted.mutable_gradient();
    gradient->set_small_batch_norm_squared(measurement.gradient->small_batch_norm_squared);
    gradient->set_big_batch_norm_squared(measurement.gradient->big_batch_norm_squared);
    gradient->set_small_batch_size(measurement.gradient->small_batch_size);
    gradient->set_big_batch_size(measurement.gradient->big_batch_size);
  }
  converted.set_attempt(measurement.attempt);
  converted.set_rollback(measurement.rollback);
  return converted;
}

v1::Trial ToWire(const Trial& trial) {
  v1::Trial converted;
  converted.set_id(trial.id);
  converted.set_state(ToWire(trial.state));
  for (const auto& [name, value] : trial.params)
    (*converted.mutable_params())[name] = ToWire(value);
  if (trial.objective) converted.set_objective(*trial.objective);
  converted.set_why(trial.why);
  converted.set_end_why(trial.end_why);
  if (Happened(trial.created)) *converted.mutable_created() = ToWire(trial.created);
  if (Happened(trial.started)) *converted.mutable_started() = ToWire(trial.started);
  if (Happened(trial.ended)) *converted.mutable_ended() = ToWire(trial.ended);
  for (const Attempt& attempt : trial.attempts) *converted.add_attempts() = ToWire(attempt);
  converted.set_measurement_count(static_cast<int64_t>(trial.measurements.size()));
  if (!trial.measurements.empty())
    *converted.mutable_last_measurement() = ToWire(trial.measurements.back());
  const size_t checkpoints = trial.checkpoints.size();
  converted.set_checkpoint_count(static_cast<int64_t>(checkpoints));
  for (size_t i = checkpoints - std::min(checkpoints, kListedCheckpoints); i < checkpoints; ++i)
    *converted.add_checkpoints() = ToWire(trial.checkpoints[i]);
  if (trial.warm_start) *converted.mutable_warm_start() = ToWire(*trial.warm_start);
  if (trial.successor_of) converted.set_successor_of(*trial.successor_of);
  converted.mutable_tags()->insert(trial.tags.begin(), trial.tags.end());
  converted.mutable_attributes()->insert(trial.attributes.begin(), trial.attributes.end());
  if (trial.total_steps) converted.set_total_steps(*trial.total_steps);
  if (trial.state == TrialState::kRunning && trial.LastAttempt() != nullptr) {
    converted.set_worker(trial.LastAttempt()->worker);
  }
  return converted;
}

v1::Directive ToWire(const Directive& directive) {
  struct Writer {
    v1::Directive* to;
    void operator()(const Continue& go_on) const {
      v1::Directive::Continue* wire = to->mutable_go_on();
      for (const auto& [name, value] : go_on.set)
        (*wire->mutable_set())[name] = tuner::ToWire(value);
      if (go_on.roll_back_to) wire->set_roll_back_to(*go_on.roll_back_to);
      to->set_why(go_on.why);
    }
    void operator()(const Pause& pause) const {
      to->mutable_pause();
      to->set_why(pause.why);
    }
    void operator()(const Stop& stop) const {
      to->mutable_stop();
      to->set_why(stop.why);
    }
  };
  v1::Directive converted;
  std::visit(Writer{&converted}, directive);
  return converted;
}

}  // namespace jizi::tuner
