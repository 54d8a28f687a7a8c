// sweep_parameters.cc - `parameters:` of a sweep file into the search space, every distribution of
// W&B. Source: the schema and sampling of wandb/sweeps; docs/sweep-files.md has the table.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tuner-service/cli/sweep_distribution.h"
#include "tuner-service/cli/sweep_reader.h"
#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

bool WrittenAsInteger(const YamlNode& node) {
  const auto scalar = ScalarOf(node);
  return scalar.ok() && std::holds_alternative<int64_t>(*scalar);
}

bool IsParameterKey(const std::string& key) {
  const std::vector<std::string>& keys = ParameterKeys();
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// One parameter. Every fault carries the parameter's name.
class ParameterReader {
 public:
  ParameterReader(SweepReader& reader, std::string name, const YamlNode& node)
      : reader_(reader), name_(std::move(name)), node_(node) {}

  std::optional<Domain> Read() {
    const Distribution* distribution = Choose();
    if (distribution == nullptr) return std::nullopt;
    const std::vector<std::string> keys = KeysOf(*distribution);
    bool fits = true;
    for (const auto& [key, value] : node_.entries) {
      if (std::find(keys.begin(), keys.end(), key.text) != keys.end()) continue;
      if (!IsParameterKey(key.text)) continue;  // Said by OnlyKeys.
      Fault(key.line,
            "`" + key.text + "` has no meaning with the distribution " + distribution->name,
            key.text == "q" ? std::string("use q_") + distribution->name + ", or take `q` out"
                            : "its keys are " + Joined(keys, ", "));
      fits = false;
    }
    if (!fits) return std::nullopt;
    switch (distribution->shape) {
      case Shape::kUniform:
        return ReadUniform(*distribution);
      case Shape::kNormal:
        return ReadNormal(*distribution);
      case Shape::kBeta:
        return ReadBeta(*distribution);
      case Shape::kConstant:
        return ReadConstant();
      case Shape::kCategorical:
        return ReadCategorical();
    }
    return std::nullopt;
  }

 private:
  void Fault(int line, const std::string& what, const std::string& mend) {
    reader_.faults.Add(line, name_ + ": " + what, mend);
  }

  // Without `distribution` the keys decide, as in W&B.
  const Distribution* Choose() {
    if (const YamlNode* written = node_.Find("distribution")) {
      const auto name = reader_.Text(*written, name_ + ": distribution");
      if (!name) return nullptr;
      const Distribution* found = FindDistribution(*name);
      if (found == nullptr) {
        Fault(written->line, "there is no distribution `" + Shown(*name) + "`",
              MendForName(*name, DistributionNames()));
      } else if (found->shape == Shape::kCategorical && node_.Find("probabilities") != nullptr) {
        return FindDistribution("categorical_w_probabilities");
      }
      return found;
    }
    if (node_.Find("value") != nullptr) return FindDistribution("constant");
    if (node_.Find("values") != nullptr) {
      return FindDistribution(node_.Find("probabilities") != nullptr ? "categorical_w_probabilities"
                                                                     : "categorical");
    }
    const YamlNode* min = node_.Find("min");
    const YamlNode* max = node_.Find("max");
    if (min != nullptr && max != nullptr) {
      if (node_.Find("q") != nullptr) return FindDistribution("q_uniform");
      return FindDistribution(WrittenAsInteger(*min) && WrittenAsInteger(*max) ? "int_uniform"
                                                                               : "uniform");
    }
    if (min != nullptr || max != nullptr) {
      Fault(node_.line, std::string("`") + (min != nullptr ? "max" : "min") + "` is missing",
            "give both min and max");
    } else if (node_.Find("mu") != nullptr || node_.Find("sigma") != nullptr) {
      Fault(node_.line, "`distribution` is missing", "add `distribution: normal` or `log_normal`");
    } else if (!HasUnknownKey()) {
      Fault(node_.line, "nothing says what it may be", "give value, values, or min and max");
    }
    return nullptr;
  }

  bool HasUnknownKey() const {
    for (const auto& [key, value] : node_.entries) {
      if (!IsParameterKey(key.text)) return true;
    }
    return false;
  }

  std::optional<double> Needed(const char* key) {
    const YamlNode* node = node_.Find(key);
    if (node == nullptr) {
      Fault(node_.line, std::string("`") + key + "` is missing", "add it");
      return std::nullopt;
    }
    return reader_.Number(*node, name_ + ": " + key);
  }

  std::optional<double> OrDefault(const char* key, double by_default) {
    const YamlNode* node = node_.Find(key);
    return node == nullptr ? by_default : reader_.Number(*node, name_ + ": " + key);
  }

  int LineOf(const char* key) const {
    const YamlNode* node = node_.Find(key);
    return node == nullptr ? node_.line : node->line;
  }

  // Quantum and kind of number; false with a fault.
  bool ReadStep(const Distribution& distribution, NumericDomain& domain) {
    if (distribution.step == Step::kInteger) {
      domain.quantum = 1;
      domain.integral = true;
    } else if (distribution.step == Step::kQuantum) {
      const auto q = OrDefault("q", 1);
      if (!q) return false;
      if (*q <= 0) {
        Fault(LineOf("q"), "q is " + ShowNumber(*q), "a step is above 0");
        return false;
      }
      const YamlNode* written = node_.Find("q");
      domain.quantum = *q;
      domain.integral = written == nullptr || WrittenAsInteger(*written);
    }
    return true;
  }

  std::optional<Domain> ReadUniform(const Distribution& distribution) {
    auto min = Needed("min");
    auto max = Needed("max");
    NumericDomain domain;
    if (!ReadStep(distribution, domain) || !min || !max) return std::nullopt;
    if (*min > *max) {
      Fault(LineOf("min"), "min " + ShowNumber(*min) + " is above max " + ShowNumber(*max),
            "swap them");
      return std::nullopt;
    }
    if (distribution.step == Step::kInteger && !WholeBounds(*min, *max)) return std::nullopt;
    if (distribution.scale != Scale::kLinear && !LogBounds(distribution, *min, *max))
      return std::nullopt;
    if (domain.quantum > 0 && !StepFits(domain.quantum, *min, *max)) return std::nullopt;
    domain.distribution = Uniform{*min, *max, distribution.scale};
    return domain;
  }

  bool WholeBounds(double min, double max) {
    constexpr double kExact = 9007199254740992.0;  // 2^53: beyond it not every integer is a double.
    for (const auto& [key, value] : {std::pair("min", min), std::pair("max", max)}) {
      if (value != std::floor(value)) {
        Fault(LineOf(key), std::string(key) + " of int_uniform is " + ShowNumber(value),
              "write a whole number, or use uniform");
        return false;
      }
      if (std::abs(value) > kExact) {
        Fault(LineOf(key), std::string(key) + " is beyond 2^53", "use a smaller range");
        return false;
      }
    }
    return true;
  }

  // Turns exponents into values; logarithms need values above 0.
  bool LogBounds(const Distribution& distribution, double& min, double& max) {
    if (distribution.bounds == Bounds::kExponents) {
      const bool inverse = distribution.scale == Scale::kInverseLog;
      const double low = std::exp(inverse ? -max : min);
      const double high = std::exp(inverse ? -min : max);
      if (!std::isfinite(high) || low < std::numeric_limits<double>::min()) {
        Fault(LineOf("min"),
              std::string(distribution.name) + " takes exponents: e^" +
                  ShowNumber(inverse ? -max : min) + " to e^" + ShowNumber(inverse ? -min : max) +
                  " is out of range",
              std::string("use ") + distribution.name + "_values to give the values themselves");
        return false;
      }
      min = low;
      max = high;
      return true;
    }
    if (min <= 0) {
      Fault(LineOf("min"), "min is " + ShowNumber(min) + ", and a logarithm needs values above 0",
            "give a small number such as 1e-6, or use uniform");
      return false;
    }
    return true;
  }

  bool StepFits(double quantum, double min, double max) {
    // The slack is for steps like 0.1 that are not exact in binary.
    const double first = std::ceil(min / quantum - 1e-9) * quantum;
    if (first <= max * (max > 0 ? 1 + 1e-12 : 1 - 1e-12) + 1e-300) return true;
    Fault(LineOf("q"),
          "no multiple of the step " + ShowNumber(quantum) + " lies between " + ShowNumber(min) +
              " and " + ShowNumber(max),
          "give a smaller q, or wider bounds");
    return false;
  }

  std::optional<Domain> ReadNormal(const Distribution& distribution) {
    const auto mu = OrDefault("mu", 0);
    const auto sigma = OrDefault("sigma", 1);
    NumericDomain domain;
    if (!ReadStep(distribution, domain) || !mu || !sigma) return std::nullopt;
    if (*sigma <= 0) {
      Fault(LineOf("sigma"), "sigma is " + ShowNumber(*sigma), "a standard deviation is above 0");
      return std::nullopt;
    }
    domain.distribution = Normal{*mu, *sigma, distribution.log_normal};
    return domain;
  }

  std::optional<Domain> ReadBeta(const Distribution& distribution) {
    const auto a = OrDefault("a", 1);
    const auto b = OrDefault("b", 1);
    NumericDomain domain;
    if (!ReadStep(distribution, domain) || !a || !b) return std::nullopt;
    for (const auto& [key, value] : {std::pair("a", *a), std::pair("b", *b)}) {
      if (value <= 0) {
        Fault(LineOf(key), std::string(key) + " is " + ShowNumber(value), "it is above 0");
        return std::nullopt;
      }
    }
    if (domain.quantum > 0 && !StepFits(domain.quantum, 0, 1)) return std::nullopt;
    domain.distribution = Beta{*a, *b};
    return domain;
  }

  std::optional<Domain> ReadConstant() {
    const YamlNode* node = node_.Find("value");
    if (node == nullptr) {
      Fault(node_.line, "`value` is missing", "add it");
      return std::nullopt;
    }
    auto value = reader_.Value(*node, name_ + ": value");
    if (!value) return std::nullopt;
    return ConstantDomain{*std::move(value)};
  }

  std::optional<Domain> ReadCategorical() {
    const YamlNode* list = node_.Find("values");
    if (list == nullptr || list->kind != YamlKind::kList || list->items.empty()) {
      const std::string what = list == nullptr                 ? "`values` is missing"
                               : list->kind == YamlKind::kList ? "`values` is an empty list"
                                                               : "`values` is " + KindName(*list);
      Fault(list == nullptr ? node_.line : list->line, what, "give a list, such as [16, 32, 64]");
      return std::nullopt;
    }
    std::vector<double> weights(list->items.size(), 1.0);
    const YamlNode* probabilities = node_.Find("probabilities");
    if (probabilities != nullptr && !ReadWeights(*probabilities, weights)) return std::nullopt;
    CategoricalDomain domain;
    bool repeated = false;
    bool impossible = false;
    for (size_t i = 0; i < list->items.size(); ++i) {
      auto value = reader_.Value(list->items[i], name_ + ": values");
      if (!value) return std::nullopt;
      if (weights[i] == 0) {
        impossible = true;
        continue;
      }
      const auto there = std::find(domain.values.begin(), domain.values.end(), *value);
      if (there != domain.values.end()) {
        domain.probabilities[static_cast<size_t>(there - domain.values.begin())] += weights[i];
        repeated = true;
        continue;
      }
      domain.values.push_back(*std::move(value));
      domain.probabilities.push_back(weights[i]);
    }
    if (impossible) {
      reader_.Note(list->line, name_ + ": a value has the probability 0; it is left out");
    }
    if (repeated) {
      reader_.Note(list->line,
                   name_ + ": a value stands twice; it is one value with the weight of both");
    }
    if (probabilities == nullptr && !repeated) {
      domain.probabilities.clear();
      return domain;
    }
    double sum = 0;
    for (const double weight : domain.probabilities) sum += weight;
    for (double& weight : domain.probabilities) weight /= sum;
    return domain;
  }

  bool ReadWeights(const YamlNode& node, std::vector<double>& weights) {
    if (node.kind != YamlKind::kList || node.items.size() != weights.size()) {
      Fault(node.line,
            "probabilities is " +
                (node.kind == YamlKind::kList ? "a list of " + std::to_string(node.items.size())
                                              : KindName(node)) +
                ", values has " + std::to_string(weights.size()),
            "give one probability for each value");
      return false;
    }
    double sum = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const auto weight = reader_.Number(node.items[i], name_ + ": probabilities");
      if (!weight) return false;
      if (*weight < 0) {
        Fault(node.items[i].line, "a probability is " + ShowNumber(*weight), "it is 0 to 1");
        return false;
      }
      weights[i] = *weight;
      sum += *weight;
    }
    // Written by hand: 0.33, 0.33, 0.33 is meant well.
    if (std::abs(sum - 1) > 0.02) {
      Fault(node.line, "the probabilities sum to " + ShowNumber(sum), "make them sum to 1");
      return false;
    }
    return true;
  }

  SweepReader& reader_;
  const std::string name_;
  const YamlNode& node_;
};

