// check.cc - is this a point of the space?
#include <algorithm>
#include <cmath>

#include "schedulers/model/discrete.h"
#include "schedulers/model/space.h"
#include "schedulers/model/text.h"

namespace jizi::tuner {
namespace {

Status Bad(const std::string& name, const std::string& what, std::string mend) {
  return Error(StatusCode::kInvalidArgument, "parameter " + Quoted(name) + ": " + what,
               {"INVALID_PARAMETERS", name, std::move(mend)});
}

std::string Shown(const ParamValue& value) {
  const std::string text = ToJsonText(value);
  constexpr size_t kMaxShown = 60;
  return text.size() <= kMaxShown ? text : Quoted(text);
}

const char* TypeOf(const ParamValue& value) {
  constexpr const char* kNames[] = {"a bool", "an int", "a float", "a string", "a JSON value"};
  return kNames[value.index()];
}

std::string Range(const NumericDomain& domain) {
  if (const auto* uniform = std::get_if<Uniform>(&domain.distribution)) {
    return "between " + ToJsonText(ParamValue(uniform->min)) + " and " +
           ToJsonText(ParamValue(uniform->max));
  }
  if (std::holds_alternative<Beta>(domain.distribution)) return "between 0 and 1";
  return std::get<Normal>(domain.distribution).log ? "above 0" : "of any finite size";
}

bool IsInside(const NumericDomain& domain, double value) {
  if (!std::isfinite(value)) return false;
  if (const auto* uniform = std::get_if<Uniform>(&domain.distribution)) {
    return value >= uniform->min && value <= uniform->max;
  }
  if (std::holds_alternative<Beta>(domain.distribution)) return value >= 0 && value <= 1;
  return !std::get<Normal>(domain.distribution).log || value > 0;
}

Status CheckNumeric(const std::string& name, const NumericDomain& domain, const ParamValue& value) {
  if (domain.integral != std::holds_alternative<int64_t>(value) ||
      (!domain.integral && !std::holds_alternative<double>(value))) {
    return Bad(
        name,
        Shown(value) + " is " + TypeOf(value) + ", not " + (domain.integral ? "an int" : "a float"),
        domain.integral ? "give a whole number" : "give a number");
  }
  if (domain.quantum > 0) {
    if (MultipleOf(domain, Multiples::Of(domain), value)) return {};
    return Bad(
        name, Shown(value) + " is not in the space",
        "give a multiple of " + ToJsonText(ParamValue(domain.quantum)) + " " + Range(domain));
  }
  if (IsInside(domain, std::get<double>(value))) return {};
  return Bad(name, Shown(value) + " is not in the space", "give a value " + Range(domain));
}

Status CheckListed(const std::string& name, const std::vector<ParamValue>& values,
                   const ParamValue& value) {
  if (std::find(values.begin(), values.end(), value) != values.end()) return {};
  std::string listed;
  for (const ParamValue& one : values) {
    if (listed.size() > 200) {
      listed += ", ...";
      break;
    }
    listed += (listed.empty() ? "" : ", ") + Shown(one);
  }
  return Bad(name, Shown(value) + " (" + TypeOf(value) + ") is not one of its values",
             "give " + std::string(values.size() == 1 ? "" : "one of ") + listed);
}

std::string WhenText(const ParameterSpec& parameter) {
  std::string text;
  for (const Condition& condition : parameter.when) {
    text += (text.empty() ? "" : " and ") + Quoted(condition.parent) + " is one of " +
            std::to_string(condition.any_of.size()) + " values (" +
            Shown(condition.any_of.front()) + (condition.any_of.size() > 1 ? ", ...)" : ")");
  }
  return text;
}

Status CheckUnknown(const Space& space, const Params& params) {
  std::vector<std::string> names;
  for (const ParameterSpec& parameter : space.parameters) names.push_back(parameter.name);
  for (const auto& [name, value] : params) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const auto nearest = Nearest(name, names);
    return Bad(name, "the space has no such parameter",
               nearest ? "did you mean " + Quoted(*nearest) + "?" : "leave it out");
  }
  return {};
}

// The number that two values of different types have in common.
std::optional<double> NumberIn(const ParamValue& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

ParamValue CoerceListed(const std::vector<ParamValue>& values, const ParamValue& value) {
  const auto number = NumberIn(value);
  if (!number || std::find(values.begin(), values.end(), value) != values.end()) return value;
  const auto same = [number](const ParamValue& one) { return NumberIn(one) == number; };
  const auto found = std::find_if(values.begin(), values.end(), same);
  return found != values.end() && std::count_if(values.begin(), values.end(), same) == 1 ? *found
                                                                                         : value;
}

ParamValue CoerceTo(const Domain& domain, const ParamValue& value) {
  if (const auto* listed = std::get_if<CategoricalDomain>(&domain)) {
    return CoerceListed(listed->values, value);
  }
  if (const auto* constant = std::get_if<ConstantDomain>(&domain)) {
    return CoerceListed({constant->value}, value);
  }
  const auto number = NumberIn(value);
  if (!number) return value;
  if (!std::get<NumericDomain>(domain).integral) return *number;
  const bool exact =
      std::abs(*number) <= static_cast<double>(kMaxExactInteger) && std::trunc(*number) == *number;
  return exact ? ParamValue(static_cast<int64_t>(*number)) : value;
}

}  // namespace

Status CheckValue(const ParameterSpec& parameter, const ParamValue& value) {
  if (const auto* numeric = std::get_if<NumericDomain>(&parameter.domain)) {
    return CheckNumeric(parameter.name, *numeric, value);
  }
  if (const auto* listed = std::get_if<CategoricalDomain>(&parameter.domain)) {
    return CheckListed(parameter.name, listed->values, value);
  }
  return CheckListed(parameter.name, {std::get<ConstantDomain>(parameter.domain).value}, value);
}

Status Check(const Space& space, const Params& params) {
  TRY(CheckUnknown(space, params));
  Params before;
  for (const ParameterSpec& parameter : space.parameters) {
    const auto given = params.find(parameter.name);
    if (!IsActive(parameter, before)) {
      if (given == params.end()) continue;
      return Bad(parameter.name, "it does not exist beside the other values",
                 "leave it out, or see to it that " + WhenText(parameter));
    }
    if (given == params.end()) return Bad(parameter.name, "it is missing", "give it a value");
    TRY(CheckValue(parameter, given->second));
    before.insert(*given);
  }
  return {};
}

Params Coerce(const Space& space, Params params) {
  for (const ParameterSpec& parameter : space.parameters) {
    const auto given = params.find(parameter.name);
    if (given != params.end()) given->second = CoerceTo(parameter.domain, given->second);
  }
  return params;
}

}  // namespace jizi::tuner
