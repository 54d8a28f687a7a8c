#pragma once
// sampling.h - method random: points drawn from the parameters' distributions, by a random stream
// or by scrambled Sobol points. No point twice while another is left: a draw that equals a trial is
// drawn again, kRedraws times. Then
// - a space whose points have numbers (points.h) gives one of its unused points, all alike, and is
// exhausted once all are used;
// - any other space (a continuous or unbounded parameter) gives the repeated point, and says so:
// only points without such a parameter,
//   in a branch that a condition opens, can come to this.
// Sobol: the point of a trial stands in its tag "sobol"; the next suggestion goes on behind the
// last one. One dimension for each parameter that can vary, in the space's order, inactive ones
// included; the scramble comes from the study's seed. Fails: Create is InvalidArgument for a
// setting, and for more than kSobolDimensions varying parameters with Sobol. Cost: O(new trials +
// count) with a warm Memo, at most kRedraws draws a proposal.

#include <memory>

#include "schedulers/scheduler.h"

namespace jizi::tuner {

inline constexpr int kRedraws = 64;

StatusOr<std::unique_ptr<Scheduler>> CreateSampling(const StudySpec& spec);

}  // namespace jizi::tuner
