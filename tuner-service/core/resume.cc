// How two specs of one study differ, in words: what a refused resume shows.

#include <algorithm>

#include "tuner-service/core/draft.h"

namespace jizi::tuner {
namespace {

std::string Number(double value) {
  return ToJsonText(ParamValue(value));
}

std::string Words(const std::vector<ParamValue>& values) {
  std::string text = "[";
  for (const ParamValue& value : values) {
    if (text.size() > 1) text += ", ";
    text += ToJsonText(value);
  }
  return text + "]";
}

std::string Words(const Uniform& uniform) {
  const std::string bounds = " from " + Number(uniform.min) + " to " + Number(uniform.max);
  switch (uniform.scale) {
    case Scale::kLinear:
      return "uniform" + bounds;
    case Scale::kLog:
      return "log-uniform" + bounds;
    case Scale::kInverseLog:
      return "inverse log-uniform" + bounds;
  }
  return "";
}
std::string Words(const Normal& normal) {
  return std::string(normal.log ? "log-normal" : "normal") + " with mu " + Number(normal.mu) +
         " and sigma " + Number(normal.sigma);
}
std::string Words(const Beta& beta) {
  return "beta with a " + Number(beta.a) + " and b " + Number(beta.b);
}

std::string Words(const NumericDomain& domain) {
  std::string text = domain.integral ? "whole numbers, " : "";
  text +=
      std::visit([](const auto& distribution) { return Words(distribution); }, domain.distribution);
  return domain.quantum == 0 ? text : text + " in steps of " + Number(domain.quantum);
}
std::string Words(const CategoricalDomain& domain) {
  std::string text = "one of " + Words(domain.values);
  if (domain.probabilities.empty()) return text;
  text += " with probabilities";
  for (const double probability : domain.probabilities) text += " " + Number(probability);
  return text;
}
std::string Words(const ConstantDomain& domain) {
  return "always " + ToJsonText(domain.value);
}

std::string Words(const ParameterSpec& parameter) {
  std::string text = std::visit([](const auto& domain) { return Words(domain); }, parameter.domain);
  for (const Condition& condition : parameter.when) {
    text += " when " + condition.parent + " is one of " + Words(condition.any_of);
  }
  return text;
}

std::string Words(const std::vector<MetricSpec>& metrics) {
  std::string text;
  for (const MetricSpec& metric : metrics) {
    if (!text.empty()) text += ", ";
    text += (metric.goal == Goal::kMinimize ? "minimize " : "maximize ") + metric.name;
    if (metric.target) text += " to " + Number(*metric.target);
  }
  return text.empty() ? "none" : text;
}

std::string Words(const Objective& objective) {
  switch (objective.kind) {
    case ObjectiveKind::kLast:
      return "last";
    case ObjectiveKind::kBest:
      return "best";
    case ObjectiveKind::kMeanOfLast:
      return "mean_of_last " + std::to_string(objective.last_k);
  }
  return "";
}

class Listing {
 public:
  void Add(const std::string& key, const std::string& stored, const std::string& given) {
    text_ += (text_.empty() ? "" : "; ") + key + " is " + Clip(stored) + " there and " +
             Clip(given) + " here";
  }
  std::string text() const { return Clip(text_); }

 private:
  std::string text_;
};

const ParameterSpec* Find(const Space& space, const std::string& name) {
  for (const ParameterSpec& parameter : space.parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

void CompareSpaces(const Space& stored, const Space& given, Listing& listing) {
  if (stored == given) return;
  bool named = false;
  for (const ParameterSpec& parameter : stored.parameters) {
    const ParameterSpec* other = Find(given, parameter.name);
    if (other != nullptr && *other == parameter) continue;
    named = true;
    listing.Add("parameter '" + parameter.name + "'", Words(parameter),
                other == nullptr ? "missing" : Words(*other));
  }
  for (const ParameterSpec& parameter : given.parameters) {
    if (Find(stored, parameter.name) != nullptr) continue;
    named = true;
    listing.Add("parameter '" + parameter.name + "'", "missing", Words(parameter));
  }
  const auto order = [](const Space& space) {
    std::string names;
    for (const ParameterSpec& parameter : space.parameters) names += " " + parameter.name;
    return names.substr(names.empty() ? 0 : 1);
  };
  if (!named) listing.Add("the order of the parameters", order(stored), order(given));
}

}  // namespace

std::string Differences(const StudySpec& stored, const StudySpec& given) {
  Listing listing;
  if (stored.name != given.name) listing.Add("name", stored.name, given.name);
  if (stored.method != given.method) listing.Add("method", stored.method, given.method);
  if (!(stored.metrics == given.metrics)) {
    listing.Add("metric", Words(stored.metrics), Words(given.metrics));
  }
  if (!(stored.objective == given.objective)) {
    listing.Add("objective", Words(stored.objective), Words(given.objective));
  }
  CompareSpaces(stored.space, given.space, listing);
  if (stored.settings_json != given.settings_json) {
    listing.Add("the scheduler's settings", stored.settings_json, given.settings_json);
  }
  if (stored.seed != given.seed) {
    listing.Add("seed", std::to_string(stored.seed), std::to_string(given.seed));
  }
  return listing.text();
}

}  // namespace jizi::tuner
