// command_check.cc - judges a sweep file: its faults, what a person should know, the resolved
// space, and three trials to look at.

#include "jizi/v1/tune_service.pb.h"
#include "proto/client.h"
#include "schedulers/scheduler.h"
#include "tuner-service/cli/commands.h"
#include "tuner-service/cli/show.h"
#include "tuner-service/cli/sweep_file.h"
#include "tuner-service/cli/table.h"
#include "tuner-service/cli/terminal.h"
#include "tuner-service/cli/text.h"
#include "tuner-service/rpc/convert.h"
#include "tuner-service/workers/worker.h"

namespace jizi::tuner {
namespace {

constexpr int kSamples = 3;

std::string ShowUniform(const Uniform& uniform) {
  const char* scale = uniform.scale == Scale::kLinear ? "uniform"
                      : uniform.scale == Scale::kLog  ? "log"
                                                      : "inverse log";
  return std::string(scale) + " in [" + ShowNumber(uniform.min) + ", " + ShowNumber(uniform.max) +
         "]";
}

std::string ShowDomain(const Domain& domain) {
  if (const auto* constant = std::get_if<ConstantDomain>(&domain)) {
    return "always " + ToJsonText(constant->value);
  }
  if (const auto* categorical = std::get_if<CategoricalDomain>(&domain)) {
    std::vector<std::string> values;
    for (size_t i = 0; i < categorical->values.size(); ++i) {
      std::string value = ToJsonText(categorical->values[i]);
      if (!categorical->probabilities.empty())
        value += " (" + ShowNumber(categorical->probabilities[i]) + ")";
      values.push_back(value);
    }
    return "one of " + Joined(values, ", ");
  }
  const auto& numeric = std::get<NumericDomain>(domain);
  std::string text = numeric.integral ? "int, " : "";
  if (const auto* uniform = std::get_if<Uniform>(&numeric.distribution)) {
    text += ShowUniform(*uniform);
  } else if (const auto* normal = std::get_if<Normal>(&numeric.distribution)) {
    text += std::string(normal->log ? "log-normal" : "normal") + ", mu " + ShowNumber(normal->mu) +
            ", sigma " + ShowNumber(normal->sigma);
  } else {
    const auto& beta = std::get<Beta>(numeric.distribution);
    text += "beta, a " + ShowNumber(beta.a) + ", b " + ShowNumber(beta.b);
  }
  if (numeric.quantum > 0 && !(numeric.integral && numeric.quantum == 1)) {
    text += ", steps of " + ShowNumber(numeric.quantum);
  }
  return text;
}

std::string ShowConditions(const ParameterSpec& spec) {
  std::vector<std::string> parts;
  for (const Condition& condition : spec.when) {
    std::vector<std::string> values;
    for (const ParamValue& value : condition.any_of) values.push_back(ToJsonText(value));
    parts.push_back(condition.parent + " is " + Joined(values, " or "));
  }
  return Joined(parts, " and ");
}

// The first trials that the study would get: the scheduler's own where it is here, else draws of
// the space.
std::vector<Params> SampleTrials(const Sweep& sweep) {
  std::vector<Params> samples = sweep.first_trials;
  if (const auto scheduler = MakeScheduler(sweep.study); scheduler.ok()) {
    Study study;
    study.spec = std::make_shared<const StudySpec>(sweep.study);
    Memo memo;
    const auto decision =
        (*scheduler)->Suggest(study, kSamples, Rng::ForSuggest(sweep.study.seed, 1), memo);
    if (decision.ok()) {
      for (const Proposal& proposal : decision->start) samples.push_back(proposal.params);
    }
  } else {
    Rng rng = Rng::ForSuggest(sweep.study.seed, 1);
    for (int i = 0; i < kSamples; ++i) samples.push_back(Sample(sweep.study.space, rng));
  }
  if (samples.size() > kSamples) samples.resize(kSamples);
  return samples;
}

Status WriteJson(const Sweep& sweep) {
  std::string text = Json(ToWire(sweep.study)) + "\n";
  for (const Params& params : SampleTrials(sweep)) {
    v1::EnqueueTrialRequest sample;
    for (const auto& [name, value] : params) (*sample.mutable_params())[name] = ToWire(value);
    text += Json(sample) + "\n";
  }
  return Write(text);
}

std::string Head(const Sweep& sweep) {
  const StudySpec& study = sweep.study;
  std::string text = "study    " + Fit(study.name, 256) + "\nmethod   " + study.method;
  if (study.settings_json != "{}") text += " " + study.settings_json;
  text += ", seed " + std::to_string(study.seed) + "\n";
  for (size_t i = 0; i < study.metrics.size(); ++i) {
    const MetricSpec& metric = study.metrics[i];
    text += std::string(i == 0 ? "metric   " : "stored   ") + metric.name +
            (metric.goal == Goal::kMaximize ? ", maximize" : ", minimize");
    if (metric.target) text += ", until " + ShowNumber(*metric.target);
    text += "\n";
  }
  const auto points = CountPoints(study.space);
  text +=
      "trials   " +
      (study.budget.run_cap ? "at most " + std::to_string(*study.budget.run_cap) : "no run_cap") +
      ", " + std::to_string(sweep.workers) + " at a time";
  if (points) text += "; the space has " + std::to_string(*points) + " points";
  text += sweep.launch.command.empty() ? "\ncommand  none" : "\ncommand ";
  for (const std::string& word : sweep.launch.command) text += " " + word;
  if (!sweep.launch.program.empty()) text += "  (program: " + sweep.launch.program + ")";
  return text + "\n";
}

Status WriteSweep(const Sweep& sweep, size_t width) {
  std::vector<Row> rows;
  bool conditions = false;
  for (const ParameterSpec& spec : sweep.study.space.parameters) {
    rows.push_back({spec.name, ShowDomain(spec.domain), ShowConditions(spec)});
    conditions = conditions || !spec.when.empty();
  }
  std::vector<Column> columns = {{"parameter"}, {"values"}, {"only when"}};
  if (!conditions) {
    columns.pop_back();
    for (Row& row : rows) row.pop_back();
  }
  std::string text = Head(sweep) + "\n" + RenderTable(columns, rows, width) + "\nfor example\n";
  for (const Params& params : SampleTrials(sweep)) text += "  " + ToJsonText(params) + "\n";
  return WriteText(text);
}

}  // namespace

std::string CommandFault(const std::string& file, const Sweep& sweep, const Status& status,
                         const std::string& kind) {
  const bool program = DetailOf(status).subject == sweep.launch.program;
  return file + ":" + std::to_string(program ? sweep.program_line : sweep.command_line) + ": " +
         kind + ForPeople(status);
}

ExitCode CommandCheck(const CheckOptions& options) {
  auto sweep = ReadSweepFile(options.sweep_file, CheckCommand);
  if (!sweep.ok()) {
    PrintError(ForPeople(sweep.status()));
    return kExitUsage;
  }
  if (const Status status = CheckCommand(sweep->launch); !status.ok()) {
    // The file may be judged where its program is not, or be for `create` and `ask-tell`.
    PrintError(CommandFault(options.sweep_file, *sweep, status, "warning: "));
  }
  if (const Status status = CheckSlots(sweep->launch, sweep->workers); !status.ok()) {
    PrintError(options.sweep_file + ": " + ForPeople(status));
    return kExitUsage;
  }
  if (!sweep->study.budget.run_cap && !CountPoints(sweep->study.space)) {
    sweep->notes.push_back({1, "there is no run_cap: it goes on until it is stopped"});
  }
  for (const SweepNote& note : sweep->notes) {
    PrintError(options.sweep_file + ":" + std::to_string(note.line) + ": note: " + note.text);
  }
  const Status written =
      options.json ? WriteJson(*sweep) : WriteSweep(*sweep, Terminal().TableWidth());
  return Done(written);
}

}  // namespace jizi::tuner
