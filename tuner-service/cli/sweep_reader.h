#pragma once
// sweep_reader.h - what the parts of the sweep-file parser share: the list of faults, and typed
// reads that add to it. A read that fails has added its fault, with line and mend, and gives
// nothing: parsing goes on, so that all faults are said at once. Threads: none of its own.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "schedulers/model/space.h"
#include "tuner-service/cli/sweep_file.h"
#include "tuner-service/cli/yaml_tree.h"

namespace jizi::tuner {

class Faults {
 public:
  explicit Faults(std::string file) : file_(std::move(file)) {}

  void Add(int line, const std::string& what, const std::string& mend);
  void Add(int line, const std::string& where, const Status& status);  // "where: message; mend"
  bool empty() const { return faults_.empty(); }

  // One line each, in the order of the file: "sweep.yaml:3: what; mend".
  Status ToStatus() const;

 private:
  std::string file_;
  std::multimap<int, std::string> faults_;  // By line; those of one line as they were found.
};

struct SweepReader {
  Faults faults;
  Sweep sweep;
  std::map<std::string, int> parameter_lines;
  std::map<std::string, int> setting_lines;  // Of the scheduler's settings under `jizi:`.

  void Note(int line, std::string text) { sweep.notes.push_back({line, std::move(text)}); }

  // `what` names the value in messages: "run_cap", "lr: min".
  std::optional<double> Number(const YamlNode& node, const std::string& what);
  std::optional<int64_t> Integer(const YamlNode& node, const std::string& what, int64_t min,
                                 int64_t max);
  std::optional<bool> Bool(const YamlNode& node, const std::string& what);
  std::optional<std::string> Text(const YamlNode& node,
                                  const std::string& what);  // Not a list or a group, not empty.
  std::optional<std::chrono::duration<double>> Duration(const YamlNode& node,
                                                        const std::string& what);
  std::optional<ParamValue> Value(const YamlNode& node, const std::string& what);
  bool IsGroup(const YamlNode& node, const std::string& what, const std::string& example);

  // Refuses every key that is not one of `names`.
  void OnlyKeys(const YamlNode& group, const std::string& where,
                const std::vector<std::string>& names);
};

// `parameters:` into sweep.study.space (sweep_parameters.cc).
void ReadParameters(const YamlNode& node, SweepReader& reader);

// `jizi:` into the rest of the sweep (sweep_settings.cc). After the parameters.
void ReadSettings(const YamlNode& node, SweepReader& reader);
const std::vector<std::string>& SettingKeys();  // What is ours there, not a scheduler's.

}  // namespace jizi::tuner
