#include "tuner-service/cli/sweep_distribution.h"

namespace jizi::tuner {
namespace {

constexpr Distribution kDistributions[] = {
    {"uniform", Shape::kUniform},
    {"int_uniform", Shape::kUniform, Scale::kLinear, Bounds::kValues, Step::kInteger},
    {"q_uniform", Shape::kUniform, Scale::kLinear, Bounds::kValues, Step::kQuantum},
    {"log_uniform", Shape::kUniform, Scale::kLog, Bounds::kExponents},
    {"log_uniform_values", Shape::kUniform, Scale::kLog},
    {"q_log_uniform", Shape::kUniform, Scale::kLog, Bounds::kExponents, Step::kQuantum},
    {"q_log_uniform_values", Shape::kUniform, Scale::kLog, Bounds::kValues, Step::kQuantum},
    {"inv_log_uniform", Shape::kUniform, Scale::kInverseLog, Bounds::kExponents},
    {"inv_log_uniform_values", Shape::kUniform, Scale::kInverseLog},
    {"normal", Shape::kNormal},
    {"q_normal", Shape::kNormal, Scale::kLinear, Bounds::kValues, Step::kQuantum},
    {"log_normal", Shape::kNormal, Scale::kLinear, Bounds::kValues, Step::kNone, true},
    {"q_log_normal", Shape::kNormal, Scale::kLinear, Bounds::kValues, Step::kQuantum, true},
    {"beta", Shape::kBeta},
    {"q_beta", Shape::kBeta, Scale::kLinear, Bounds::kValues, Step::kQuantum},
    {"constant", Shape::kConstant},
    {"categorical", Shape::kCategorical},
    {"categorical_w_probabilities", Shape::kCategorical, Scale::kLinear, Bounds::kValues,
     Step::kNone, false, true},
};

const std::vector<std::string> kParameterKeys = {
    "distribution", "min",    "max",           "q",         "mu", "sigma", "a", "b",
    "value",        "values", "probabilities", "parameters"};

}  // namespace

std::vector<std::string> DistributionNames() {
  std::vector<std::string> names;
  for (const Distribution& distribution : kDistributions) names.emplace_back(distribution.name);
  return names;
}

const Distribution* FindDistribution(const std::string& name) {
  for (const Distribution& distribution : kDistributions) {
    if (name == distribution.name) return &distribution;
  }
  return nullptr;
}

std::vector<std::string> KeysOf(const Distribution& distribution) {
  std::vector<std::string> keys = {"distribution"};
  switch (distribution.shape) {
    case Shape::kUniform:
      keys.insert(keys.end(), {"min", "max"});
      break;
    case Shape::kNormal:
      keys.insert(keys.end(), {"mu", "sigma"});
      break;
    case Shape::kBeta:
      keys.insert(keys.end(), {"a", "b"});
      break;
    case Shape::kConstant:
      keys.emplace_back("value");
      break;
    case Shape::kCategorical:
      keys.emplace_back("values");
      if (distribution.weighted) keys.emplace_back("probabilities");
      break;
  }
  if (distribution.step == Step::kQuantum) keys.emplace_back("q");
  return keys;
}

const std::vector<std::string>& ParameterKeys() {
  return kParameterKeys;
}

}  // namespace jizi::tuner
