#pragma once
// discrete.h - the values of a parameter that has only so many, by their number: the multiples of a
// quantum, a list, one constant. Units: the number of a value counts from 0 in the documented
// order: numbers ascending, lists as written. Fails: Of is empty for a continuous or unbounded
// domain; the domain must be valid (space.h). Threads: values; a DiscreteDomain points into the
// domain that it was made of.   Cost: O(1), but O(values) to find a listed value.

#include <cstdint>
#include <optional>

#include "schedulers/model/space.h"

namespace jizi::tuner {

// Whole numbers up to here are exact in a double.
inline constexpr int64_t kMaxExactInteger = int64_t{1} << 53;

// The multiples k * quantum of a quantised domain, first <= k <= last; none fits where first >
// last.
struct Multiples {
  int64_t first = 0;
  int64_t last = 0;
  bool bounded = true;  // False for the normal distributions: first and last are then only where
                        // exact numbers end.

  // Of a domain with a quantum > 0.
  static Multiples Of(const NumericDomain& domain);
};

// The multiple itself: never outside the bounds by rounding, and the number that a person would
// write (0.3, not 0.30000000000000004).
ParamValue MultipleAt(const NumericDomain& domain, int64_t k);

// Which multiple this is, to a relative 1e-9; empty if it is none, lies outside, or has another
// type.
std::optional<int64_t> MultipleOf(const NumericDomain& domain, const Multiples& multiples,
                                  const ParamValue& value);

class DiscreteDomain {
 public:
  static std::optional<DiscreteDomain> Of(const Domain& domain);

  int64_t count() const { return count_; }
  ParamValue At(int64_t number) const;
  std::optional<int64_t> NumberOf(const ParamValue& value) const;

 private:
  explicit DiscreteDomain(const Domain& domain) : domain_(&domain) {}

  const Domain* domain_;
  Multiples multiples_;  // Of a numeric domain with a quantum.
  int64_t count_ = 1;
};

}  // namespace jizi::tuner
