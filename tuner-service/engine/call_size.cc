#include "tuner-service/engine/call_size.h"

#include <type_traits>

namespace jizi::tuner {
namespace {

constexpr size_t kNode = 48;  // Of a map, beside what it holds.

size_t Size(const std::string& text) {
  return sizeof(text) + text.capacity();
}
size_t Size(const ParamValue& value) {
  size_t bytes = sizeof(value);
  if (const auto* text = std::get_if<std::string>(&value)) bytes += text->capacity();
  if (const auto* json = std::get_if<JsonText>(&value)) bytes += json->text.capacity();
  return bytes;
}
template <typename Value>
size_t Size(const std::map<std::string, Value>& entries) {
  size_t bytes = 0;
  for (const auto& [name, value] : entries) bytes += kNode + Size(name) + Size(value);
  return bytes;
}
size_t Size(const std::vector<std::string>& texts) {
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += Size(text);
  return bytes;
}

// Both kinds: as it is reported and as it is stored.
template <typename M>
size_t SizeOfMeasurement(const M& measurement) {
  size_t bytes = sizeof(measurement) + measurement.metrics.capacity() * sizeof(Metric);
  for (const Metric& metric : measurement.metrics) bytes += metric.name.capacity();
  return bytes;
}
template <typename M>
size_t SizeOfMeasurements(const std::vector<M>& measurements) {
  size_t bytes = 0;
  for (const M& measurement : measurements) bytes += SizeOfMeasurement(measurement);
  return bytes;
}

size_t Size(const Directive& directive) {
  size_t bytes = sizeof(directive);
  std::visit([&bytes](const auto& said) { bytes += said.why.capacity(); }, directive);
  if (const auto* go_on = std::get_if<Continue>(&directive)) bytes += Size(go_on->set);
  return bytes;
}
size_t Size(const Proposal& proposal) {
  return sizeof(proposal) + Size(proposal.params) + Size(proposal.tags) + proposal.why.capacity();
}

struct CommandSize {
  size_t operator()(const SuggestCommand& command) const {
    return command.worker.capacity() + command.tokens.capacity() * sizeof(Token);
  }
  size_t operator()(const ReportCommand& command) const {
    return SizeOfMeasurements(command.measurements);
  }
  size_t operator()(const RegisterCheckpointCommand& command) const {
    return command.checkpoint.path.capacity() + command.checkpoint.sha256.capacity();
  }
  size_t operator()(const RenewCommand& command) const {
    return command.leases.capacity() * sizeof(LeaseRef);
  }
  size_t operator()(const ReleaseCommand& command) const { return command.why.capacity(); }
  size_t operator()(const CompleteCommand& command) const {
    size_t bytes = 0;
    if (const auto* failed = std::get_if<FailedOutcome>(&command.outcome)) {
      bytes += failed->why.capacity();
    }
    if (const auto* never = std::get_if<InfeasibleOutcome>(&command.outcome)) {
      bytes += never->why.capacity();
    }
    if (command.final_measurement) bytes += SizeOfMeasurement(*command.final_measurement);
    if (command.next) bytes += (*this)(*command.next);
    return bytes;
  }
  size_t operator()(const EnqueueCommand& command) const { return Size(command.params); }
  size_t operator()(const RetryCommand& command) const {
    return command.trials.capacity() * sizeof(TrialId);
  }
  size_t operator()(const SetAttributesCommand& command) const {
    return Size(command.set) + Size(command.remove);
  }
  size_t operator()(const ResumeCommand& command) const { return BytesOf(command.spec); }
  // Small, or the engine's own.
  size_t operator()(const AttachCommand& command) const { return command.worker.capacity(); }
  size_t operator()(const SetStateCommand&) const { return 0; }
  size_t operator()(const AnswerCommand&) const { return 0; }
  size_t operator()(const TickCommand&) const { return 0; }
  size_t operator()(const LoadedCommand&) const { return 0; }
};

size_t Size(const RecordedReply& reply) {
  if (const auto* suggestion = std::get_if<RecordedSuggestion>(&reply)) {
    return suggestion->assigned.capacity() * sizeof(suggestion->assigned[0]);
  }
  const auto* report = std::get_if<RecordedReport>(&reply);
  if (report == nullptr) return 0;
  size_t bytes = Size(report->directive) + report->rejected.capacity() * sizeof(Rejected);
  for (const Rejected& rejected : report->rejected) bytes += rejected.why.capacity();
  return bytes;
}

// An event without an overload of its own is small.
struct EventSize {
  template <typename Small>
  size_t operator()(const Small&) const {
    return 0;
  }
  size_t operator()(const StudyCreated& event) const { return BytesOf(event.spec); }
  size_t operator()(const TrialCreated& event) const { return Size(event.proposal); }
  size_t operator()(const MeasurementsReported& event) const {
    return SizeOfMeasurements(event.measurements);
  }
  size_t operator()(const CheckpointRegistered& event) const {
    return event.checkpoint.path.capacity() + event.checkpoint.sha256.capacity();
  }
  size_t operator()(const TrialTold& event) const { return Size(event.directive); }
  size_t operator()(const AttemptEnded& event) const { return event.why.capacity(); }
  size_t operator()(const AttributesSet& event) const {
    return Size(event.set) + Size(event.remove);
  }
  size_t operator()(const CallAnswered& event) const { return Size(event.reply); }
};

}  // namespace

size_t BytesOf(const StudySpec& spec) {
  size_t bytes = sizeof(spec) + spec.settings_json.capacity() + Size(spec.attributes);
  for (const ParameterSpec& parameter : spec.space.parameters) {
    bytes += sizeof(parameter) + parameter.name.capacity();
    if (const auto* one_of = std::get_if<CategoricalDomain>(&parameter.domain)) {
      for (const ParamValue& value : one_of->values) bytes += Size(value);
    }
    for (const Condition& condition : parameter.when) {
      for (const ParamValue& value : condition.any_of) bytes += Size(value);
    }
  }
  return bytes;
}

size_t BytesOf(const Command& command) {
  return sizeof(command) + std::visit(CommandSize{}, command);
}

size_t BytesOf(const LogRecord& record) {
  size_t bytes = sizeof(record) + record.events.capacity() * sizeof(Event);
  for (const Event& event : record.events) bytes += std::visit(EventSize{}, event);
  return bytes;
}

}  // namespace jizi::tuner
