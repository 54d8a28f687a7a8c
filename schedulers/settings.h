#pragma once
// settings.h - the settings of a scheduler: one JSON object whose keys are known, documented and
// checked. Fails: InvalidArgument, naming the key, what is wrong, and the mend (the nearest right
// name, or what it takes). Threads: pure functions.

#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace jizi::tuner {

// A setting that takes one of a few words.
struct Setting {
  std::string name;
  std::vector<std::string> choices;  // The first is the default.
  std::string help;                  // One line for a person.
};

// The choice for every setting, defaults filled in.
StatusOr<std::map<std::string, std::string>> ParseSettings(const std::string& json,
                                                           const std::string& method,
                                                           const std::vector<Setting>& known);

}  // namespace jizi::tuner
