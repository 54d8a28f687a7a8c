#include "tuner-service/cli/ask_tell.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

using Json = nlohmann::json;
using Stub = v1::TuneService::Stub;
constexpr double kLease_s = 86400;  // Renewed each hour; a tuned program may think for long.
constexpr int kMostAsked = 1000;
constexpr size_t kMostLeases = 1000;  // Of one Renew.

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status Bad(const std::string& subject, const std::string& what, const std::string& mend) {
  return Error(StatusCode::kInvalidArgument, what, {"BAD_REQUEST", subject, mend});
}

std::string KindOf(const Json& json) {
  return json.is_null() ? "null" : std::string("a ") + json.type_name();
}

}  // namespace

// One object of a request, with typed reads that name what is wrong.
class AskTell::Request {
 public:
  Request(std::string name, const Json& json) : name_(std::move(name)), json_(json) {}

  const Json& json() const { return json_; }
  const std::string& name() const { return name_; }

  Status OnlyKeys(const std::vector<std::string>& names) const {
    if (!json_.is_object()) {
      return Bad(
          name_, "`" + name_ + "` is " + KindOf(json_) + ", an object is needed",
          "write for example {\"" + name_ + "\": {\"id\": 1, \"metrics\": {\"loss\": 0.5}}}");
    }
    for (const auto& [key, value] : json_.items()) {
      if (std::find(names.begin(), names.end(), key) != names.end()) continue;
      return Bad(key, name_ + ": there is no key `" + Shown(key) + "`", MendForName(key, names));
    }
    return absl::OkStatus();
  }

  StatusOr<int64_t> Whole(const char* key, int64_t least, int64_t most) const {
    return WholeOf(json_.contains(key) ? json_.at(key) : Json(), name_ + ": " + key, least, most);
  }

  static StatusOr<int64_t> WholeOf(const Json& value, const std::string& what, int64_t least,
                                   int64_t most) {
    const bool above = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
    if (value.is_number_integer() && !above && value.get<int64_t>() >= least &&
        value.get<int64_t>() <= most) {
      return value.get<int64_t>();
    }
    return Bad(what, what + " is " + (value.is_number() ? Dump(value) : KindOf(value)),
               "give a whole number from " + std::to_string(least) +
                   (most == INT64_MAX ? " on" : " to " + std::to_string(most)));
  }

  StatusOr<Metrics> ReadMetrics() const {
    Metrics metrics;
    if (!json_.contains("metrics")) return metrics;
    const Json& given = json_.at("metrics");
    if (!given.is_object()) {
      return Bad("metrics", name_ + ": metrics is " + KindOf(given),
                 "give an object, such as {\"loss\": 0.5}");
    }
    for (const auto& [metric, value] : given.items()) {
      if (value.is_number()) {
        metrics[metric] = value.get<double>();
      } else if (value == "NaN") {
        metrics[metric] = std::numeric_limits<double>::quiet_NaN();
      } else if (value == "Infinity" || value == "-Infinity") {
        metrics[metric] = (value == "Infinity" ? 1 : -1) * std::numeric_limits<double>::infinity();
      } else {
        return Bad(metric, name_ + ": the metric " + Shown(metric) + " is " + KindOf(value),
                   R"(give a number, or "NaN", "Infinity", "-Infinity")");
      }
    }
    return metrics;
  }

  // A reason; `true` gives none. Empty where the key is not there.
  StatusOr<std::optional<std::string>> Reason(const char* key) const {
    if (!json_.contains(key)) return std::optional<std::string>();
    const Json& why = json_.at(key);
    if (why.is_string()) return std::optional(why.get<std::string>());
    if (why == true) return std::optional(std::string());
    return Bad(key, name_ + ": " + key + " is " + KindOf(why), "say why, in a text");
  }

 private:
  const std::string name_;
  const Json& json_;
};

AskTell::AskTell(Client& client, std::string study, std::string metric, std::string worker)
    : client_(client),
      study_(std::move(study)),
      metric_(std::move(metric)),
      worker_(std::move(worker)) {}

StatusOr<int> AskTell::Begin() {
  v1::AttachRequest attach;
  attach.mutable_lease()->set_study(study_);
  attach.set_worker(worker_);
  const auto attached = TRY(CallPatiently(client_, &Stub::Attach, attach));
  sequence_ = attached.next_worker_sequence();
  for (int i = 0; i < attached.held_size(); ++i) {
    HeldTrial left{attached.held(i).lease(), attached.next_sequence(i), attached.last_step(i)};
    TRY(SendRelease(client_, left, "the session that had asked for it did not end properly"));
  }
  return attached.held_size();
}

std::string AskTell::ErrorLine(const Status& status) {
  const ErrorDetail detail = DetailOf(status);
  return Dump({{"error",
                {{"code", detail.code.empty() ? "INTERNAL" : detail.code},
                 {"message", std::string(status.message())},
                 {"mend", detail.mend}}}});
}

std::string AskTell::Answer(const std::string& line) {
  StatusOr<std::string> answer = Serve(line);
  return answer.ok() ? *std::move(answer) : ErrorLine(answer.status());
}

StatusOr<std::string> AskTell::Serve(const std::string& line) {
  const std::vector<std::string> kinds = {"ask", "report", "tell"};
  static constexpr char kMend[] =
      R"(write {"ask": 1}, {"report": {...}} or {"tell": {...}}, one object a line)";
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return Error(StatusCode::kInvalidArgument, "the line is not JSON", {"BAD_JSON", "line", kMend});
  }
  if (!json.is_object() || json.size() != 1) {
    return Bad("line",
               json.is_object() ? "the object has " + std::to_string(json.size()) + " keys"
                                : "the line is " + KindOf(json),
               kMend);
  }
  const std::string kind = json.begin().key();
  const Request request(kind, json.begin().value());
  if (kind == "ask") return Ask(request);
  if (kind == "report") return Report(request);
  if (kind == "tell") return Tell(request);
  return Bad(kind, "there is no request `" + Shown(kind) + "`", MendForName(kind, kinds));
}

