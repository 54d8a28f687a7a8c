#include "tuner-service/cli/sweep_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "schedulers/scheduler.h"
#include "tuner-service/cli/sweep_reader.h"
#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

// What is used, so that a key within two edits of one is a slip.
const std::vector<std::string> kUsedKeys = {"program", "command",         "method", "metric",
                                            "metrics", "parameters",      "name",   "description",
                                            "run_cap", "early_terminate", "jizi"};
// What W&B and its launchers know and nothing here needs.
const std::vector<std::string> kForeignKeys = {"apiVersion", "kind",      "controller",
                                               "job",        "image_uri", "entity",
                                               "project",    "scheduler", "$schema"};

void ReadTopLevelKeys(const YamlNode& root, SweepReader& reader) {
  for (const auto& [key, value] : root.entries) {
    const auto is = [&name = key.text](const std::string& other) { return name == other; };
    if (std::any_of(kUsedKeys.begin(), kUsedKeys.end(), is)) continue;
    if (std::any_of(kForeignKeys.begin(), kForeignKeys.end(), is)) {
      reader.Note(key.line, "`" + key.text + "` has no meaning here and is left alone");
    } else if (const auto nearest = NearestName(key.text, kUsedKeys, 2)) {
      reader.faults.Add(key.line, "`" + Shown(key.text) + "` is not a key",
                        "did you mean `" + *nearest + "`?");
    } else {
      const auto& settings = SettingKeys();
      const bool ours = std::find(settings.begin(), settings.end(), key.text) != settings.end();
      reader.Note(key.line, "`" + Shown(key.text) + "` is not known and is left alone" +
                                (ours ? "; did you mean it under `jizi:`?" : ""));
    }
  }
}