void ReadGroup(const YamlNode& group, const std::string& prefix, SweepReader& reader) {
  for (const auto& [key, node] : group.entries) {
    const std::string name = prefix + key.text;
    if (node.kind != YamlKind::kMap) {
      const bool list = node.kind == YamlKind::kList;
      reader.faults.Add(
          key.line, Shown(name) + " is " + KindName(node) + ", a group of keys is needed",
          list ? "for a choice write `" + Shown(key.text) + ": {values: [...]}`"
               : "for a constant write `" + Shown(key.text) +
                     ": {value: " + (node.text.empty() ? "..." : Shown(node.text)) + "}`");
      continue;
    }
    if (const YamlNode* nested = node.Find("parameters")) {
      reader.OnlyKeys(node, Shown(name), {"parameters"});
      if (reader.IsGroup(*nested, Shown(name) + ": parameters",
                         "parameters: {lr: {min: 0.1, max: 1.0}}")) {
        ReadGroup(*nested, name + ".", reader);
      }
      continue;
    }
    if (const auto there = reader.parameter_lines.find(name);
        there != reader.parameter_lines.end()) {
      reader.faults.Add(key.line, "the parameter " + Shown(name) + " is there twice",
                        "rename one (the other is at line " + std::to_string(there->second) + ")");
      continue;
    }
    reader.parameter_lines[name] = key.line;
    reader.OnlyKeys(node, Shown(name), ParameterKeys());
    YamlNode at_key = node;
    at_key.line = key.line;
    auto domain = ParameterReader(reader, Shown(name), at_key).Read();
    if (!domain) continue;
    ParameterSpec spec{name, *std::move(domain), {}};
    // What the table above does not judge (names, ranges of the type) the space itself does.
    if (const Status status = Validate(Space{{spec}}); !status.ok()) {
      reader.faults.Add(key.line, "", status);
      continue;
    }
    reader.sweep.study.space.parameters.push_back(std::move(spec));
  }
}

}  // namespace

void ReadParameters(const YamlNode& node, SweepReader& reader) {
  if (!reader.IsGroup(node, "parameters", "parameters: {lr: {min: 0.001, max: 0.1}}")) return;
  if (node.entries.empty()) {
    reader.faults.Add(node.line, "parameters is empty", "name at least one parameter");
    return;
  }
  ReadGroup(node, "", reader);
  if (reader.parameter_lines.size() > kMaxParameters) {
    reader.faults.Add(node.line, std::to_string(reader.parameter_lines.size()) + " parameters",
                      "at most " + std::to_string(kMaxParameters));
  }
}

}  // namespace jizi::tuner
