#include "schedulers/model/space.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "schedulers/model/discrete.h"
#include "schedulers/model/points.h"
#include "schedulers/model/quantile.h"

namespace jizi::tuner {
namespace {

constexpr double kBelowOne = 1 - 0x1p-53;
constexpr int64_t kMaxListed = 1'000'000;  // Values that GridValues is willing to write down.

// Values of a scale's own axis, on which the coordinate is linear. Both logarithmic scales spread
// the values alike (log(1/x) is uniform just where log(x) is); the inverse one runs from max to
// min.
double OnScale(Scale scale, double x) {
  return scale == Scale::kLinear ? x : scale == Scale::kLog ? std::log(x) : -std::log(x);
}
double FromScale(Scale scale, double s) {
  return scale == Scale::kLinear ? s : std::exp(scale == Scale::kLog ? s : -s);
}

double OnUniform(const Uniform& uniform, double unit) {
  const bool inverse = uniform.scale == Scale::kInverseLog;
  const double start = inverse ? uniform.max : uniform.min;
  const double stop = inverse ? uniform.min : uniform.max;
  if (unit == 0) return start;  // Exactly: exp(log(x)) is not always x.
  const double s = std::lerp(OnScale(uniform.scale, start), OnScale(uniform.scale, stop), unit);
  return std::clamp(FromScale(uniform.scale, s), uniform.min, uniform.max);
}

double OnNormal(const Normal& normal, double unit) {
  const double x = normal.mu + normal.sigma * NormalQuantile(unit);
  constexpr double kMax = std::numeric_limits<double>::max();
  if (!normal.log) return std::clamp(x, -kMax, kMax);
  return std::clamp(std::exp(x), std::numeric_limits<double>::min(), kMax);
}

double OnDistribution(const NumericDomain& domain, double unit) {
  if (const auto* uniform = std::get_if<Uniform>(&domain.distribution)) {
    return OnUniform(*uniform, unit);
  }
  if (const auto* normal = std::get_if<Normal>(&domain.distribution)) {
    return OnNormal(*normal, unit);
  }
  const auto& beta = std::get<Beta>(domain.distribution);
  return BetaQuantile(unit, beta.a, beta.b);
}

// Uniform scales: each multiple owns what rounds to it, the outer two as well, so that on a linear
// scale all are equally likely. Other distributions: the nearest multiple of a draw, moved inside.
int64_t MultipleAtUnit(const NumericDomain& domain, double unit) {
  const Multiples multiples = Multiples::Of(domain);
  const auto first = static_cast<double>(multiples.first);
  const auto last = static_cast<double>(multiples.last);
  const auto* uniform = std::get_if<Uniform>(&domain.distribution);
  double k = 0;
  if (uniform != nullptr && uniform->scale == Scale::kLinear) {
    k = first + std::floor(unit * (last - first + 1));
  } else if (uniform != nullptr) {
    k = std::round(OnUniform({first - 0.5, last + 0.5, uniform->scale}, unit));
  } else {
    k = std::round(OnDistribution(domain, unit) / domain.quantum);
  }
  return static_cast<int64_t>(std::clamp(k, first, last));
}

ParamValue Value(const NumericDomain& domain, double unit) {
  if (domain.quantum > 0) return MultipleAt(domain, MultipleAtUnit(domain, unit));
  return OnDistribution(domain, unit);
}

ParamValue Value(const CategoricalDomain& domain, double unit) {
  const size_t count = domain.values.size();
  if (domain.probabilities.empty()) {
    const auto at = static_cast<size_t>(unit * static_cast<double>(count));
    return domain.values[std::min(at, count - 1)];
  }
  double upto = 0;
  for (size_t i = 0; i + 1 < count; ++i) {
    upto += domain.probabilities[i];
    if (unit < upto) return domain.values[i];
  }
  return domain.values.back();
}

ParamValue Value(const ConstantDomain& domain, double) {
  return domain.value;
}

double UnitOnUniform(const Uniform& uniform, double x) {
  const bool inverse = uniform.scale == Scale::kInverseLog;
  const double start = OnScale(uniform.scale, inverse ? uniform.max : uniform.min);
  const double stop = OnScale(uniform.scale, inverse ? uniform.min : uniform.max);
  return stop == start ? 0.5 : (OnScale(uniform.scale, x) - start) / (stop - start);
}

double UnitOnDistribution(const NumericDomain& domain, double x) {
  if (const auto* uniform = std::get_if<Uniform>(&domain.distribution)) {
    return UnitOnUniform(*uniform, x);
  }
  if (const auto* beta = std::get_if<Beta>(&domain.distribution)) {
    return BetaProbability(x, beta->a, beta->b);
  }
  const auto& normal = std::get<Normal>(domain.distribution);
  const double at = normal.log ? std::log(x) : x;
  return 0.5 * std::erfc(-(at - normal.mu) / normal.sigma / std::sqrt(2.0));
}

double UnitOf(const NumericDomain& domain, const ParamValue& value) {
  const auto* whole = std::get_if<int64_t>(&value);
  const double x = whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value);
  if (domain.quantum == 0) return UnitOnDistribution(domain, x);
  const auto* uniform = std::get_if<Uniform>(&domain.distribution);
  if (uniform == nullptr) return UnitOnDistribution(domain, x);
  const Multiples multiples = Multiples::Of(domain);
  const auto first = static_cast<double>(multiples.first);
  const auto last = static_cast<double>(multiples.last);
  const double k = std::clamp(std::round(x / domain.quantum), first, last);
  if (uniform->scale == Scale::kLinear) return (k - first + 0.5) / (last - first + 1);
  return UnitOnUniform({first - 0.5, last + 0.5, uniform->scale}, k);
}

double UnitOf(const CategoricalDomain& domain, const ParamValue& value) {
  const auto found = std::find(domain.values.begin(), domain.values.end(), value);
  const auto at = static_cast<size_t>(found - domain.values.begin());
  if (domain.probabilities.empty()) {
    return (static_cast<double>(at) + 0.5) / static_cast<double>(domain.values.size());
  }
  double upto = 0;
  for (size_t i = 0; i < at; ++i) upto += domain.probabilities[i];
  return upto + domain.probabilities[at] / 2;
}

double UnitOf(const ConstantDomain&, const ParamValue&) {
  return 0.5;
}

}  // namespace

