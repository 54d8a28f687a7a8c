#pragma once
// params.h - parameters of a trial by name, with the helper's type rules.
// double and float take a float or an int value; int, int64_t, bool and string their own kind only.
// Fails: std::invalid_argument naming the parameter, what it holds and what was asked for.
// Threads: pure functions.

#include <string>

#include "trial-helper/environment.h"

namespace jizi::helper {

// T: double, float, int, int64_t, bool, std::string.
template <typename T>
T ValueAs(const std::string& name, const v1::Value& value);
template <>
double ValueAs<double>(const std::string& name, const v1::Value& value);
template <>
float ValueAs<float>(const std::string& name, const v1::Value& value);
template <>
int64_t ValueAs<int64_t>(const std::string& name, const v1::Value& value);
template <>
int ValueAs<int>(const std::string& name, const v1::Value& value);
template <>
bool ValueAs<bool>(const std::string& name, const v1::Value& value);
template <>
std::string ValueAs<std::string>(const std::string& name, const v1::Value& value);

std::string ToJson(const Params& params);     // One object, names in order.
Params ParseParams(const std::string& json);  // Of JIZI_PARAMS.

}  // namespace jizi::helper
