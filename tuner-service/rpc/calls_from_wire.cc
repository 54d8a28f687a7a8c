#include <algorithm>
#include <cmath>
#include <string_view>

#include "tuner-service/rpc/calls.h"
#include "tuner-service/rpc/checks.h"
#include "tuner-service/rpc/convert.h"
#include "tuner-service/rpc/limits.h"

namespace jizi::tuner {
namespace {

Status CheckSequence(const Field& field, int64_t sequence) {
  if (sequence >= 1) return absl::OkStatus();
  return Refuse(field, "is " + std::to_string(sequence),
                "count calls from 1; Attach tells the next number");
}

StatusOr<LeaseRef> FromWire(const v1::Lease& lease, const Field& field) {
  TRY(CheckStudyName(field / "study", lease.study()));
  TRY(CheckCount(field / "trial", lease.trial(), 1, INT64_MAX));
  TRY(CheckCount(field / "attempt", lease.attempt(), 1, INT32_MAX));
  LeaseRef converted{lease.trial(), lease.attempt(), {}};
  if (lease.token().size() != converted.token.size()) {
    return Refuse(field / "token", "has " + std::to_string(lease.token().size()) + " bytes",
                  "send the lease as Suggest or Attach gave it");
  }
  std::copy(lease.token().begin(), lease.token().end(), converted.token.begin());
  return converted;
}

// A program that diverges has no usable gradient statistics: they are left out, and the measurement
// stands.
StatusOr<std::optional<GradientStatistics>> FromWire(const v1::GradientStatistics& gradient,
                                                     const Field& field) {
  const GradientStatistics converted{gradient.small_batch_norm_squared(),
                                     gradient.big_batch_norm_squared(), gradient.small_batch_size(),
                                     gradient.big_batch_size()};
  for (const double size : {converted.small_batch_size, converted.big_batch_size}) {
    if (!(size > 0 && std::isfinite(size))) {
      return Refuse(field, "has a batch size that is not a positive number",
                    "give both batch sizes in examples");
    }
  }
  if (!std::isfinite(converted.small_batch_norm_squared) ||
      !std::isfinite(converted.big_batch_norm_squared)) {
    return std::optional<GradientStatistics>();
  }
  return std::optional<GradientStatistics>(converted);
}

StatusOr<NewMeasurement> FromWire(const v1::Measurement& measurement, const Field& field,
                                  Timestamp now) {
  NewMeasurement converted;
  TRY(CheckCount(field / "step", measurement.step(), 0, INT64_MAX));
  converted.step = measurement.step();
  converted.time = measurement.has_time() ? TRY(FromWire(measurement.time(), field / "time")) : now;
  TRY(CheckCount(field / "metrics", static_cast<int64_t>(measurement.metrics().size()), 0,
                 kMaxListed));
  for (const auto& [name, value] : measurement.metrics()) {
    TRY(CheckName(field / "metrics", name));
    converted.metrics.push_back({name, value});
  }
  // The wire's map has no order; the log should not depend on it.
  std::sort(converted.metrics.begin(), converted.metrics.end(),
            [](const Metric& a, const Metric& b) { return a.name < b.name; });
  if (measurement.has_gradient()) {
    converted.gradient = TRY(FromWire(measurement.gradient(), field / "gradient"));
  }
  return converted;
}

StatusOr<std::optional<int64_t>> StepsFromWire(bool given, int64_t total_steps) {
  if (!given) return std::optional<int64_t>();
  TRY(CheckCount({"total_steps"}, total_steps, 0, INT64_MAX));
  return std::optional<int64_t>(total_steps);
}

Status CheckPath(const Field& field, const std::string& path) {
  const char* mend = "give a path relative to the trial's folder, without \"..\"";
  if (path.empty() || path.front() == '/') return Refuse(field, "is no relative path", mend);
  TRY(CheckSize(field, path.size(), kMaxPathBytes));
  if (path.find('\0') != std::string::npos) return Refuse(field, "holds a zero byte", mend);
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    if (std::string_view(path).substr(start, end - start) == "..") {
      return Refuse(field, "leaves the trial's folder", mend);
    }
    start = end + 1;
  }
  return absl::OkStatus();
}

StatusOr<Checkpoint> FromWire(const v1::Checkpoint& checkpoint, const Field& field) {
  TRY(CheckCount(field / "step", checkpoint.step(), 0, INT64_MAX));
  TRY(CheckCount(field / "bytes", checkpoint.bytes(), 0, INT64_MAX));
  TRY(CheckPath(field / "path", checkpoint.path()));
  const std::string& sha256 = checkpoint.sha256();
  const bool hex = std::all_of(sha256.begin(), sha256.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (sha256.size() != 64 || !hex) {
    return Refuse(field / "sha256", "is no digest", "give 64 lower-case hexadecimal digits");
  }
  return Checkpoint{checkpoint.step(), checkpoint.path(), sha256, checkpoint.bytes(), 0};
}

StatusOr<Capabilities> FromWire(const v1::Capabilities& capabilities, const Field& field) {
  Capabilities converted{capabilities.stop(), capabilities.pause(), capabilities.roll_back(), {}};
  TRY(CheckCount(field / "changeable", capabilities.changeable_size(), 0, kMaxListed));
  for (const std::string& name : capabilities.changeable()) {
    TRY(CheckName(field / "changeable", name));
    converted.changeable.push_back(name);
  }
  return converted;
}

}  // namespace

StatusOr<SuggestCommand> FromWire(const v1::SuggestRequest& request, const MakeTokens& tokens) {
  TRY(CheckName({"worker"}, request.worker()));
  TRY(CheckSequence({"sequence"}, request.sequence()));
  TRY(CheckCount({"count"}, request.count(), 0, kMaxSuggestions));
  SuggestCommand command;
  command.worker = request.worker();
  command.call = {request.sequence(), DigestOf(request)};
  command.count = std::max(1, request.count());
  if (request.lease_s() != 0) {
    TRY(CheckRange({"lease_s"}, request.lease_s(), kMinLease_s, kMaxLease_s));
    command.lease = Seconds(request.lease_s());
  }
  command.tokens = tokens(static_cast<size_t>(command.count));
  return command;
}

StatusOr<AttachCommand> FromWire(const v1::AttachRequest& request) {
  AttachCommand command;
  if (request.lease().token().empty()) {
    TRY(CheckStudyName({"lease.study"}, request.lease().study()));
    TRY(CheckName({"worker"}, request.worker()));
  } else {
    command.lease = TRY(FromWire(request.lease(), {"lease"}));
    if (!request.worker().empty()) TRY(CheckName({"worker"}, request.worker()));
  }
  command.worker = request.worker();
  if (request.has_capabilities())
    command.capabilities = TRY(FromWire(request.capabilities(), {"capabilities"}));
  command.total_steps = TRY(StepsFromWire(request.has_total_steps(), request.total_steps()));
  return command;
}

StatusOr<ReportCommand> FromWire(const v1::ReportRequest& request, Timestamp now) {
  ReportCommand command;
  command.lease = TRY(FromWire(request.lease(), {"lease"}));
  TRY(CheckSequence({"sequence"}, request.sequence()));
  TRY(CheckCount({"measurements"}, request.measurements_size(), 0, kMaxMeasurementsPerReport));
  command.measurements.reserve(static_cast<size_t>(request.measurements_size()));
  for (int i = 0; i < request.measurements_size(); ++i) {
    command.measurements.push_back(
        TRY(FromWire(request.measurements(i), Field{"measurements"} / i, now)));
  }
  command.total_steps = TRY(StepsFromWire(request.has_total_steps(), request.total_steps()));
  command.catching_up = request.catching_up();
  command.call = {request.sequence(), DigestOf(request)};
  return command;
}

StatusOr<RegisterCheckpointCommand> FromWire(const v1::RegisterCheckpointRequest& request) {
  RegisterCheckpointCommand command;
  command.lease = TRY(FromWire(request.lease(), {"lease"}));
  TRY(CheckSequence({"sequence"}, request.sequence()));
  command.checkpoint = TRY(FromWire(request.checkpoint(), {"checkpoint"}));
  command.checkpoint.attempt = command.lease.attempt;
  command.call = {request.sequence(), DigestOf(request)};
  return command;
}

StatusOr<RenewCommand> FromWire(const v1::RenewRequest& request) {
  TRY(CheckCount({"leases"}, request.leases_size(), 1, kMaxListed));
  RenewCommand command;
  for (int i = 0; i < request.leases_size(); ++i) {
    command.leases.push_back(TRY(FromWire(request.leases(i), Field{"leases"} / i)));
    if (request.leases(i).study() != request.leases(0).study()) {
      return Refuse(Field{"leases"} / i / "study", "is not that of the first lease",
                    "make one call for each study");
    }
  }
  return command;
}

StatusOr<ReleaseCommand> FromWire(const v1::ReleaseRequest& request) {
  ReleaseCommand command;
  command.lease = TRY(FromWire(request.lease(), {"lease"}));
  TRY(CheckSequence({"sequence"}, request.sequence()));
  command.why = Tail(request.why(), kMaxTextBytes);
  command.call = {request.sequence(), DigestOf(request)};
  return command;
}

StatusOr<CompleteCommand> FromWire(const v1::CompleteRequest& request, const MakeTokens& tokens,
                                   Timestamp now) {
  CompleteCommand command;
  command.lease = TRY(FromWire(request.lease(), {"lease"}));
  TRY(CheckSequence({"sequence"}, request.sequence()));
  switch (request.outcome_case()) {
    case v1::CompleteRequest::kFinished:
      command.outcome = FinishedOutcome{};
      break;
    case v1::CompleteRequest::kFailed:
      command.outcome = FailedOutcome{Tail(request.failed().why(), kMaxTextBytes)};
      break;
    case v1::CompleteRequest::kInfeasible:
      command.outcome = InfeasibleOutcome{Tail(request.infeasible().why(), kMaxTextBytes)};
      break;
    case v1::CompleteRequest::OUTCOME_NOT_SET:
      return Refuse({"outcome"}, "is not set", "give finished, failed or infeasible");
  }
  if (request.has_final_measurement()) {
    command.final_measurement =
        TRY(FromWire(request.final_measurement(), {"final_measurement"}, now));
  }
  if (request.has_next()) {
    if (!request.next().study().empty() && request.next().study() != request.lease().study()) {
      return Refuse({"next.study"}, "is not that of the lease",
                    "ask another study with a Suggest of its own");
    }
    // The same Suggest may come again as a call of its own: its digest is that of the whole
    // request.
    v1::SuggestRequest next = request.next();
    next.set_study(request.lease().study());
    command.next = TRY(FromWire(next, tokens));
  }
  command.call = {request.sequence(), DigestOf(request)};
  return command;
}

StatusOr<EnqueueCommand> FromWire(const v1::EnqueueTrialRequest& request) {
  TRY(CheckRequestId({"request_id"}, request.request_id()));
  return EnqueueCommand{TRY(FromWire(request.params())), request.request_id()};
}

StatusOr<RetryCommand> FromWire(const v1::RetryTrialsRequest& request) {
  TRY(CheckRequestId({"request_id"}, request.request_id()));
  TRY(CheckCount({"trials"}, request.trials_size(), 0, kMaxTrialsPerStudy));
  RetryCommand command;
  command.request_id = request.request_id();
  for (int i = 0; i < request.trials_size(); ++i) {
    TRY(CheckCount(Field{"trials"} / i, request.trials(i), 1, INT64_MAX));
    command.trials.push_back(request.trials(i));
  }
  return command;
}

StatusOr<SetStateCommand> FromWire(const v1::SetStudyStateRequest& request) {
  switch (request.state()) {
    case v1::STUDY_STATE_ACTIVE:
      return SetStateCommand{StudyState::kActive};
    case v1::STUDY_STATE_PAUSED:
      return SetStateCommand{StudyState::kPaused};
    case v1::STUDY_STATE_STOPPED:
      return SetStateCommand{StudyState::kStopped};
    default:
      return Refuse({"state"}, "is none that can be set", "give active, paused or stopped");
  }
}

StatusOr<SetAttributesCommand> FromWire(const v1::SetAttributesRequest& request) {
  TRY(CheckCount({"trial"}, request.trial(), 0, INT64_MAX));
  SetAttributesCommand command;
  command.trial = request.trial();
  command.set = TRY(AttributesFromWire(request.set(), {"set"}));
  TRY(CheckCount({"remove"}, request.remove_size(), 0, kMaxListed));
  for (const std::string& name : request.remove()) {
    TRY(CheckName({"remove"}, name));
    command.remove.push_back(name);
  }
  return command;
}

}  // namespace jizi::tuner
