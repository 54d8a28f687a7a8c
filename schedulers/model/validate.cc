// validate.cc - is this space one that can be searched?
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/utf8.h"
#include "schedulers/model/discrete.h"
#include "schedulers/model/space.h"
#include "schedulers/model/text.h"

namespace jizi::tuner {
namespace {

constexpr size_t kMaxValues = 10'000;
constexpr size_t kMaxConditions = 100;
constexpr double kProbabilitySumTolerance = 1e-6;
constexpr double kMaxBetaShape = 1e6;  // Of BetaQuantile.

Status Bad(const std::string& name, const std::string& what, std::string mend) {
  return Error(StatusCode::kInvalidArgument, "parameter " + Quoted(name) + ": " + what,
               {"INVALID_SPACE", name, std::move(mend)});
}

std::string Text(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "NaN" : value > 0 ? "inf" : "-inf";
  return ToJsonText(ParamValue(value));
}

Status ValidateDistribution(const std::string& name, const Uniform& uniform) {
  if (!std::isfinite(uniform.min) || !std::isfinite(uniform.max)) {
    return Bad(name, "min and max are " + Text(uniform.min) + " and " + Text(uniform.max),
               "give finite numbers");
  }
  if (uniform.min > uniform.max) {
    return Bad(name, "min " + Text(uniform.min) + " is above max " + Text(uniform.max),
               "swap them");
  }
  if (uniform.scale != Scale::kLinear && uniform.min <= 0) {
    return Bad(name, "min " + Text(uniform.min) + " has no logarithm",
               "give a min above 0, or a linear distribution");
  }
  return {};
}

Status ValidateDistribution(const std::string& name, const Normal& normal) {
  if (!std::isfinite(normal.mu)) {
    return Bad(name, "mu is " + Text(normal.mu), "give a finite number");
  }
  if (!std::isfinite(normal.sigma) || normal.sigma <= 0) {
    return Bad(name, "sigma is " + Text(normal.sigma),
               "give a finite sigma above 0, or a constant value");
  }
  return {};
}

Status ValidateDistribution(const std::string& name, const Beta& beta) {
  for (const double shape : {beta.a, beta.b}) {
    if (std::isfinite(shape) && shape > 0 && shape <= kMaxBetaShape) continue;
    return Bad(name, "a and b are " + Text(beta.a) + " and " + Text(beta.b),
               "give numbers above 0 and at most 1e6");
  }
  return {};
}

Status ValidateQuantum(const std::string& name, const NumericDomain& domain) {
  const double q = domain.quantum;
  if (!std::isfinite(q) || q < 0) {
    return Bad(name, "the step is " + Text(q), "give a finite step above 0");
  }
  const auto most = static_cast<double>(kMaxExactInteger);
  if (domain.integral && (q < 1 || q > most || std::trunc(q) != q)) {
    return Bad(name, "the step of an int is " + Text(q), "give a whole number from 1 to 2^53");
  }
  if (q == 0) return {};
  const auto* uniform = std::get_if<Uniform>(&domain.distribution);
  if (uniform != nullptr) {
    const double size = std::max(std::abs(uniform->min), std::abs(uniform->max));
    if (size / q > most || (domain.integral && size > most)) {
      return Bad(name, "there are more than 2^53 steps between 0 and its bounds",
                 "give bounds and step within whole numbers up to 2^53, or no step");
    }
  }
  const Multiples multiples = Multiples::Of(domain);
  if (multiples.first <= multiples.last) return {};
  return Bad(name,
             "no multiple of the step " + Text(q) + " lies between " + Text(uniform->min) +
                 " and " + Text(uniform->max),
             "give a step of at most " +
                 Text(std::max(std::abs(uniform->min), std::abs(uniform->max))) +
                 " that fits, or move the bounds to multiples of it");
}

Status ValidateValue(const std::string& name, const ParamValue& value) {
  if (const auto* real = std::get_if<double>(&value); real && !std::isfinite(*real)) {
    return Bad(name, "a value is " + Text(*real), "give finite numbers");
  }
  const auto* text = std::get_if<std::string>(&value);
  const auto* json = std::get_if<JsonText>(&value);
  if ((text != nullptr && !IsUtf8(*text)) || (json != nullptr && !IsUtf8(json->text))) {
    return Bad(name, "a value is not UTF-8", "write it in UTF-8");
  }
  return {};
}

struct DomainCheck {
  const std::string& name;

  Status operator()(const NumericDomain& domain) const {
    TRY(std::visit([this](const auto& one) { return ValidateDistribution(name, one); },
                   domain.distribution));
    return ValidateQuantum(name, domain);
  }

