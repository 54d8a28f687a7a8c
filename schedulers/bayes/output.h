#pragma once
// output.h - what the model is told: values of a metric made roughly normal.
// Shapes: n feasible rows -> n labels, larger is better, mean 0 and variance 1.
// - kPower: values far below the median are pulled in, then a Yeo-Johnson power of greatest
//   likelihood (from a fixed grid) takes out the skew.
// - kHalfRank: below the median only ranks count.
// All alike: 0 everywhere. Ranges from 1e-300 to 1e300 come out the same as 1.
// Fails: never; values must be finite.   Threads: pure.   Cost: O(n log n).
// Source: Song et al. 2024 (half-rank warp); Yeo & Johnson 2000.

#include <Eigen/Core>
#include <vector>

#include "schedulers/bayes/history.h"

namespace jizi::tuner {

enum class Warp { kPower, kHalfRank, kStandard };

Eigen::VectorXd Labels(const std::vector<LearntRow>& rows, Warp warp);

}  // namespace jizi::tuner
