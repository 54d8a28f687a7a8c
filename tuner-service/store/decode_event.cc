#include <algorithm>
#include <utility>

#include "tuner-service/store/event_codec.h"
#include "tuner-service/store/spec_codec.h"

namespace jizi::tuner {
namespace {

Timestamp TimeOf(int64_t microseconds) {
  return Timestamp(std::chrono::microseconds(microseconds));
}

template <typename Bytes>
StatusOr<Bytes> Fixed(const std::string& bytes, const char* what) {
  Bytes fixed{};
  if (bytes.size() != fixed.size()) {
    return Damaged(std::string(what) + " of " + std::to_string(bytes.size()) + " bytes");
  }
  std::copy(bytes.begin(), bytes.end(), fixed.begin());
  return fixed;
}

Checkpoint FromMessage(const stored::Checkpoint& message) {
  return {message.step(), message.path(), message.sha256(), message.bytes(), message.attempt()};
}

CheckpointRef FromMessage(const stored::CheckpointRef& message) {
  return {message.trial(), FromMessage(message.checkpoint())};
}

Capabilities FromMessage(const stored::Capabilities& message) {
  return {message.stop(),
          message.pause(),
          message.roll_back(),
          {message.changeable().begin(), message.changeable().end()}};
}

StatusOr<Directive> FromMessage(const stored::Directive& message) {
  switch (message.kind_case()) {
    case stored::Directive::kGoOn: {
      Continue go_on;
      go_on.set = TRY(FromStoredParams(message.go_on().set()));
      if (message.go_on().has_roll_back_to()) go_on.roll_back_to = message.go_on().roll_back_to();
      go_on.why = message.why();
      return Directive(std::move(go_on));
    }
    case stored::Directive::kPause:
      return Directive(Pause{message.why()});
    case stored::Directive::kStop:
      return Directive(Stop{message.why()});
    case stored::Directive::KIND_NOT_SET:
      break;
  }
  return Damaged("a directive without a kind");
}

StatusOr<RecordedReply> ReadReply(const stored::CallAnswered& message) {
  switch (message.reply_case()) {
    case stored::CallAnswered::kSuggestion: {
      RecordedSuggestion suggestion;
      for (const stored::CallAnswered::Assigned& assigned : message.suggestion().assigned()) {
        suggestion.assigned.emplace_back(assigned.trial(), assigned.attempt());
      }
      if (message.suggestion().has_wait()) {
        const stored::CallAnswered::Wait& wait = message.suggestion().wait();
        suggestion.wait = Wait{Seconds(wait.retry_after_s()), wait.why()};
      }
      if (message.suggestion().has_finished()) {
        suggestion.finished = Finished{message.suggestion().finished().why()};
      }
      return RecordedReply(std::move(suggestion));
    }
    case stored::CallAnswered::kReport: {
      RecordedReport report;
      report.directive = TRY(FromMessage(message.report().directive()));
      for (const stored::CallAnswered::Rejected& rejected : message.report().rejected()) {
        report.rejected.push_back({rejected.index(), rejected.why()});
      }
      return RecordedReply(std::move(report));
    }
    case stored::CallAnswered::kDone:
      return RecordedReply(RecordedDone{});
    case stored::CallAnswered::REPLY_NOT_SET:
      break;
  }
  return Damaged("an answered call without its reply");
}

StatusOr<Event> FromMessage(const stored::StudyCreated& message) {
  StudyCreated event;
  event.spec = TRY(FromStored(message.spec()));
  event.request_id = message.request_id();
  return Event(std::move(event));
}

StatusOr<Event> FromMessage(const stored::StudyResumed& message) {
  return Event(StudyResumed{FromStored(message.budget()), FromStored(message.retries()),
                            message.request_id()});
}

StatusOr<Event> FromMessage(const stored::StudyStateSet& message) {
  const StudyState state = TRY(FromStoredEnum(message.state(), StudyState::kFinished));
  return Event(StudyStateSet{state, message.why()});
}

StatusOr<Event> FromMessage(const stored::Decided& message) {
  const Next next = TRY(FromStoredEnum(message.next(), Next::kExhausted));
  return Event(
      Decided{message.decision(), message.log_position(), message.count(), next, message.why()});
}

StatusOr<Event> FromMessage(const stored::TrialCreated& message) {
  TrialCreated event;
  event.trial = message.trial();
  event.decision = message.decision();
  event.request_id = message.request_id();
  event.proposal.params = TRY(FromStoredParams(message.params()));
  if (message.has_warm_start()) event.proposal.warm_start = FromMessage(message.warm_start());
  if (message.has_successor_of()) event.proposal.successor_of = message.successor_of();
  event.proposal.tags = FromStoredTexts(message.tags());
  event.proposal.why = message.why();
  return Event(std::move(event));
}

StatusOr<Event> FromMessage(const stored::TrialAssigned& message) {
  TrialAssigned event;
  event.trial = message.trial();
  event.attempt = message.attempt();
  event.worker = message.worker();
  event.token = TRY(Fixed<Token>(message.token(), "a lease's token"));
  event.lease = Seconds(message.lease_s());
  if (message.has_start()) event.start = FromMessage(message.start());
  return Event(std::move(event));
}

StatusOr<Event> FromMessage(const stored::AttemptAttached& message) {
  AttemptAttached event;
  event.trial = message.trial();
  event.attempt = message.attempt();
  if (message.has_capabilities()) event.capabilities = FromMessage(message.capabilities());
  if (message.has_total_steps()) event.total_steps = message.total_steps();
  return Event(std::move(event));
}

StatusOr<Event> FromMessage(const stored::TrialTold& message) {
  return Event(TrialTold{message.trial(), TRY(FromMessage(message.directive()))});
}

StatusOr<Event> FromMessage(const stored::DirectiveDelivered& message) {
  DirectiveDelivered event;
  event.trial = message.trial();
  if (message.has_rolled_back_to()) event.rolled_back_to = message.rolled_back_to();
  return Event(event);
}

StatusOr<Event> FromMessage(const stored::AttemptEnded& message) {
  AttemptEnded event;
  event.trial = message.trial();
  event.attempt = message.attempt();
  event.end = TRY(FromStoredEnum(message.end(), AttemptEnd::kReleased));
  event.why = message.why();
  event.state = TRY(FromStoredEnum(message.state(), TrialState::kFailed));
  if (message.has_objective()) event.objective = message.objective();
  event.next_anew = message.next_anew();
  return Event(std::move(event));
}

StatusOr<Event> FromMessage(const stored::AttributesSet& message) {
  return Event(AttributesSet{message.trial(),
                             FromStoredTexts(message.set()),
                             {message.remove().begin(), message.remove().end()}});
}

StatusOr<Event> FromMessage(const stored::CallAnswered& message) {
  CallAnswered event;
  event.worker = message.worker();
  event.trial = message.trial();
  event.attempt = message.attempt();
  event.call.sequence = message.sequence();
  event.call.digest = TRY(Fixed<Digest>(message.digest(), "a digest"));
  event.reply = TRY(ReadReply(message));
  return Event(std::move(event));
}

}  // namespace

StatusOr<Event> EventReader::ReadMeasurements(const stored::MeasurementsReported& message) {
  MeasurementsReported event;
  event.trial = message.trial();
  if (message.has_total_steps()) event.total_steps = message.total_steps();
  event.measurements.reserve(static_cast<size_t>(message.rows().size()));
  auto bare = message.bare().begin();
  for (const uint32_t count : message.rows()) {
    Measurement measurement;
    if (count > rows_.size()) return Damaged("a report's rows in `measurements` are missing");
    if (count == 0) {
      if (bare == message.bare().end() || bare->index() != event.measurements.size()) {
        return Damaged("a measurement without metrics has no place");
      }
      measurement.attempt = bare->attempt();
      measurement.rollback = bare->rollback();
      measurement.step = bare->step();
      measurement.time = TimeOf(bare->time_us());
      ++bare;
    }
    measurement.metrics.reserve(count);
    for (const MeasurementRow& row : rows_.first(count)) {
      if (row.trial != event.trial) return Damaged("a measurement of another trial");
      measurement.attempt = row.attempt;
      measurement.rollback = row.rollback;
      measurement.step = row.step;
      measurement.time = TimeOf(row.time_us);
      measurement.metrics.push_back({row.metric, row.value});
    }
    rows_ = rows_.subspan(count);
    event.measurements.push_back(std::move(measurement));
  }
  for (const stored::MeasurementsReported::Gradient& gradient : message.gradients()) {
    if (gradient.index() >= event.measurements.size()) {
      return Damaged("gradient statistics of no measurement");
    }
    event.measurements[gradient.index()].gradient =
        GradientStatistics{gradient.small_batch_norm_squared(), gradient.big_batch_norm_squared(),
                           gradient.small_batch_size(), gradient.big_batch_size()};
  }
  return Event(std::move(event));
}

StatusOr<Event> EventReader::Read(const stored::Event& message) {
  switch (message.event_case()) {
    case stored::Event::kStudyCreated:
      return FromMessage(message.study_created());
    case stored::Event::kStudyResumed:
      return FromMessage(message.study_resumed());
    case stored::Event::kStudyStateSet:
      return FromMessage(message.study_state_set());
    case stored::Event::kStudyDeleted:
      return Event(StudyDeleted{});
    case stored::Event::kDecided:
      return FromMessage(message.decided());
    case stored::Event::kTrialCreated:
      return FromMessage(message.trial_created());
    case stored::Event::kTrialAssigned:
      return FromMessage(message.trial_assigned());
    case stored::Event::kAttemptReclaimed:
      return Event(AttemptReclaimed{message.attempt_reclaimed().trial(),
                                    message.attempt_reclaimed().attempt()});
    case stored::Event::kAttemptAttached:
      return FromMessage(message.attempt_attached());
    case stored::Event::kMeasurementsReported:
      return ReadMeasurements(message.measurements_reported());
    case stored::Event::kCheckpointRegistered:
      return Event(CheckpointRegistered{message.checkpoint_registered().trial(),
                                        FromMessage(message.checkpoint_registered().checkpoint())});
    case stored::Event::kTrialTold:
      return FromMessage(message.trial_told());
    case stored::Event::kDirectiveDelivered:
      return FromMessage(message.directive_delivered());
    case stored::Event::kAttemptEnded:
      return FromMessage(message.attempt_ended());
    case stored::Event::kTrialRequeued:
      return Event(TrialRequeued{message.trial_requeued().trial(), message.trial_requeued().why(),
                                 message.trial_requeued().request_id()});
    case stored::Event::kRetryFoundNone:
      return Event(RetryFoundNone{message.retry_found_none().request_id()});
    case stored::Event::kAttributesSet:
      return FromMessage(message.attributes_set());
    case stored::Event::kCallAnswered:
      return FromMessage(message.call_answered());
    case stored::Event::EVENT_NOT_SET:
      break;
  }
  return Damaged("an event of an unknown kind (was the file written by a newer Jizi?)");
}

}  // namespace jizi::tuner