bool IsActive(const ParameterSpec& parameter, const Params& before) {
  for (const Condition& condition : parameter.when) {
    const auto parent = before.find(condition.parent);
    if (parent == before.end()) return false;
    if (std::find(condition.any_of.begin(), condition.any_of.end(), parent->second) ==
        condition.any_of.end()) {
      return false;
    }
  }
  return true;
}

Params FromUnit(const Space& space, std::span<const double> unit) {
  CHECK(unit.size() == space.parameters.size());
  Params params;
  for (size_t i = 0; i < unit.size(); ++i) {
    const ParameterSpec& parameter = space.parameters[i];
    if (!IsActive(parameter, params)) continue;
    const double at = std::clamp(unit[i], 0.0, kBelowOne);
    params.emplace(
        parameter.name,
        std::visit([at](const auto& domain) { return Value(domain, at); }, parameter.domain));
  }
  return params;
}

std::vector<double> ToUnit(const Space& space, const Params& params) {
  std::vector<double> unit(space.parameters.size(), 0.5);
  for (size_t i = 0; i < unit.size(); ++i) {
    const ParameterSpec& parameter = space.parameters[i];
    const auto given = params.find(parameter.name);
    if (given == params.end()) continue;
    const double at =
        std::visit([&value = given->second](const auto& domain) { return UnitOf(domain, value); },
                   parameter.domain);
    unit[i] = std::clamp(at, 0.0, kBelowOne);
  }
  return unit;
}

Params Sample(const Space& space, Rng& rng) {
  std::vector<double> unit(space.parameters.size());
  for (double& u : unit) u = rng.Uniform();
  return FromUnit(space, unit);
}

std::optional<std::vector<ParamValue>> GridValues(const Domain& domain) {
  const auto discrete = DiscreteDomain::Of(domain);
  if (!discrete || discrete->count() > kMaxListed) return std::nullopt;
  std::vector<ParamValue> values;
  values.reserve(static_cast<size_t>(discrete->count()));
  for (int64_t i = 0; i < discrete->count(); ++i) values.push_back(discrete->At(i));
  return values;
}

std::optional<int64_t> CountPoints(const Space& space) {
  const auto points = Points::Of(space);
  return points ? std::optional(points->count()) : std::nullopt;
}

}  // namespace jizi::tuner
