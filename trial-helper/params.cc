#include "trial-helper/params.h"

#include <climits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "proto/client.h"

namespace jizi::helper {
namespace {

[[noreturn]] void Refuse(const std::string& name, const v1::Value& value, const char* wanted) {
  throw std::invalid_argument("jizi: the parameter \"" + name + "\" is " +
                              ToJsonText(value).substr(0, 80) + " and was asked for as " + wanted +
                              ": change Get<" + wanted +
                              "> in the program or the values in the sweep file");
}

}  // namespace

template <>
double ValueAs<double>(const std::string& name, const v1::Value& value) {
  if (value.has_float_value()) return value.float_value();
  if (value.has_int_value()) return static_cast<double>(value.int_value());
  Refuse(name, value, "double");
}

template <>
float ValueAs<float>(const std::string& name, const v1::Value& value) {
  if (value.has_float_value()) return static_cast<float>(value.float_value());
  if (value.has_int_value()) return static_cast<float>(value.int_value());
  Refuse(name, value, "float");
}

template <>
int64_t ValueAs<int64_t>(const std::string& name, const v1::Value& value) {
  if (value.has_int_value()) return value.int_value();
  Refuse(name, value, "int64_t");
}

template <>
int ValueAs<int>(const std::string& name, const v1::Value& value) {
  if (value.has_int_value() && value.int_value() >= INT_MIN && value.int_value() <= INT_MAX) {
    return static_cast<int>(value.int_value());
  }
  Refuse(name, value, "int");
}

template <>
bool ValueAs<bool>(const std::string& name, const v1::Value& value) {
  if (value.has_bool_value()) return value.bool_value();
  Refuse(name, value, "bool");
}

template <>
std::string ValueAs<std::string>(const std::string& name, const v1::Value& value) {
  if (value.has_string_value()) return value.string_value();
  Refuse(name, value, "std::string");
}

std::string ToJson(const Params& params) {
  std::string json = "{";
  for (const auto& [name, value] : params) {
    v1::Value quoted;
    quoted.set_string_value(name);
    json += (json.size() > 1 ? "," : "") + ToJsonText(quoted) + ":" + ToJsonText(value);
  }
  return json + "}";
}

Params ParseParams(const std::string& json) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument("jizi: JIZI_PARAMS holds " + json.substr(0, 80) + ": " + why +
                                "; give one JSON object, such as {\"lr\": 0.1}");
  };
  const auto parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) refuse("it is no JSON object");
  Params params;
  for (const auto& [name, member] : parsed.items()) {
    const StatusOr<v1::Value> value = ValueFromJsonText(member.dump());
    if (!value.ok()) refuse(ForPeople(value.status()));
    params[name] = *value;
  }
  return params;
}

}  // namespace jizi::helper
