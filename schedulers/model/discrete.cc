#include "schedulers/model/discrete.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace jizi::tuner {
namespace {

constexpr double kTolerance = 1e-9;  // 0.3 / 0.1 is not quite 3.

struct Bounds {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

Bounds BoundsOf(const NumericDomain& domain) {
  if (const auto* uniform = std::get_if<Uniform>(&domain.distribution)) {
    return {uniform->min, uniform->max};
  }
  if (std::holds_alternative<Beta>(domain.distribution)) return {0, 1};
  if (std::get<Normal>(domain.distribution).log) return {.min = 0};
  return {};
}

// How far a quotient may be off a whole number; never more than a part of itself, so that a tiny
// min is not taken for 0.
double Slack(double quotient) {
  const double size = std::abs(quotient);
  return kTolerance * std::min(1.0, size) + 4 * std::numeric_limits<double>::epsilon() * size;
}

// The double nearest to the decimal of 15 digits, if that is what the product would be without its
// rounding.
double Decimal(double value, double quantum) {
  const auto rounded = [](double exact) {
    char buffer[40];
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, exact, std::chars_format::scientific, 14).ptr;
    double read = exact;
    std::from_chars(buffer, end, read);
    return read;
  };
  if (rounded(quantum) != quantum) return value;
  const double decimal = rounded(value);
  const double noise = 2 * std::numeric_limits<double>::epsilon() * std::abs(value);
  return std::abs(decimal - value) <= noise ? decimal : value;
}

}  // namespace

Multiples Multiples::Of(const NumericDomain& domain) {
  const double q = domain.quantum;
  const Bounds bounds = BoundsOf(domain);
  const double reach = std::min(static_cast<double>(kMaxExactInteger),
                                std::floor((domain.integral ? static_cast<double>(kMaxExactInteger)
                                                            : std::numeric_limits<double>::max()) /
                                           q));
  const double low = bounds.min / q;
  const double high = bounds.max / q;
  double first = std::isinf(low) ? -reach : std::ceil(low - Slack(low));
  double last = std::isinf(high) ? reach : std::floor(high + Slack(high));
  if (domain.integral) {  // Whole numbers are exact: no slack.
    if (first * q < bounds.min) ++first;
    if (last * q > bounds.max) --last;
  }
  first = std::clamp(first, -reach, reach);
  last = std::clamp(last, -reach, reach);
  return {static_cast<int64_t>(first), static_cast<int64_t>(last),
          !std::holds_alternative<Normal>(domain.distribution)};
}

ParamValue MultipleAt(const NumericDomain& domain, int64_t k) {
  if (domain.integral) return k * static_cast<int64_t>(domain.quantum);
  const Bounds bounds = BoundsOf(domain);
  const double value = Decimal(static_cast<double>(k) * domain.quantum, domain.quantum);
  return std::clamp(value, bounds.min, bounds.max);
}

std::optional<int64_t> MultipleOf(const NumericDomain& domain, const Multiples& multiples,
                                  const ParamValue& value) {
  if (domain.integral) {
    const auto* whole = std::get_if<int64_t>(&value);
    const auto quantum = static_cast<int64_t>(domain.quantum);
    if (whole == nullptr || *whole % quantum != 0) return std::nullopt;
    const int64_t k = *whole / quantum;
    return k >= multiples.first && k <= multiples.last ? std::optional(k) : std::nullopt;
  }
  const auto* real = std::get_if<double>(&value);
  if (real == nullptr) return std::nullopt;
  const Bounds bounds = BoundsOf(domain);
  const double quotient = *real / domain.quantum;
  const double nearest = std::round(quotient);
  if (!(*real >= bounds.min && *real <= bounds.max) ||
      !(std::abs(quotient - nearest) <= kTolerance + Slack(quotient))) {
    return std::nullopt;
  }
  if (nearest < static_cast<double>(multiples.first) ||
      nearest > static_cast<double>(multiples.last)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(nearest);
}

std::optional<DiscreteDomain> DiscreteDomain::Of(const Domain& domain) {
  DiscreteDomain discrete(domain);
  if (const auto* categorical = std::get_if<CategoricalDomain>(&domain)) {
    discrete.count_ = static_cast<int64_t>(categorical->values.size());
  } else if (const auto* numeric = std::get_if<NumericDomain>(&domain)) {
    if (numeric->quantum > 0) {
      discrete.multiples_ = Multiples::Of(*numeric);
      if (!discrete.multiples_.bounded) return std::nullopt;
      discrete.count_ = discrete.multiples_.last - discrete.multiples_.first + 1;
    } else {
      const auto* uniform = std::get_if<Uniform>(&numeric->distribution);
      if (uniform == nullptr || uniform->min != uniform->max) return std::nullopt;
    }
  }
  return discrete;
}

ParamValue DiscreteDomain::At(int64_t number) const {
  if (const auto* categorical = std::get_if<CategoricalDomain>(domain_)) {
    return categorical->values[static_cast<size_t>(number)];
  }
  if (const auto* constant = std::get_if<ConstantDomain>(domain_)) return constant->value;
  const auto& numeric = std::get<NumericDomain>(*domain_);
  if (numeric.quantum > 0) return MultipleAt(numeric, multiples_.first + number);
  return std::get<Uniform>(numeric.distribution).min;
}

std::optional<int64_t> DiscreteDomain::NumberOf(const ParamValue& value) const {
  if (const auto* categorical = std::get_if<CategoricalDomain>(domain_)) {
    const auto found = std::find(categorical->values.begin(), categorical->values.end(), value);
    if (found == categorical->values.end()) return std::nullopt;
    return found - categorical->values.begin();
  }
  if (const auto* numeric = std::get_if<NumericDomain>(domain_); numeric && numeric->quantum > 0) {
    const auto k = MultipleOf(*numeric, multiples_, value);
    return k ? std::optional(*k - multiples_.first) : std::nullopt;
  }
  return At(0) == value ? std::optional<int64_t>(0) : std::nullopt;
}

}  // namespace jizi::tuner
