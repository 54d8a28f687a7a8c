#pragma once
// checks.h - the checks that conversions share. Each is OK or InvalidArgument BAD_FIELD naming the
// field, what is wrong and the mend. Threads: pure functions.

#include <string>

#include "base/status.h"

namespace jizi::tuner {

struct Field {
  std::string name;  // As in the .proto, with its path: "spec.parameters[2].numeric.quantum".
};
inline Field operator/(const Field& parent, const std::string& child) {
  return {parent.name.empty() ? child : parent.name + "." + child};
}
inline Field operator/(const Field& parent, int index) {
  return {parent.name + "[" + std::to_string(index) + "]"};
}

Status Refuse(const Field& field, const std::string& wrong, std::string mend);

Status CheckFinite(const Field& field, double value);
Status CheckRange(const Field& field, double value, double min, double max);
Status CheckCount(const Field& field, int64_t value, int64_t min, int64_t max);
Status CheckSize(const Field& field, size_t bytes, size_t max);
// A name: 1 to kMaxNameBytes bytes without control characters.
Status CheckName(const Field& field, const std::string& text);
// One that looks something up: not empty, and not so long that an answer could not repeat it.
Status CheckStudyName(const Field& field, const std::string& text);
Status CheckNotBlank(const Field& field, const std::string& text);
Status CheckRequestId(const Field& field, const std::string& text);

// The last `max` bytes, from a whole UTF-8 character on: of a long reason the end tells most.
std::string Tail(const std::string& text, size_t max);

}  // namespace jizi::tuner
