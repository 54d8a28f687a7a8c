#include <cmath>
#include <type_traits>

#include "tuner-service/store/event_codec.h"
#include "tuner-service/store/spec_codec.h"

namespace jizi::tuner {
namespace {

void Put(const Checkpoint& checkpoint, stored::Checkpoint* message) {
  message->set_step(checkpoint.step);
  message->set_path(checkpoint.path);
  message->set_sha256(checkpoint.sha256);
  message->set_bytes(checkpoint.bytes);
  message->set_attempt(checkpoint.attempt);
}

void Put(const CheckpointRef& reference, stored::CheckpointRef* message) {
  message->set_trial(reference.trial);
  Put(reference.checkpoint, message->mutable_checkpoint());
}

void Put(const Directive& directive, stored::Directive* message) {
  std::visit(
      [&](const auto& said) {
        using T = std::decay_t<decltype(said)>;
        message->set_why(said.why);
        if constexpr (std::is_same_v<T, Continue>) {
          ToStoredParams(said.set, message->mutable_go_on()->mutable_set());
          if (said.roll_back_to) message->mutable_go_on()->set_roll_back_to(*said.roll_back_to);
        } else if constexpr (std::is_same_v<T, Pause>) {
          message->mutable_pause();
        } else {
          static_assert(std::is_same_v<T, Stop>);
          message->mutable_stop();
        }
      },
      directive);
}

void Put(const RecordedReply& reply, stored::CallAnswered* message) {
  std::visit(
      [&](const auto& recorded) {
        using T = std::decay_t<decltype(recorded)>;
        if constexpr (std::is_same_v<T, RecordedSuggestion>) {
          stored::CallAnswered::Suggestion* suggestion = message->mutable_suggestion();
          for (const auto& [trial, attempt] : recorded.assigned) {
            stored::CallAnswered::Assigned* assigned = suggestion->add_assigned();
            assigned->set_trial(trial);
            assigned->set_attempt(attempt);
          }
          if (recorded.wait) {
            suggestion->mutable_wait()->set_retry_after_s(recorded.wait->retry_after.count());
            suggestion->mutable_wait()->set_why(recorded.wait->why);
          }
          if (recorded.finished) suggestion->mutable_finished()->set_why(recorded.finished->why);
        } else if constexpr (std::is_same_v<T, RecordedReport>) {
          stored::CallAnswered::Report* report = message->mutable_report();
          Put(recorded.directive, report->mutable_directive());
          for (const Rejected& rejected : recorded.rejected) {
            stored::CallAnswered::Rejected* entry = report->add_rejected();
            entry->set_index(rejected.index);
            entry->set_why(rejected.why);
          }
        } else {
          static_assert(std::is_same_v<T, RecordedDone>);
          message->mutable_done();
        }
      },
      reply);
}

// One overload an event: a new event does not compile until it has its own.
struct EventWriter {
  stored::Event* message;
  std::vector<MeasurementRow>& rows;

