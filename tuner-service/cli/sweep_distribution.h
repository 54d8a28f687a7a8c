#pragma once
// sweep_distribution.h - the distributions that a sweep file may name, and the keys of each.
// Source: the schema of wandb/sweeps; docs/sweep-files.md has the table.
// Threads: pure functions.

#include <string>
#include <vector>

#include "schedulers/model/space.h"

namespace jizi::tuner {

enum class Shape { kUniform, kNormal, kBeta, kConstant, kCategorical };
enum class Bounds { kValues, kExponents };  // What min and max are.
enum class Step { kNone, kQuantum, kInteger };

struct Distribution {
  const char* name;
  Shape shape;
  Scale scale = Scale::kLinear;
  Bounds bounds = Bounds::kValues;
  Step step = Step::kNone;
  bool log_normal = false;
  bool weighted = false;
};

// Null where there is none of this name.
const Distribution* FindDistribution(const std::string& name);
std::vector<std::string> DistributionNames();

// The keys that a parameter of it may have.
std::vector<std::string> KeysOf(const Distribution& distribution);
// Of all of them.
const std::vector<std::string>& ParameterKeys();

}  // namespace jizi::tuner
