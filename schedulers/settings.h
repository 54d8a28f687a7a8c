#pragma once
// settings.h - the settings of a scheduler: one JSON object whose keys are known, documented and
// checked. Fails: InvalidArgument, naming the key, what is wrong, and the mend (the nearest right
// name, or what it takes). Threads: pure functions.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace jizi::tuner {

// A setting that takes one of a few words, or a number.
struct Setting {
  std::string name;
  std::vector<std::string> choices;  // The first is the default; of a number there is just this.
  std::string help;                  // One line for a person.
  struct Range {
    double min = 0;
    double max = 0;
    bool whole = false;
  };
  std::optional<Range> number = {};
};

// The choice for every setting, defaults filled in; numbers as JSON text.
StatusOr<std::map<std::string, std::string>> ParseSettings(const std::string& json,
                                                           const std::string& method,
                                                           const std::vector<Setting>& known);

}  // namespace jizi::tuner