  void operator()(const StudyCreated& event) const {
    ToStored(event.spec, message->mutable_study_created()->mutable_spec());
    message->mutable_study_created()->set_request_id(event.request_id);
  }
  void operator()(const StudyResumed& event) const {
    ToStored(event.budget, message->mutable_study_resumed()->mutable_budget());
    ToStored(event.retries, message->mutable_study_resumed()->mutable_retries());
    message->mutable_study_resumed()->set_request_id(event.request_id);
  }
  void operator()(const StudyStateSet& event) const {
    message->mutable_study_state_set()->set_state(ToStoredEnum(event.state));
    message->mutable_study_state_set()->set_why(event.why);
  }
  void operator()(const StudyDeleted&) const { message->mutable_study_deleted(); }
  void operator()(const Decided& event) const {
    stored::Decided* decided = message->mutable_decided();
    decided->set_decision(event.decision);
    decided->set_log_position(event.log_position);
    decided->set_count(event.count);
    decided->set_next(ToStoredEnum(event.next));
    decided->set_why(event.why);
  }
  void operator()(const TrialCreated& event) const {
    stored::TrialCreated* created = message->mutable_trial_created();
    const Proposal& proposal = event.proposal;
    created->set_trial(event.trial);
    created->set_decision(event.decision);
    ToStoredParams(proposal.params, created->mutable_params());
    if (proposal.warm_start) Put(*proposal.warm_start, created->mutable_warm_start());
    if (proposal.successor_of) created->set_successor_of(*proposal.successor_of);
    ToStoredTexts(proposal.tags, created->mutable_tags());
    created->set_why(proposal.why);
    created->set_request_id(event.request_id);
  }
  void operator()(const TrialAssigned& event) const {
    stored::TrialAssigned* assigned = message->mutable_trial_assigned();
    assigned->set_trial(event.trial);
    assigned->set_attempt(event.attempt);
    assigned->set_worker(event.worker);
    assigned->set_token(event.token.data(), event.token.size());
    assigned->set_lease_s(event.lease.count());
    if (event.start) Put(*event.start, assigned->mutable_start());
  }
  void operator()(const AttemptReclaimed& event) const {
    message->mutable_attempt_reclaimed()->set_trial(event.trial);
    message->mutable_attempt_reclaimed()->set_attempt(event.attempt);
  }
  void operator()(const AttemptAttached& event) const {
    stored::AttemptAttached* attached = message->mutable_attempt_attached();
    attached->set_trial(event.trial);
    attached->set_attempt(event.attempt);
    if (event.capabilities) {
      stored::Capabilities* capabilities = attached->mutable_capabilities();
      capabilities->set_stop(event.capabilities->stop);
      capabilities->set_pause(event.capabilities->pause);
      capabilities->set_roll_back(event.capabilities->roll_back);
      for (const std::string& name : event.capabilities->changeable) {
        capabilities->add_changeable(name);
      }
    }
    if (event.total_steps) attached->set_total_steps(*event.total_steps);
  }
  void operator()(const MeasurementsReported& event) const {
    stored::MeasurementsReported* reported = message->mutable_measurements_reported();
    reported->set_trial(event.trial);
    if (event.total_steps) reported->set_total_steps(*event.total_steps);
    uint32_t index = 0;
    for (const Measurement& measurement : event.measurements) {
      AddMeasurement(measurement, {event.trial, index++}, reported);
    }
  }
  struct Place {
    TrialId trial;
    uint32_t index;
  };
  void AddMeasurement(const Measurement& measurement, Place place,
                      stored::MeasurementsReported* reported) const {
    const int64_t time_us = measurement.time.time_since_epoch().count();
    reported->add_rows(static_cast<uint32_t>(measurement.metrics.size()));
    for (const Metric& metric : measurement.metrics) {
      // SQLite forgets the sign of a zero, and the record's checksum would notice.
      const double value = metric.value == 0 ? 0.0 : metric.value;
      rows.push_back({place.trial, measurement.attempt, measurement.rollback, measurement.step,
                      metric.name, value, time_us});
    }
    if (measurement.metrics.empty()) {
      stored::MeasurementsReported::Bare* bare = reported->add_bare();
      bare->set_index(place.index);
      bare->set_attempt(measurement.attempt);
      bare->set_rollback(measurement.rollback);
      bare->set_step(measurement.step);
      bare->set_time_us(time_us);
    }
    if (measurement.gradient) {
      stored::MeasurementsReported::Gradient* gradient = reported->add_gradients();
      gradient->set_index(place.index);
      gradient->set_small_batch_norm_squared(measurement.gradient->small_batch_norm_squared);
      gradient->set_big_batch_norm_squared(measurement.gradient->big_batch_norm_squared);
      gradient->set_small_batch_size(measurement.gradient->small_batch_size);
      gradient->set_big_batch_size(measurement.gradient->big_batch_size);
    }
  }
  void operator()(const CheckpointRegistered& event) const {
    message->mutable_checkpoint_registered()->set_trial(event.trial);
    Put(event.checkpoint, message->mutable_checkpoint_registered()->mutable_checkpoint());
  }
  void operator()(const TrialTold& event) const {
    message->mutable_trial_told()->set_trial(event.trial);
    Put(event.directive, message->mutable_trial_told()->mutable_directive());
  }
  void operator()(const DirectiveDelivered& event) const {
    stored::DirectiveDelivered* delivered = message->mutable_directive_delivered();
    delivered->set_trial(event.trial);
    if (event.rolled_back_to) delivered->set_rolled_back_to(*event.rolled_back_to);
  }
  void operator()(const AttemptEnded& event) const {
    stored::AttemptEnded* ended = message->mutable_attempt_ended();
    ended->set_trial(event.trial);
    ended->set_attempt(event.attempt);
    ended->set_end(ToStoredEnum(event.end));
    ended->set_why(event.why);
    ended->set_state(ToStoredEnum(event.state));
    if (event.objective) ended->set_objective(*event.objective);
    ended->set_next_anew(event.next_anew);
  }
  void operator()(const TrialRequeued& event) const {
    message->mutable_trial_requeued()->set_trial(event.trial);
    message->mutable_trial_requeued()->set_why(event.why);
    message->mutable_trial_requeued()->set_request_id(event.request_id);
  }
  void operator()(const RetryFoundNone& event) const {
    message->mutable_retry_found_none()->set_request_id(event.request_id);
  }
  void operator()(const AttributesSet& event) const {
    message->mutable_attributes_set()->set_trial(event.trial);
    ToStoredTexts(event.set, message->mutable_attributes_set()->mutable_set());
    for (const std::string& name : event.remove) {
      message->mutable_attributes_set()->add_remove(name);
    }
  }
  void operator()(const CallAnswered& event) const {
    stored::CallAnswered* answered = message->mutable_call_answered();
    answered->set_worker(event.worker);
    answered->set_trial(event.trial);
    answered->set_attempt(event.attempt);
    answered->set_sequence(event.call.sequence);
    answered->set_digest(event.call.digest.data(), event.call.digest.size());
    Put(event.reply, answered);
  }
};

}  // namespace

void ToStored(const Event& event, stored::Event* message, std::vector<MeasurementRow>& rows) {
  std::visit(EventWriter{message, rows}, event);
}

}  // namespace jizi::tuner
