// sweep_settings.cc - the key `jizi:` of a sweep file: workers, resources, retries, conditions,
// objective, and the scheduler's settings.

#include <algorithm>
#include <set>

#include "tuner-service/cli/sweep_reader.h"
#include "tuner-service/cli/text.h"
#include "tuner-service/cli/values.h"

namespace jizi::tuner {
namespace {

const std::vector<std::string> kOurKeys = {
    "workers",   "resources",  "ranks", "retries",    "seed",  "when",        "defaults",
    "objective", "time_limit", "grace", "wall_clock", "reuse", "environment", "lease"};

ParameterSpec* FindSpec(Space& space, const std::string& name) {
  for (ParameterSpec& spec : space.parameters) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

std::vector<std::string> ParameterNames(const SweepReader& reader) {
  std::vector<std::string> names;
  for (const auto& [name, line] : reader.parameter_lines) names.push_back(name);
  return names;
}

// The parameter, or a fault; null without a second fault where the parameter itself was refused.
ParameterSpec* NeedSpec(SweepReader& reader, const YamlNode& key, const std::string& where) {
  if (ParameterSpec* spec = FindSpec(reader.sweep.study.space, key.text)) return spec;
  if (!reader.parameter_lines.contains(key.text)) {
    reader.faults.Add(key.line, where + ": there is no parameter `" + Shown(key.text) + "`",
                      MendForName(key.text, ParameterNames(reader)));
  }
  return nullptr;
}

void ReadCondition(const YamlNode& child_key, ParameterSpec& child, const YamlNode& parent_key,
                   const YamlNode& values, SweepReader& reader) {
  const std::string where = "jizi: when: " + Shown(child_key.text);
  const ParameterSpec* parent = NeedSpec(reader, parent_key, where);
  if (parent == nullptr) return;
  Condition condition{parent->name, {}};
  const std::vector<YamlNode> list =
      values.kind == YamlKind::kList ? values.items : std::vector{values};
  if (list.empty()) {
    reader.faults.Add(values.line, where + ": the list of values is empty", "name at least one");
    return;
  }
  ParameterSpec alone = *parent;
  alone.when.clear();
  for (const YamlNode& item : list) {
    const auto value = reader.Value(item, where);
    if (!value) return;
    const Params fitted = Coerce(Space{{alone}}, {{parent->name, *value}});
    if (!Check(Space{{alone}}, fitted).ok()) {
      reader.faults.Add(
          item.line, where + ": " + Shown(parent->name) + " is never " + Shown(ToJsonText(*value)),
          "name values that it can have");
      return;
    }
    condition.any_of.push_back(fitted.at(parent->name));
  }
  child.when.push_back(std::move(condition));
}

// Parents before their children, otherwise as written.
void SortByConditions(int line, SweepReader& reader) {
  std::vector<ParameterSpec> waiting = std::move(reader.sweep.study.space.parameters);
  std::vector<ParameterSpec> sorted;
  std::set<std::string> placed;
  while (!waiting.empty()) {
    const auto ready = std::find_if(waiting.begin(), waiting.end(), [&](const ParameterSpec& spec) {
      return std::all_of(spec.when.begin(), spec.when.end(), [&](const Condition& condition) {
        return placed.contains(condition.parent);
      });
    });
    if (ready == waiting.end()) {
      reader.faults.Add(
          line, "jizi: when: the conditions of " + Shown(waiting.front().name) + " go in a circle",
          "take one of them out");
      break;
    }
    placed.insert(ready->name);
    sorted.push_back(std::move(*ready));
    waiting.erase(ready);
  }
  reader.sweep.study.space.parameters = std::move(sorted);
}

void ReadWhen(const YamlNode& node, SweepReader& reader) {
  static constexpr char kExample[] = "when: {momentum: {optimizer: [sgd]}}";
  if (!reader.IsGroup(node, "jizi: when", kExample)) return;
  for (const auto& [key, parents] : node.entries) {
    ParameterSpec* child = NeedSpec(reader, key, "jizi: when");
    if (child == nullptr || !reader.IsGroup(parents, "jizi: when: " + Shown(key.text), kExample))
      continue;
    for (const auto& [parent, values] : parents.entries)
      ReadCondition(key, *child, parent, values, reader);
  }
  SortByConditions(node.line, reader);
}

void ReadDefaults(const YamlNode& node, SweepReader& reader) {
  const std::vector<YamlNode> points =
      node.kind == YamlKind::kList ? node.items : std::vector{node};
  for (const YamlNode& point : points) {
    if (!reader.IsGroup(point, "jizi: defaults", "defaults: {lr: 0.1, batch_size: 128}")) continue;
    Params given;
    bool readable = true;
    for (const auto& [key, value] : point.entries) {
      const auto read = reader.Value(value, "jizi: defaults: " + Shown(key.text));
      readable = readable && read;
      if (read) given[key.text] = *read;
    }
    // Where a parameter was refused, a point of the space cannot be judged.
    if (!readable || reader.sweep.study.space.parameters.size() != reader.parameter_lines.size())
      continue;
    auto params = CompletePoint(reader.sweep.study.space, given);
    if (params.ok()) {
      reader.sweep.first_trials.push_back(*std::move(params));
    } else {
      reader.faults.Add(point.line, "jizi: defaults", params.status());
    }
  }
}

void ReadObjective(const YamlNode& node, SweepReader& reader) {
  static const std::string kMend = "write best, last, or {mean_of_last: 5}";
  Objective& objective = reader.sweep.study.objective;
  if (node.kind == YamlKind::kScalar && (node.text == "best" || node.text == "last")) {
    objective.kind = node.text == "best" ? ObjectiveKind::kBest : ObjectiveKind::kLast;
    return;
  }
  const YamlNode* kind = node.Find("kind");
  const std::string named = kind != nullptr ? kind->text : node.text;
  if (named == "time_to_target" || node.Find("time_to_target") != nullptr) {
    reader.faults.Add(node.line, "jizi: objective: time_to_target is not in this version", kMend);
    return;
  }
  const YamlNode* last = node.Find("mean_of_last");
  if (last == nullptr || node.entries.size() != 1) {
    reader.faults.Add(node.line, "jizi: objective is " + KindName(node), kMend);
    return;
  }
  if (const auto k = reader.Integer(*last, "jizi: objective: mean_of_last", 1, 1'000'000)) {
    objective = {ObjectiveKind::kMeanOfLast, static_cast<int>(*k)};
  }
}

void ReadResources(const YamlNode& node, SweepReader& reader) {
  if (!reader.IsGroup(node, "jizi: resources", "resources: {gpus: 1, threads: 4}")) return;
  reader.OnlyKeys(node, "jizi: resources", {"gpus", "threads", "gpu_ids"});
  Launch& launch = reader.sweep.launch;
  if (const YamlNode* gpus = node.Find("gpus")) {
    launch.gpus_per_trial =
        static_cast<int>(reader.Integer(*gpus, "jizi: resources: gpus", 0, 1024).value_or(0));
  }
  if (const YamlNode* threads = node.Find("threads")) {
    launch.threads =
        static_cast<int>(reader.Integer(*threads, "jizi: resources: threads", 1, 4096).value_or(1));
  }
  if (const YamlNode* ids = node.Find("gpu_ids")) {
    if (ids->kind != YamlKind::kList) {
      reader.faults.Add(ids->line, "jizi: resources: gpu_ids is " + KindName(*ids),
                        "give a list, such as [0, 1]");
      return;
    }
    for (const YamlNode& id : ids->items) {
      if (const auto text = reader.Text(id, "jizi: resources: gpu_ids"))
        launch.gpu_ids.push_back(*text);
    }
  }
}

void ReadEnvironment(const YamlNode& node, SweepReader& reader) {
  if (!reader.IsGroup(node, "jizi: environment", "environment: {NCCL_DEBUG: WARN}")) return;
  for (const auto& [key, value] : node.entries) {
    if (key.text.empty() || key.text.find_first_of(std::string("=\0", 2)) != std::string::npos) {
      reader.faults.Add(key.line,
                        "jizi: environment: `" + Shown(key.text) + "` cannot be a variable's name",
                        "take the = out");
    } else if (key.text.rfind("JIZI_", 0) == 0) {
      reader.faults.Add(key.line,
                        "jizi: environment: " + Shown(key.text) + " is set for each trial already",
                        "take it out");
    } else if (value.kind == YamlKind::kScalar && value.text.empty()) {
      reader.sweep.launch.environment[key.text] = "";
    } else if (const auto text = reader.Text(value, "jizi: environment: " + Shown(key.text))) {
      reader.sweep.launch.environment[key.text] = *text;
    }
  }
}

// A shorter one would be lost between two renewals, a longer one is refused by the service.
void ReadLease(const YamlNode& node, SweepReader& reader) {
  constexpr Seconds kShortest{1};
  constexpr Seconds kLongest{7 * 86400.0};
  const auto lease = reader.Duration(node, "jizi: lease");
  if (!lease) return;
  if (*lease < kShortest || *lease > kLongest) {
    reader.faults.Add(node.line, "jizi: lease is " + ShowDuration(*lease),
                      "it may be 1s to 7d; 60s is usual");
    return;
  }
  reader.sweep.lease = *lease;
}

void ReadOurs(const YamlNode& node, SweepReader& reader) {
  Sweep& sweep = reader.sweep;
  const auto integer = [&](const char* key, int64_t min, int64_t max, int64_t by_default) {
    const YamlNode* value = node.Find(key);
    if (value == nullptr) return by_default;
    return reader.Integer(*value, std::string("jizi: ") + key, min, max).value_or(by_default);
  };
  const auto duration = [&](const char* key) -> std::optional<std::chrono::duration<double>> {
    const YamlNode* value = node.Find(key);
    if (value == nullptr) return std::nullopt;
    return reader.Duration(*value, std::string("jizi: ") + key);
  };
  sweep.workers = static_cast<int>(integer("workers", 1, 1000, 1));
  sweep.launch.ranks = static_cast<int>(integer("ranks", 1, 1024, 1));
  sweep.study.retries.max_retries = static_cast<int>(integer("retries", 0, 1000, 0));
  sweep.study.seed = static_cast<uint64_t>(integer("seed", 0, INT64_MAX, 0));
  sweep.launch.time_limit = duration("time_limit");
  if (const YamlNode* value = node.Find("lease")) ReadLease(*value, reader);
  sweep.launch.grace = duration("grace").value_or(sweep.launch.grace);
  sweep.study.budget.wall_clock = duration("wall_clock");
  if (const YamlNode* value = node.Find("reuse")) {
    sweep.launch.reuse_process = reader.Bool(*value, "jizi: reuse").value_or(false);
  }
  if (const YamlNode* value = node.Find("resources")) ReadResources(*value, reader);
  if (const YamlNode* value = node.Find("environment")) ReadEnvironment(*value, reader);
  if (const YamlNode* value = node.Find("objective")) ReadObjective(*value, reader);
  if (const YamlNode* value = node.Find("when")) ReadWhen(*value, reader);
  if (const YamlNode* value = node.Find("defaults")) ReadDefaults(*value, reader);
}

}  // namespace

void ReadSettings(const YamlNode& node, SweepReader& reader) {
  if (!reader.IsGroup(node, "jizi", "jizi: {workers: 2, seed: 7}")) return;
  ReadOurs(node, reader);
  Params settings;
  for (const auto& [key, value] : node.entries) {
    if (std::find(kOurKeys.begin(), kOurKeys.end(), key.text) != kOurKeys.end()) continue;
    if (key.text == "timeout") {
      reader.faults.Add(key.line, "jizi: `timeout` is not a key here",
                        "`time_limit` is for one trial, `wall_clock` for the whole study");
      continue;
    }
    if (key.text == "constraints") {
      reader.faults.Add(key.line, "jizi: constraints are not in this version", "take them out");
      continue;
    }
    if (const auto nearest = NearestName(key.text, kOurKeys, 2)) {
      reader.faults.Add(key.line, "jizi: `" + Shown(key.text) + "` is not a key here",
                        "did you mean `" + *nearest + "`?");
      continue;
    }
    // Everything else belongs to the scheduler, which judges it.
    if (const auto read = reader.Value(value, "jizi: " + Shown(key.text)))
      settings[key.text] = *read;
    reader.setting_lines[key.text] = key.line;
  }
  reader.sweep.study.settings_json = ToJsonText(settings);
}

const std::vector<std::string>& SettingKeys() {
  return kOurKeys;
}

}  // namespace jizi::tuner
