#pragma once
// tpe.h - method tpe: a tree-structured Parzen estimator, for large or heavily conditional spaces.
// The best min(ceil(n / 10), 25) of the n trials that ended are one mixture, the others a second:
// a component per trial, and a uniform one. 24 points are drawn from the first, and the one with
// the greatest ratio of the two densities is proposed.
// - Multivariate: a component is a product over the parameters of a group. Numbers have a Gaussian
//   cut off at the unit interval (listed ones: on their values alone), categories a share of 1 for
//   their value and the prior's for the others.
// - Grouped: parameters with the same conditions are a group with mixtures of its own, from the
//   trials in which it is there; groups are drawn parents first.
// - Constant liar: pending trials and infeasible ones belong to the second mixture.
// - The newest 25 trials weigh 1, older ones less, down to 1/n.
// The first `initial` points are space-filling (scrambled Sobol, tag "sobol"). No point twice on a
// space that has only so many, until all are used: then kExhausted.
// Fails: Create is InvalidArgument for a setting, Unimplemented for several metrics.
// Threads: const.   Cost: O(candidates x n x parameters) a suggestion.
// Source: Bergstra et al. 2011; Watanabe 2023 (multivariate kernels, bandwidths).

#include <memory>

#include "schedulers/scheduler.h"

namespace jizi::tuner {

StatusOr<std::unique_ptr<Scheduler>> CreateTpe(const StudySpec& spec);

}  // namespace jizi::tuner
