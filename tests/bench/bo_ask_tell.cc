// bo_ask_tell - a method of schedulers/ played by another program, without a service: one JSON
// object a line on stdin, one line of answer on stdout. bo_bench.py speaks to it.
//   {"start": {"params": [{"name", "type": "int"|"float", "min", "max"} |
//              {"name", "type": "categorical", "values": [...]}], "goal", "seed"}} -> {"ok": true}
//   {"ask": 1}                            -> {"id": "7", "params": {...}, "why": "...", "ms": 3.1}
//   CPU time.
//   {"tell": {"id": "7", "value": 0.83}}  -> {"ok": true}   null: the trial was infeasible.
//   {"tell": {"id": null, "params": {...}, "value": 0.83}}: a trial from elsewhere.
// usage: bo_ask_tell [--method bayes] [--settings JSON] [--drop-memo]
#include <CLI/CLI.hpp>
#include <chrono>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>

#include "schedulers/scheduler.h"

namespace jizi::tuner {
namespace {

using nlohmann::json;

json ToJson(const ParamValue& value) {
  return json::parse(ToJsonText(value));
}

ParamValue FromJson(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  return JsonText{value.dump()};
}

ParameterSpec ParameterOf(const json& described) {
  ParameterSpec parameter;
  parameter.name = described.at("name");
  const std::string type = described.at("type");
  if (type == "categorical") {
    CategoricalDomain domain;
    for (const json& value : described.at("values")) domain.values.push_back(FromJson(value));
    parameter.domain = domain;
    return parameter;
  }
  const Uniform uniform{described.at("min"), described.at("max"),
                        described.value("log", false) ? Scale::kLog : Scale::kLinear};
  const bool integral = type == "int";
  parameter.domain = NumericDomain{uniform, integral ? 1.0 : 0.0, integral};
  return parameter;
}

class Session {
 public:
  Session(std::string method, std::string settings, bool drop_memo)
      : method_(std::move(method)), settings_(std::move(settings)), drop_memo_(drop_memo) {}

  json Answer(const json& message) {
    if (message.contains("start")) return Start(message.at("start"));
    if (message.contains("ask")) return Ask();
    return Tell(message.at("tell"));
  }

 private:
  json Start(const json& start) {
    StudySpec spec;
    spec.name = "bench";
    for (const json& each : start.at("params")) spec.space.parameters.push_back(ParameterOf(each));
    spec.metrics = {{.name = "value",
                     .goal = start.at("goal") == "maximize" ? Goal::kMaximize : Goal::kMinimize,
                     .target = {}}};
    spec.method = method_;
    spec.settings_json = settings_;
    spec.seed = start.at("seed");
    const Status valid = Validate(spec);
    if (!valid.ok()) return {{"error", ForPeople(valid)}};
    auto scheduler = MakeScheduler(spec);
    if (!scheduler.ok()) return {{"error", ForPeople(scheduler.status())}};
    scheduler_ = *std::move(scheduler);
    study_ = {};
    study_.spec = std::make_shared<const StudySpec>(std::move(spec));
    memo_ = {};
    decision_ = 0;
    ended_ = 0;
    return {{"ok", true}};
  }

  json Ask() {
    const std::clock_t begin =
        std::clock();  // Of this process: others on the machine do not count.
    if (drop_memo_) memo_ = {};
    auto decision =
        scheduler_->Suggest(study_, 1, Rng::ForSuggest(study_.spec->seed, ++decision_), memo_);
    const double ms = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (!decision.ok()) return {{"error", ForPeople(decision.status())}};
    if (decision->start.empty()) return {{"error", decision->why}};
    Proposal& proposal = decision->start.front();
    json params = json::object();
    for (const auto& [name, value] : proposal.params) params[name] = ToJson(value);
    json answer = {{"id", std::to_string(study_.trials.size() + 1)},
                   {"params", params},
                   {"why", proposal.why},
                   {"ms", ms}};
    Add(std::move(proposal));
    return answer;
  }

  json Tell(const json& tell) {
    size_t index = study_.trials.size();
    if (tell.at("id").is_null()) {
      Params params;
      for (const auto& [name, value] : tell.at("params").items()) params[name] = FromJson(value);
      Proposal proposal;
      proposal.params = Coerce(study_.spec->space, std::move(params));
      Add(std::move(proposal));
    } else {
      index = std::stoul(tell.at("id").get<std::string>()) - 1;
    }
    Trial& trial = study_.trials.Mutable(index).Mutable();
    --study_.counts[trial.state];
    trial.ended = Timestamp(std::chrono::microseconds(++ended_));
    if (tell.at("value").is_null()) {
      trial.state = TrialState::kInfeasible;
    } else {
      trial.state = TrialState::kCompleted;
      trial.objective = tell.at("value").get<double>();
    }
    ++study_.counts[trial.state];
    return {{"ok", true}};
  }

  void Add(Proposal proposal) {
    Trial trial;
    trial.id = static_cast<TrialId>(study_.trials.size()) + 1;
    trial.state = TrialState::kRunning;
    trial.params = std::move(proposal.params);
    trial.tags = std::move(proposal.tags);
    trial.decision = decision_;
    ++study_.counts[trial.state];
    study_.trials.push_back(Cow<Trial>(std::move(trial)));
  }

  std::string method_;
  std::string settings_;
  bool drop_memo_;
  std::unique_ptr<Scheduler> scheduler_;
  Study study_;
  Memo memo_;
  int64_t decision_ = 0;
  int64_t ended_ = 0;
};

}  // namespace
}  // namespace jizi::tuner

int main(int argc, char** argv) {
  CLI::App app("plays a method of schedulers/ over JSON lines");
  std::string method = "bayes";
  std::string settings = "{}";
  bool drop_memo = false;
  app.add_option("--method", method);
  app.add_option("--settings", settings, "the scheduler's settings, as JSON");
  app.add_flag("--drop-memo", drop_memo, "compute everything again at each suggestion");
  CLI11_PARSE(app, argc, argv);
  jizi::tuner::Session session(method, settings, drop_memo);
  std::string line;
  while (std::getline(std::cin, line)) {
    nlohmann::json answer;
    try {
      answer = session.Answer(nlohmann::json::parse(line));
    } catch (const nlohmann::json::exception& fault) {
      answer = {{"error", fault.what()}};
    }
    std::cout << answer.dump() << std::endl;
  }
  return 0;
}
