#pragma once
// params.h - the value of one parameter, and the parameters of a trial.
// A categorical value may be any JSON value and is compared with its type: 1, 1.0, "1" and true
// differ. Doubles are finite (a parameter is never NaN or infinite).   Threads: values.

#include <cstdint>
#include <map>
#include <string>
#include <variant>

namespace jizi::tuner {

// A list, a dictionary or null, as canonical JSON text (sorted keys, no spaces).
struct JsonText {
  std::string text;
  auto operator<=>(const JsonText&) const = default;
};

using ParamValue = std::variant<bool, int64_t, double, std::string, JsonText>;

// By name; a parameter whose conditions do not hold is absent.
using Params = std::map<std::string, ParamValue>;

// One JSON value as text. Doubles are printed so that they read back the same, and always look like
// doubles ("1.0").
std::string ToJsonText(const ParamValue& value);
// One JSON object, keys sorted. Equal parameters give equal text: the key for finding duplicates.
std::string ToJsonText(const Params& params);

}  // namespace jizi::tuner