StatusOr<std::string> AskTell::Ask(const Request& request) {
  const int64_t count = TRY(Request::WholeOf(request.json(), "ask", 1, kMostAsked));
  v1::SuggestRequest suggest;
  suggest.set_study(study_);
  suggest.set_worker(worker_);
  suggest.set_sequence(sequence_);
  suggest.set_count(static_cast<int32_t>(count));
  suggest.set_lease_s(kLease_s);
  const auto response = TRY(CallPatiently(client_, &Stub::Suggest, suggest));
  if (response.has_wait())
    return Dump({{"trials", Json::array()}, {"wait", response.wait().why()}});
  ++sequence_;  // A Wait is not kept: its number is decided anew.
  if (response.has_finished()) return Dump({{"finished", response.finished().why()}});
  std::string trials;
  for (const v1::Assignment& assignment : response.trials().assignments()) {
    const v1::Trial& trial = assignment.trial();
    held_[trial.id()] = {{assignment.lease(), 1, -1}, false};
    trials += (trials.empty() ? "" : ",") + std::string("{\"id\":") + std::to_string(trial.id()) +
              ",\"params\":" + PlainJson(trial.params()) + "}";
  }
  return "{\"trials\":[" + trials + "]}";
}

StatusOr<AskTell::Held*> AskTell::Find(int64_t id) {
  const auto found = held_.find(id);
  if (found != held_.end()) return &found->second;
  return Error(StatusCode::kFailedPrecondition,
               "trial " + std::to_string(id) + " was not asked for, or has been told already",
               {"TRIAL_NOT_HELD", "id", "ask first, and tell each trial once"});
}

void AskTell::Forget(int64_t id, const Status& status) {
  const std::string code = DetailOf(status).code;
  if (code == "LEASE_LOST" || code == "TRIAL_ENDED" || code == "STUDY_NOT_FOUND") held_.erase(id);
}

StatusOr<std::string> AskTell::Report(const Request& request) {
  TRY(request.OnlyKeys({"id", "step", "metrics"}));
  const int64_t id = TRY(request.Whole("id", 1, INT64_MAX));
  const int64_t step = TRY(request.Whole("step", 0, INT64_MAX));
  const Metrics metrics = TRY(request.ReadMetrics());
  if (metrics.empty()) {
    return Bad("metrics", "report: there are no metrics", R"(add "metrics": {"loss": 0.5})");
  }
  Held* held = TRY(Find(id));
  const auto directive = SendReport(client_, held->trial, MeasurementOf(metrics, step));
  if (!directive.ok()) {
    Forget(id, directive.status());
    return directive.status();
  }
  held->measured = held->measured || metrics.contains(metric_);
  return DirectiveJson(*directive);
}

StatusOr<std::string> AskTell::Tell(const Request& request) {
  TRY(request.OnlyKeys({"id", "metrics", "failed", "infeasible"}));
  const int64_t id = TRY(request.Whole("id", 1, INT64_MAX));
  const Metrics metrics = TRY(request.ReadMetrics());
  const auto failed = TRY(request.Reason("failed"));
  const auto infeasible = TRY(request.Reason("infeasible"));
  if (failed && infeasible) {
    return Bad("infeasible", "tell: it is failed and infeasible at once", "leave one out");
  }
  Held* held = TRY(Find(id));
  Ending ending;
  if (failed) ending = {TrialEnd::kFailed, *failed, std::nullopt};
  if (infeasible) ending = {TrialEnd::kInfeasible, *infeasible, std::nullopt};
  const bool measured = held->measured || metrics.contains(metric_) || metric_.empty();
  if (ending.end == TrialEnd::kFinished && !measured) {
    return Error(StatusCode::kInvalidArgument,
                 "tell: the study's metric " + Shown(metric_) + " is missing",
                 {"METRIC_MISSING", metric_, "add it to \"metrics\", or tell \"failed\""});
  }
  if (!metrics.empty()) ending.final_measurement = MeasurementOf(metrics, NextStep(held->trial));
  const auto ended = SendComplete(client_, held->trial, ending);
  if (!ended.ok()) {
    Forget(id, ended.status());
    return ended.status();
  }
  held_.erase(id);
  return std::string("{\"ok\":true}");
}

Status AskTell::Renew() {
  v1::RenewRequest renew;
  for (const auto& [id, held] : held_) {
    *renew.add_leases() = held.trial.lease;
    if (static_cast<size_t>(renew.leases_size()) < kMostLeases) continue;
    TRY(CallPatiently(client_, &Stub::Renew, renew));
    renew.clear_leases();
  }
  if (renew.leases_size() > 0) TRY(CallPatiently(client_, &Stub::Renew, renew));
  return absl::OkStatus();
}

StatusOr<int> AskTell::End() {
  int released = 0;
  Status first;
  for (auto& [id, held] : held_) {
    const Status status = SendRelease(client_, held.trial, "the session that had asked ended");
    if (status.ok()) ++released;
    const std::string code = DetailOf(status).code;
    if (first.ok() && !status.ok() && code != "LEASE_LOST" && code != "TRIAL_ENDED") first = status;
  }
  held_.clear();
  if (!first.ok()) return first;
  return released;
}

}  // namespace jizi::tuner
