#pragma once
// space.h - the search space: what each parameter may be, and the map from the unit cube into it.
// Shapes: a space of p parameters; FromUnit takes p coordinates in [0, 1), one per parameter in the
// space's order, unused ones (constants, inactive parameters) included, so that a coordinate always
// means the same parameter. Fails: Validate names the parameter, what is wrong and the mend. Check
// the same for given parameters. Threads: values, const members safe from any thread.   Cost: O(p)
// a point.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "schedulers/model/params.h"
#include "schedulers/model/rng.h"

namespace jizi::tuner {

enum class Scale {
  kLinear,
  kLog,
  kInverseLog
};  // kInverseLog: log(1/x) is uniform, so it spreads as kLog; its coordinate runs from max to min.

struct Uniform {
  double min = 0;
  double max = 1;
  Scale scale = Scale::kLinear;
  bool operator==(const Uniform&) const = default;
};
struct Normal {
  double mu = 0;
  double sigma = 1;
  bool log = false;  // exp(normal).
  bool operator==(const Normal&) const = default;
};
struct Beta {
  double a = 1;
  double b = 1;
  bool operator==(const Beta&) const = default;
};

struct NumericDomain {
  std::variant<Uniform, Normal, Beta> distribution;
  double quantum = 0;     // Values are whole multiples of it inside the bounds; 0: continuous.
  bool integral = false;  // Values are int64_t; quantum is then a whole number >= 1.
  bool operator==(const NumericDomain&) const = default;
};
struct CategoricalDomain {
  std::vector<ParamValue> values;     // All different.
  std::vector<double> probabilities;  // As many as values, each above 0, summing to 1 (to 1e-6); or
                                      // empty: all alike.
  bool operator==(const CategoricalDomain&) const = default;
};
struct ConstantDomain {
  ParamValue value;
  bool operator==(const ConstantDomain&) const = default;
};
using Domain = std::variant<NumericDomain, CategoricalDomain, ConstantDomain>;

// The parameter exists only while `parent` exists and has one of these values.
struct Condition {
  std::string parent;
  std::vector<ParamValue> any_of;
  bool operator==(const Condition&) const = default;
};

struct ParameterSpec {
  std::string name;
  Domain domain;
  std::vector<Condition> when;  // All must hold.
  bool operator==(const ParameterSpec&) const = default;
};

struct Space {
  std::vector<ParameterSpec> parameters;  // Parents before their children (Validate sees to it).
  bool operator==(const Space&) const = default;
};

// At most this many parameters; names of 1 to 256 bytes of printable UTF-8.
inline constexpr size_t kMaxParameters = 1000;

Status Validate(const Space& space);

// Are these parameters a point of the space: every active one there and inside, no inactive or
// unknown one? Names the first that is not.
Status Check(const Space& space, const Params& params);

// Is this one of the values that the parameter can have?
Status CheckValue(const ParameterSpec& parameter, const ParamValue& value);

// The point at these coordinates. Log, step, probabilities and exact bounds are honoured: every
// value it can return passes Check.
Params FromUnit(const Space& space, std::span<const double> unit);

// The way back: coordinates at which FromUnit gives these parameters, the middle of its part of the
// axis for a value that owns one (listed values, multiples), 0.5 where a parameter is not there.
// The parameters must pass Check.
std::vector<double> ToUnit(const Space& space, const Params& params);

Params Sample(const Space& space, Rng& rng);

// What a person typed, with the types that the space wants: 1 for a float is 1.0, 64.0 for an int
// is 64, and likewise among listed values where just one is the same number. All else stays as it
// is, for Check to judge.
Params Coerce(const Space& space, Params params);

// How many different points there are; empty when a parameter is continuous or unbounded.
// Conditions count reachable points only. Saturates at INT64_MAX; empty too where conditions tie so
// many parameters together that counting is out of reach (points.h).
std::optional<int64_t> CountPoints(const Space& space);

// The grid of one parameter in its documented order (ascending numbers, values as listed); empty if
// it has none (continuous, unbounded, or more than a million values).
std::optional<std::vector<ParamValue>> GridValues(const Domain& domain);

// Does the parameter exist, given those before it?
bool IsActive(const ParameterSpec& parameter, const Params& before);

}  // namespace jizi::tuner
