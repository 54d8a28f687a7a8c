#include "tuner-service/cli/values.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

Status BadValue(const std::string& name, const std::string& what, const std::string& mend) {
  return Error(StatusCode::kInvalidArgument, what, {"BAD_PARAMETER", name, mend});
}

std::vector<std::string> NamesOf(const Space& space) {
  std::vector<std::string> names;
  for (const ParameterSpec& spec : space.parameters) names.push_back(spec.name);
  return names;
}

const ParameterSpec* FindSpec(const Space& space, const std::string& name) {
  for (const ParameterSpec& spec : space.parameters) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

// One of the values of the list that equals it when the types of numbers are not looked at.
ParamValue SameNumber(const std::vector<ParamValue>& values, ParamValue value) {
  if (std::find(values.begin(), values.end(), value) != values.end()) return value;
  for (const ParamValue& candidate : values) {
    const auto* integer = std::get_if<int64_t>(&candidate);
    const auto* real = std::get_if<double>(&candidate);
    const auto* given_integer = std::get_if<int64_t>(&value);
    const auto* given_real = std::get_if<double>(&value);
    if (integer != nullptr && given_real != nullptr &&
        static_cast<double>(*integer) == *given_real) {
      return candidate;
    }
    if (real != nullptr && given_integer != nullptr &&
        *real == static_cast<double>(*given_integer)) {
      return candidate;
    }
  }
  return value;
}

std::optional<ParamValue> FromJson(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return std::nullopt;
  if (json.is_boolean()) return ParamValue(json.get<bool>());
  if (json.is_number_integer()) {
    const bool too_large = json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX;
    if (too_large) return std::nullopt;
    return ParamValue(json.get<int64_t>());
  }
  if (json.is_number_float()) {
    if (!std::isfinite(json.get<double>())) return std::nullopt;
    return ParamValue(json.get<double>());
  }
  if (json.is_string()) return ParamValue(json.get<std::string>());
  return ParamValue(JsonText{json.dump()});
}

bool Allows(const ParameterSpec& spec, const ParamValue& value) {
  ParameterSpec alone = spec;
  alone.when.clear();
  return Check(Space{{alone}}, {{spec.name, value}}).ok();
}

}  // namespace

ParamValue Fitted(const Domain& domain, ParamValue value) {
  if (const auto* numeric = std::get_if<NumericDomain>(&domain)) {
    if (const auto* integer = std::get_if<int64_t>(&value);
        integer != nullptr && !numeric->integral) {
      return static_cast<double>(*integer);
    }
    if (const auto* real = std::get_if<double>(&value); real != nullptr && numeric->integral &&
                                                        *real == std::floor(*real) &&
                                                        std::abs(*real) < 9e15) {
      return static_cast<int64_t>(*real);
    }
    return value;
  }
  if (const auto* categorical = std::get_if<CategoricalDomain>(&domain)) {
    return SameNumber(categorical->values, std::move(value));
  }
  return SameNumber({std::get<ConstantDomain>(domain).value}, std::move(value));
}

StatusOr<Params> CompletePoint(const Space& space, const Params& given) {
  for (const auto& [name, value] : given) {
    if (FindSpec(space, name) == nullptr) {
      return BadValue(name, "there is no parameter `" + Shown(name) + "`",
                      MendForName(name, NamesOf(space)));
    }
  }
  Params point;
  for (const ParameterSpec& spec : space.parameters) {
    const auto there = given.find(spec.name);
    if (!IsActive(spec, point)) {
      if (there == given.end()) continue;
      return BadValue(spec.name,
                      "the parameter " + Shown(spec.name) + " does not exist beside these values",
                      "leave it out, or change " + Shown(spec.when.front().parent));
    }
    if (there != given.end()) {
      point[spec.name] = Fitted(spec.domain, there->second);
    } else if (const auto* constant = std::get_if<ConstantDomain>(&spec.domain)) {
      point[spec.name] = constant->value;
    } else {
      return BadValue(spec.name, "the parameter " + Shown(spec.name) + " is missing",
                      "give every parameter a value");
    }
  }
  if (Status status = Check(space, point); !status.ok()) return status;
  return point;
}

StatusOr<Params> ParseAssignments(const Space& space, const std::vector<std::string>& assignments) {
  Params given;
  for (const std::string& assignment : assignments) {
    const size_t equals = assignment.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return BadValue(assignment, "`" + Shown(assignment) + "` is no NAME=VALUE",
                      "write for example lr=0.1");
    }
    const std::string name = assignment.substr(0, equals);
    const std::string text = assignment.substr(equals + 1);
    if (given.contains(name)) {
      return BadValue(name, "the parameter " + Shown(name) + " is given twice", "leave one out");
    }
    const ParameterSpec* spec = FindSpec(space, name);
    if (spec == nullptr) {
      return BadValue(name, "there is no parameter `" + Shown(name) + "`",
                      MendForName(name, NamesOf(space)));
    }
    std::optional<ParamValue> value;
    if (text == "True" || text == "False")
      value = ParamValue(text == "True");  // As programs get them.
    if (!value) value = FromJson(text);
    const bool fits = value && Allows(*spec, Fitted(spec->domain, *value));
    // `name=3` for a choice of the texts "3" and "x": what is no other value of it may still be
    // text.
    given[name] = fits || (value && !Allows(*spec, ParamValue(text))) ? *value : ParamValue(text);
  }
  return CompletePoint(space, given);
}

}  // namespace jizi::tuner
