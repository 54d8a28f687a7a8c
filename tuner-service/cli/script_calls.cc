#include "tuner-service/cli/script_calls.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

using Stub = v1::TuneService::Stub;
constexpr size_t kTokenBytes = 16;
constexpr size_t kLongestReason =
    60'000;  // The wire takes 64 KiB; the service keeps head and tail.

nlohmann::json ToJson(const v1::Value& value) {
  return nlohmann::json::parse(ToJsonText(value), nullptr, /*allow_exceptions=*/false);
}

std::string Dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

StatusOr<Metrics> ParseMetrics(const std::vector<std::string>& assignments) {
  Metrics metrics;
  for (const std::string& assignment : assignments) {
    const size_t equals = assignment.find('=');
    const auto bad = [&](const std::string& what) {
      return Error(StatusCode::kInvalidArgument, what,
                   {"BAD_METRIC", assignment, "write for example val_accuracy=0.91"});
    };
    if (equals == 0 || equals == std::string::npos ||
        FirstBadUtf8(assignment) != std::string::npos) {
      return bad("`" + Shown(assignment) + "` is no METRIC=NUMBER");
    }
    const char* const end = assignment.data() + assignment.size();
    const char* begin = assignment.data() + equals + 1;
    if (begin != end && *begin == '+') ++begin;
    double value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);  // Also nan, inf, -inf.
    if (error == std::errc::invalid_argument || stop != end || begin == end) {
      return bad("the value of `" + Shown(assignment) + "` is no number");
    }
    if (error == std::errc::result_out_of_range) {
      return bad("the value of `" + Shown(assignment) + "` is beyond what a double holds");
    }
    if (!metrics.emplace(assignment.substr(0, equals), value).second) {
      return bad("the metric " + Shown(assignment.substr(0, equals)) + " is given twice");
    }
  }
  return metrics;
}

StatusOr<std::string> TokenFromHex(const std::string& hex) {
  std::string token;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned byte = 0;
    const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    if (error != std::errc() || end != hex.data() + i + 2) break;
    token += static_cast<char>(byte);
  }
  if (hex.size() == 2 * kTokenBytes && token.size() == kTokenBytes) return token;
  return Error(
      StatusCode::kInvalidArgument,
      hex.empty() ? "no lease is given" : "the lease `" + Shown(hex) + "` is not 32 hex digits",
      {"BAD_LEASE_TOKEN", "lease",
       "give --lease-token or JIZI_LEASE, as `jizi suggest` printed it"});
}

StatusOr<v1::Lease> LeaseOf(Client& client, const std::string& study, int64_t trial,
                            const std::string& token) {
  v1::GetTrialRequest get;
  get.set_study(study);
  get.set_trial(trial);
  get.set_max_measurements(1);
  const auto found = TRY(CallPatiently(client, &Stub::GetTrial, get));
  v1::Lease lease;
  lease.set_study(study);
  lease.set_trial(trial);
  lease.set_token(token);
  // Of an older attempt the token does not fit, and the service says that the lease is lost.
  const auto& attempts = found.trial().attempts();
  lease.set_attempt(attempts.empty() ? 1 : attempts[attempts.size() - 1].number());
  return lease;
}

StatusOr<HeldTrial> AttachTrial(Client& client, const v1::Lease& lease) {
  v1::AttachRequest attach;
  *attach.mutable_lease() = lease;
  attach.mutable_capabilities()->set_stop(true);
  const auto attached = TRY(CallPatiently(client, &Stub::Attach, attach));
  HeldTrial held{lease, 1, -1};
  if (attached.next_sequence_size() > 0) held.next_sequence = attached.next_sequence(0);
  if (attached.last_step_size() > 0) held.last_step = attached.last_step(0);
  return held;
}

int64_t NextStep(const HeldTrial& held) {
  return std::max<int64_t>(held.last_step, 0) + 1;
}

v1::Measurement MeasurementOf(const Metrics& metrics, int64_t step) {
  v1::Measurement measurement;
  measurement.set_step(step);
  for (const auto& [name, value] : metrics) (*measurement.mutable_metrics())[name] = value;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  measurement.mutable_time()->set_seconds(seconds.count());
  measurement.mutable_time()->set_nanos(static_cast<int32_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now - seconds).count()));
  return measurement;
}

StatusOr<v1::Directive> SendReport(Client& client, HeldTrial& held,
                                   const v1::Measurement& measurement) {
  v1::ReportRequest request;
  *request.mutable_lease() = held.lease;
  request.set_sequence(held.next_sequence);
  *request.add_measurements() = measurement;
  auto response = TRY(CallPatiently(client, &Stub::Report, request));
  ++held.next_sequence;
  if (response.rejected_size() > 0) {
    return Error(StatusCode::kInvalidArgument, response.rejected(0).why(),
                 {"BAD_MEASUREMENT", "step " + std::to_string(measurement.step()),
                  "give each step once, in rising order, with finished steps counted from 1"});
  }
  held.last_step = std::max(held.last_step, measurement.step());
  return std::move(*response.mutable_directive());
}

StatusOr<v1::Trial> SendComplete(Client& client, HeldTrial& held, const Ending& ending) {
  v1::CompleteRequest request;
  *request.mutable_lease() = held.lease;
  request.set_sequence(held.next_sequence);
  const std::string why = Utf8Text(ending.why, kLongestReason);
  if (ending.end == TrialEnd::kFailed) {
    request.mutable_failed()->set_why(why);
  } else if (ending.end == TrialEnd::kInfeasible) {
    request.mutable_infeasible()->set_why(why);
  } else {
    request.mutable_finished();
  }
  if (ending.final_measurement) *request.mutable_final_measurement() = *ending.final_measurement;
  auto response = TRY(CallPatiently(client, &Stub::Complete, request));
  ++held.next_sequence;
  return std::move(*response.mutable_trial());
}

Status SendRelease(Client& client, HeldTrial& held, const std::string& why) {
  v1::ReleaseRequest request;
  *request.mutable_lease() = held.lease;
  request.set_sequence(held.next_sequence);
  request.set_why(Utf8Text(why, kLongestReason));
  TRY(CallPatiently(client, &Stub::Release, request));
  ++held.next_sequence;
  return absl::OkStatus();
}

std::string PlainJson(const google::protobuf::Map<std::string, v1::Value>& params) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : params) json[name] = ToJson(value);
  return Dump(json);
}

std::string DirectiveJson(const v1::Directive& directive) {
  nlohmann::json json = nlohmann::json::object();
  switch (directive.kind_case()) {
    case v1::Directive::kStop:
      json["directive"] = "stop";
      break;
    case v1::Directive::kPause:
      json["directive"] = "pause";
      break;
    default:
      json["directive"] = "continue";
      for (const auto& [name, value] : directive.go_on().set()) json["set"][name] = ToJson(value);
      if (directive.go_on().has_roll_back_to()) {
        json["roll_back_to"] = directive.go_on().roll_back_to();
      }
  }
  if (!directive.why().empty()) json["why"] = directive.why();
  return Dump(json);
}

bool IsToEnd(const v1::Directive& directive) {
  return directive.has_stop() || directive.has_pause();
}

}  // namespace jizi::tuner