void ReadMethod(const YamlNode& root, SweepReader& reader) {
  const YamlNode* node = root.Find("method");
  const std::string known = Joined(SchedulerMethods(), ", ");
  if (node == nullptr && root.Find("metric") != nullptr) {
    reader.sweep.study.method = "bayes";
    return;
  }
  if (node == nullptr) {
    reader.faults.Add(root.line, "`method` is missing",
                      "add `method: random`, or a metric for bayes; here are " + known);
    return;
  }
  auto method = reader.Text(*node, "method");
  if (!method) return;
  std::transform(method->begin(), method->end(), method->begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  reader.sweep.study.method = *method;
  const std::vector<std::string> methods = SchedulerMethods();
  if (std::find(methods.begin(), methods.end(), *method) != methods.end()) return;
  if (const auto nearest = NearestName(*method, methods, 2)) {
    reader.faults.Add(node->line, "there is no method `" + Shown(*method) + "`",
                      "did you mean `" + *nearest + "`?");
    return;
  }
  reader.Note(node->line, "the method `" + Shown(*method) +
                              "` is not in this version, so `run` will refuse it; "
                              "here are " +
                              known);
}

void ReadMetric(const YamlNode& node, SweepReader& reader) {
  static constexpr char kExample[] = "metric: {name: val_accuracy, goal: maximize}";
  if (!reader.IsGroup(node, "metric", kExample)) return;
  reader.OnlyKeys(node, "metric", {"name", "goal", "target", "impute", "impute_while_running"});
  MetricSpec metric;
  const YamlNode* name = node.Find("name");
  if (name == nullptr) {
    reader.faults.Add(node.line, "metric: `name` is missing",
                      std::string("for example ") + kExample);
  } else if (const auto text = reader.Text(*name, "metric: name")) {
    metric.name = *text;
  }
  if (const YamlNode* goal = node.Find("goal")) {
    if (goal->kind == YamlKind::kScalar && (goal->text == "minimize" || goal->text == "maximize")) {
      metric.goal = goal->text == "maximize" ? Goal::kMaximize : Goal::kMinimize;
    } else {
      const std::string mend = goal->text.rfind("max", 0) == 0   ? "did you mean `maximize`?"
                               : goal->text.rfind("min", 0) == 0 ? "did you mean `minimize`?"
                                                                 : "write minimize or maximize";
      reader.faults.Add(goal->line, "metric: goal is " + KindName(*goal), mend);
    }
  }
  if (const YamlNode* target = node.Find("target"))
    metric.target = reader.Number(*target, "metric: target");
  if (const YamlNode* impute = node.Find("impute")) {
    reader.Note(impute->line,
                "metric: impute is not used: a trial without a value is never the best");
  }
  for (const MetricSpec& there : reader.sweep.study.metrics) {
    if (there.name == metric.name) return;  // `metric` beside `metrics` often repeats it.
  }
  if (!metric.name.empty()) reader.sweep.study.metrics.push_back(std::move(metric));
}

void ReadMetrics(const YamlNode& root, SweepReader& reader) {
  const auto written = [&root](const char* key) {
    const YamlNode* node = root.Find(key);
    return node != nullptr && node->kind != YamlKind::kNull ? node : nullptr;
  };
  if (const YamlNode* metric = written("metric")) ReadMetric(*metric, reader);
  if (const YamlNode* metrics = written("metrics")) {
    if (metrics->kind != YamlKind::kList) {
      reader.faults.Add(metrics->line, "metrics is " + KindName(*metrics),
                        "give a list, such as [{name: loss}, {name: accuracy, goal: maximize}]");
      return;
    }
    for (const YamlNode& metric : metrics->items) ReadMetric(metric, reader);
    if (reader.sweep.study.metrics.size() > 1) {
      reader.Note(metrics->line, "several metrics: " + Shown(reader.sweep.study.metrics[0].name) +
                                     " is the objective, the others are stored");
    }
  }
}

void ReadEarlyTerminate(const YamlNode& node, SweepReader& reader) {
  if (node.kind == YamlKind::kNull) return;
  if (!reader.IsGroup(node, "early_terminate", "early_terminate: {type: hyperband, min_iter: 3}"))
    return;
  reader.OnlyKeys(node, "early_terminate", {"type", "min_iter", "max_iter", "s", "eta", "strict"});
  const YamlNode* type = node.Find("type");
  if (type == nullptr) {
    reader.faults.Add(node.line, "early_terminate: `type` is missing", "add `type: hyperband`");
  } else if (type->text != "hyperband") {
    reader.faults.Add(type->line, "early_terminate: type is " + KindName(*type), "write hyperband");
  }
  for (const char* key : {"min_iter", "max_iter", "s"}) {
    if (const YamlNode* value = node.Find(key)) {
      reader.Integer(*value, std::string("early_terminate: ") + key, 1, 1'000'000'000);
    }
  }
  if (const YamlNode* eta = node.Find("eta")) {
    const auto value = reader.Number(*eta, "early_terminate: eta");
    if (value && *value <= 1) {
      reader.faults.Add(eta->line, "early_terminate: eta is " + ShowNumber(*value),
                        "it is above 1, usually 3");
    }
  }
  if (const YamlNode* strict = node.Find("strict")) reader.Bool(*strict, "early_terminate: strict");
  reader.Note(node.line,
              "early_terminate is read, but not yet in force: no trial is stopped early");
}

bool IsArgsMacro(const std::string& word) {
  return word.rfind("${args", 0) == 0;
}

// `command` must start something: after ${env} and ${interpreter} comes a program, not its flags.
void CheckProgramIsThere(const YamlNode& node, const YamlNode* program, SweepReader& reader) {
  size_t first = 0;
  const auto& items = node.items;
  while (first < items.size() &&
         (items[first].text == "${env}" || items[first].text == "${interpreter}")) {
    ++first;
  }
  if (first == items.size() || IsArgsMacro(items[first].text)) {
    reader.faults.Add(
        first < items.size() ? items[first].line : node.line,
        "command: the program is missing" +
            (first < items.size() ? " before `" + items[first].text + "`" : std::string()),
        program != nullptr
            ? "add `- ${program}` there"
            : "add `- ${program}` there and the key `program:`, or the program itself");
    return;
  }
}

void ReadCommand(const YamlNode& root, SweepReader& reader) {
  Launch& launch = reader.sweep.launch;
  const YamlNode* program = root.Find("program");
  if (program != nullptr) launch.program = reader.Text(*program, "program").value_or("");
  const YamlNode* command = root.Find("command");
  reader.sweep.program_line = program != nullptr ? program->line : root.line;
  reader.sweep.command_line = command != nullptr ? command->line : reader.sweep.program_line;
  if (command == nullptr) {
    if (program == nullptr) return;  // CheckCommand says it, where something is to be run.
    const bool python = launch.program.ends_with(".py");
    // W&B wraps everything into python; a program that is no .py file is started as it is.
    if (python) {
      launch.command = {"${env}", "${interpreter}", "${program}", "${args}"};
    } else {
      launch.command = {"${env}", "${program}", "${args}"};
    }
    return;
  }
  if (command->kind != YamlKind::kList || command->items.empty()) {
    reader.faults.Add(
        command->line,
        "command is " + (command->kind == YamlKind::kList ? "an empty list" : KindName(*command)),
        "give a list with one word an item, such as [\"${program}\", \"${args}\"]");
    return;
  }
  for (const YamlNode& item : command->items) {
    if (item.kind == YamlKind::kScalar && item.text.find('\0') == std::string::npos) {
      launch.command.push_back(item.text);  // As written: -1 and 1e-5 are words here. May be empty.
    } else {
      reader.faults.Add(item.line, "command: an item is " + KindName(item),
                        "write one word an item, in quotes");
    }
  }
  CheckProgramIsThere(*command, program, reader);
}

void ReadNameAndBudget(const YamlNode& root, const std::string& file, SweepReader& reader) {
  StudySpec& study = reader.sweep.study;
  study.name = std::filesystem::path(file).stem().string();
  if (const YamlNode* name = root.Find("name"); name != nullptr && name->kind != YamlKind::kNull) {
    study.name = reader.Text(*name, "name").value_or(study.name);
    if (study.name.find_first_not_of(" \t") == std::string::npos) {
      reader.faults.Add(name->line, "name is blank", "give it a name, or take the key out");
    }
  }
  if (const YamlNode* description = root.Find("description");
      description != nullptr && description->kind == YamlKind::kScalar) {
    study.attributes["description"] = description->text;
  }
  if (const YamlNode* run_cap = root.Find("run_cap");
      run_cap != nullptr && run_cap->kind != YamlKind::kNull) {
    study.budget.run_cap = reader.Integer(*run_cap, "run_cap", 1, 1'000'000);
  }
}

void CheckGrid(SweepReader& reader) {
  if (reader.sweep.study.method != "grid") return;
  for (const ParameterSpec& spec : reader.sweep.study.space.parameters) {
    if (GridValues(spec.domain)) continue;
    const auto* numeric = std::get_if<NumericDomain>(&spec.domain);
    const auto* uniform =
        numeric == nullptr ? nullptr : std::get_if<Uniform>(&numeric->distribution);
    const bool stepped = uniform != nullptr && (numeric->integral || numeric->quantum > 0);
    reader.faults.Add(
        reader.parameter_lines[spec.name],
        Shown(spec.name) + ": a grid needs values to count, " +
            (stepped ? "and from " + ShowNumber(uniform->min) + " to " + ShowNumber(uniform->max) +
                           " there are too many"
                     : "this one is continuous"),
        stepped ? "bring min and max together, take a larger step, or use `method: random`"
                : "give `values`, a step (`distribution: q_uniform`), or use `method: random`");
  }
}

// What the space, the study and the scheduler refuse; where the line is not known it is that of the
// nearest key.
void CheckWhole(const YamlNode& root, SweepReader& reader) {
  const StudySpec& study = reader.sweep.study;
  const auto line_of = [&](const char* key) {
    const YamlNode* node = root.Find(key);
    return node == nullptr ? root.line : node->line;
  };
  if (const Status status = Validate(study); !status.ok()) {
    const auto there = reader.parameter_lines.find(DetailOf(status).subject);
    reader.faults.Add(there != reader.parameter_lines.end() ? there->second : line_of("name"), "",
                      status);
    return;
  }
  if (study.objective != Objective() && study.metrics.empty()) {
    reader.faults.Add(line_of("jizi"), "jizi: objective without a metric",
                      "add `metric: {name: ...}`");
  }
  const std::vector<std::string> methods = SchedulerMethods();
  if (std::find(methods.begin(), methods.end(), study.method) == methods.end()) return;
  const auto scheduler = MakeScheduler(study);
  if (scheduler.ok()) return;
  int line = line_of("method");
  const std::string subject = DetailOf(scheduler.status()).subject;
  const std::string message(scheduler.status().message());
  for (const auto& [name, at] : reader.setting_lines) {
    if (subject == name || message.find(name) != std::string::npos) line = at;
  }
  reader.faults.Add(line, "", scheduler.status());
}

// A program that is not there is told with the other faults; what else is wrong with `command`
// stands among them already.
void CheckProgramExists(SweepReader& reader, Status (*judge)(const Launch&)) {
  const Launch& launch = reader.sweep.launch;
  const Status status = judge(launch);
  const ErrorDetail detail = DetailOf(status);
  if (detail.code != "PROGRAM_NOT_FOUND" && detail.code != "PROGRAM_NOT_EXECUTABLE") return;
  const bool program = detail.subject == launch.program;
  reader.faults.Add(program ? reader.sweep.program_line : reader.sweep.command_line, "", status);
}

// `folder`: of the sweep file, if it is not the name's.
StatusOr<Sweep> Parse(const std::string& text, const std::string& name, const std::string& folder,
                      Status (*judge)(const Launch&)) {
  const YamlNode root = TRY(ReadYaml(text, name));
  SweepReader reader{Faults(name), {}, {}, {}};
  if (root.kind != YamlKind::kMap) {
    reader.faults.Add(root.line, "a sweep file is a group of keys, this is " + KindName(root),
                      "begin with `method: random`");
    return reader.faults.ToStatus();
  }
  ReadTopLevelKeys(root, reader);
  ReadMethod(root, reader);
  ReadNameAndBudget(root, name, reader);
  ReadMetrics(root, reader);
  ReadCommand(root, reader);
  if (const YamlNode* parameters = root.Find("parameters")) {
    ReadParameters(*parameters, reader);
  } else {
    reader.faults.Add(root.line, "`parameters` is missing",
                      "name what to vary: parameters: {lr: {min: 0.001, max: 0.1}}");
  }
  if (const YamlNode* node = root.Find("early_terminate")) ReadEarlyTerminate(*node, reader);
  if (const YamlNode* node = root.Find("jizi"); node != nullptr && node->kind != YamlKind::kNull) {
    ReadSettings(*node, reader);
  }
  CheckGrid(reader);
  if (reader.faults.empty()) CheckWhole(root, reader);
  const auto parent = std::filesystem::path(name).parent_path().string();
  reader.sweep.launch.folder = !folder.empty() ? folder : !parent.empty() ? parent : ".";
  if (reader.faults.empty()) return std::move(reader.sweep);
  if (judge != nullptr) CheckProgramExists(reader, judge);
  return reader.faults.ToStatus();
}

}  // namespace

StatusOr<Sweep> ParseSweep(const std::string& text, const std::string& name) {
  return Parse(text, name, "", nullptr);
}

StatusOr<Sweep> ReadSweepFile(const std::string& path, Status (*judge)(const Launch&)) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file || std::filesystem::is_directory(path, error)) {
    const bool folder = std::filesystem::is_directory(path, error);
    return Error(StatusCode::kInvalidArgument,
                 "cannot read the sweep file " + path + ": " +
                     (folder ? "it is a folder" : std::strerror(errno)),
                 {"NO_SWEEP_FILE", path, "give the path of a sweep's YAML file"});
  }
  // One byte more than is taken, so that a longer file is refused rather than cut.
  std::string text(kMaxYamlBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return Parse(text, path, absolute.parent_path().string(), judge);
}

}  // namespace jizi::tuner