  Status operator()(const CategoricalDomain& domain) const {
    if (domain.values.empty()) return Bad(name, "the list of values is empty", "give a value");
    if (domain.values.size() > kMaxValues) {
      return Bad(name, "there are more than 10000 values", "give fewer, or a range");
    }
    std::set<ParamValue> seen;
    for (const ParamValue& value : domain.values) {
      TRY(ValidateValue(name, value));
      if (!seen.insert(value).second) {
        return Bad(name, "the value " + ToJsonText(value) + " is there twice", "list it once");
      }
    }
    return ValidateProbabilities(domain);
  }

  Status operator()(const ConstantDomain& domain) const {
    return ValidateValue(name, domain.value);
  }

  Status ValidateProbabilities(const CategoricalDomain& domain) const {
    if (domain.probabilities.empty()) return {};
    if (domain.probabilities.size() != domain.values.size()) {
      return Bad(name,
                 std::to_string(domain.probabilities.size()) + " probabilities for " +
                     std::to_string(domain.values.size()) + " values",
                 "give one for each value");
    }
    double sum = 0;
    for (const double probability : domain.probabilities) {
      if (!std::isfinite(probability) || probability <= 0) {
        return Bad(name, "a probability is " + Text(probability),
                   "give numbers above 0, and leave out values that are never wanted");
      }
      sum += probability;
    }
    if (std::abs(sum - 1) <= kProbabilitySumTolerance) return {};
    return Bad(name, "the probabilities sum to " + Text(sum), "let them sum to 1");
  }
};

struct Parent {
  const ParameterSpec* spec = nullptr;
  std::set<ParamValue> listed;  // Of a list: a condition may name thousands of them.

  explicit Parent(const ParameterSpec& parameter) : spec(&parameter) {
    const auto* list = std::get_if<CategoricalDomain>(&parameter.domain);
    if (list != nullptr) listed.insert(list->values.begin(), list->values.end());
  }
  // Could it ever have this value?
  bool MayBe(const ParamValue& value) const {
    return listed.empty() ? CheckValue(*spec, value).ok() : listed.contains(value);
  }
};
using ByName = std::map<std::string, Parent>;

Status ValidateConditions(const Space& space, const ParameterSpec& parameter,
                          const ByName& before) {
  if (parameter.when.size() > kMaxConditions) {
    return Bad(parameter.name, "it has more than 100 conditions", "give fewer");
  }
  for (const Condition& condition : parameter.when) {
    const auto parent = before.find(condition.parent);
    if (parent == before.end()) {
      std::vector<std::string> names;
      for (const ParameterSpec& other : space.parameters) names.push_back(other.name);
      if (std::find(names.begin(), names.end(), condition.parent) != names.end()) {
        return Bad(
            parameter.name,
            "its condition is on " + Quoted(condition.parent) + ", which does not stand before it",
            "put the parent first; a circle of conditions is impossible");
      }
      const auto nearest = Nearest(condition.parent, names);
      return Bad(parameter.name,
                 "its condition is on " + Quoted(condition.parent) + ", which is no parameter",
                 nearest ? "did you mean " + Quoted(*nearest) + "?" : "name a parameter");
    }
    if (condition.any_of.empty() || condition.any_of.size() > kMaxValues) {
      return Bad(parameter.name,
                 "its condition on " + Quoted(condition.parent) + " lists " +
                     std::to_string(condition.any_of.size()) + " values",
                 "list 1 to 10000 of its parent's values");
    }
    for (const ParamValue& value : condition.any_of) {
      if (parent->second.MayBe(value)) continue;
      return Bad(parameter.name,
                 "its condition wants " + Quoted(condition.parent) + " to be " +
                     Quoted(ToJsonText(value)) + ", which it never is",
                 "list values of the parent, of the same type");
    }
  }
  return {};
}

}  // namespace

Status Validate(const Space& space) {
  if (space.parameters.size() > kMaxParameters) {
    return Error(StatusCode::kInvalidArgument,
                 "the space has " + std::to_string(space.parameters.size()) + " parameters",
                 {"INVALID_SPACE", "parameters", "give at most 1000"});
  }
  ByName before;
  for (const ParameterSpec& parameter : space.parameters) {
    if (!IsName(parameter.name)) {
      return Bad(parameter.name, "this is no name",
                 "give 1 to 256 bytes of UTF-8 without control characters");
    }
    if (before.contains(parameter.name)) {
      return Bad(parameter.name, "it is there twice", "give each parameter a name of its own");
    }
    TRY(std::visit(DomainCheck{parameter.name}, parameter.domain));
    TRY(ValidateConditions(space, parameter, before));
    before.emplace(parameter.name, Parent(parameter));
  }
  return {};
}

}  // namespace jizi::tuner
