#pragma once
// quantile.h - inverse distribution functions in double accuracy, for turning a coordinate of the
// unit interval into a value. Units: p is a probability in [0, 1]; NormalQuantile answers in
// standard deviations, BetaQuantile in [0, 1]. Fails: never; p is moved to the nearest probability
// with a finite answer, p = 0 and 1 of a beta are 0 and 1. Threads: pure functions.   Cost: normal
// 2 erfc; beta about 10 continued fractions of O(sqrt(a + b)) terms. Source: normal: Abramowitz &
// Stegun 26.2.23 sharpened by Halley's method; beta: the continued fraction DLMF 8.17.22 by Lentz's
// method, inverted by Newton's method kept between bounds.

namespace jizi::tuner {

double NormalQuantile(double p);

// a, b > 0, at most 1e6.
double BetaQuantile(double p, double a, double b);

// The distribution function of the beta distribution (the regularised incomplete beta function).
double BetaProbability(double x, double a, double b);

}  // namespace jizi::tuner
