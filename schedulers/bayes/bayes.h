#pragma once
// bayes.h - method bayes: Bayesian optimisation with a Gaussian process.
// The first points fill the space (scrambled Sobol, each marked by the tag "sobol"; trials that a
// person enqueued count). Then each suggestion is the point of greatest log expected improvement
// (acquisition.h) under the model of all that ended (model.h), given that the pending trials and
// the suggestions before it in the same answer are under way. Where more is pending than the model
// can tell apart (kMaxPicks in one answer, or more than kOpenPerRow for each row), and without a
// metric, space-filling points again.
// No point twice on a space that has only so many, until all are used: then kExhausted.
// Refused: several metrics.
// Fails: Create is InvalidArgument for a setting and Unimplemented for several metrics.
// Threads: const. The same study and rng give the same answer, with a Memo or without.
// Cost: model.h and search.h; bench in tests/bench/README.md.

#include <memory>

#include "schedulers/scheduler.h"

namespace jizi::tuner {

StatusOr<std::unique_ptr<Scheduler>> CreateBayes(const StudySpec& spec);

}  // namespace jizi::tuner
