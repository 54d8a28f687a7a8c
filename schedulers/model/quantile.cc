#include "schedulers/model/quantile.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace jizi::tuner {
namespace {

constexpr double kSmallestProbability = 0x1p-54;  // Half of the distance between two uniform draws.

// The quantile of a lower tail p <= 1/2.
double LowerNormalQuantile(double p) {
  const double t = std::sqrt(-2 * std::log(p));
  double x = (2.515517 + t * (0.802853 + t * 0.010328)) /
                 (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
             t;  // To 4.5e-4; each of Halley's steps triples the digits.
  for (int i = 0; i < 2; ++i) {
    const double error = std::erfc(-x / std::numbers::sqrt2) / 2 - p;
    const double step = error * std::sqrt(2 * std::numbers::pi) * std::exp(x * x / 2);
    x -= step / (1 + x * step / 2);
  }
  return x;
}

// std::lgamma writes the global signgam, which would be a race.
double LogGamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

// A point of (0, 1) by both distances, so that neither end loses digits.
struct BetaPoint {
  double x;
  double rest;  // 1 - x.
};

BetaPoint FromLogit(double z) {
  const double small = std::exp(-std::abs(z));
  const double near = small / (1 + small);
  const double far = 1 / (1 + small);
  return z < 0 ? BetaPoint{near, far} : BetaPoint{far, near};
}

// The continued fraction of I_x(a, b) without its factor in front; converges fast for x < (a + 1) /
// (a + b + 2).
double BetaFraction(double x, double a, double b) {
  constexpr double kTiny = 1e-300;
  constexpr int kMaxTerms = 20000;  // More than sqrt(2e6) needs by far.
  const auto away_from_zero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m <= kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  return fraction;
}

struct Tails {
  double lower;  // I_x(a, b)
  double upper;  // 1 - I_x(a, b)
  double slope;  // Of the lower tail by the logit of x.
};

Tails BetaTails(const BetaPoint& point, double a, double b) {
  const double log_front = LogGamma(a + b) - LogGamma(a) - LogGamma(b) + a * std::log(point.x) +
                           b * std::log(point.rest);
  const double front = std::exp(log_front);
  if (point.x < (a + 1) / (a + b + 2)) {
    const double lower = std::min(1.0, front * BetaFraction(point.x, a, b) / a);
    return {lower, 1 - lower, front};
  }
  const double upper = std::min(1.0, front * BetaFraction(point.rest, b, a) / b);
  return {1 - upper, upper, front};
}

}  // namespace

double NormalQuantile(double p) {
  if (p > 0.5) return -LowerNormalQuantile(std::max(1 - p, kSmallestProbability));
  return LowerNormalQuantile(std::max(p, kSmallestProbability));
}

double BetaProbability(double x, double a, double b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  return BetaTails({x, 1 - x}, a, b).lower;
}

double BetaQuantile(double p, double a, double b) {
  if (p <= 0) return 0;
  if (p >= 1) return 1;
  // The smaller tail is the one with all its digits. Newton's method runs on its logarithm, by the
  // logit of x.
  const bool by_lower = p <= 0.5;
  const double target = std::log(by_lower ? p : 1 - p);
  double low = -740, high = 740;  // exp(-740) is close to the smallest double.
  double z = std::clamp(std::log(a / b), low, high);
  for (int i = 0; i < 200 && high - low > 1e-16 * std::max(1.0, std::abs(z)); ++i) {
    const Tails tails = BetaTails(FromLogit(z), a, b);
    const double tail = by_lower ? tails.lower : tails.upper;
    const double gap = std::log(tail) - target;  // -inf where the tail underflows.
    if (gap == 0) break;
    ((gap > 0) == by_lower ? high : low) = z;
    const double next = z - gap * tail / (by_lower ? tails.slope : -tails.slope);
    const bool inside = next > low && next < high;  // False for NaN too.
    const double moved = inside ? next : low + (high - low) / 2;
    if (moved == z) break;
    z = moved;
  }
  if (z < -735) return 0;
  return FromLogit(z).x;
}

}  // namespace jizi::tuner
