#include "schedulers/bayes/output.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "schedulers/model/quantile.h"

namespace jizi::tuner {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double kFence = 3.0;  // Of the spread between median and upper quartile.

// Mean 0, variance 1; zeros where there is no spread.
void Standardise(VectorXd& values) {
  values.array() -= values.mean();
  const double deviation = std::sqrt(values.squaredNorm() / static_cast<double>(values.size()));
  if (deviation > 0) {
    values /= deviation;
    values.array() -= values.mean();
  }
}

// To [0, 1]: sizes no longer matter and sums cannot overflow. False if all are alike.
bool ToUnitRange(VectorXd& values) {
  const double low = values.minCoeff();
  const double half_range = values.maxCoeff() / 2 - low / 2;
  if (!(half_range > 0)) {
    values.setZero();
    return false;
  }
  values = ((values.array() / 2 - low / 2) / half_range).matrix();
  return true;
}

double Quantile(std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

// Very bad values differ from bad ones by little: beyond the fence only their logarithm counts.
void PullIn(VectorXd& values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double median = Quantile(sorted, 0.5);
  const double spread = Quantile(sorted, 0.9) - median;
  if (!(spread > 0)) return;
  const double fence = median - kFence * spread;
  for (double& value : values) {
    if (value < fence) value = fence - spread * std::log1p((fence - value) / spread);
  }
}

double YeoJohnson(double x, double lambda) {
  if (x >= 0) return lambda == 0 ? std::log1p(x) : std::expm1(lambda * std::log1p(x)) / lambda;
  const double mirror = 2 - lambda;
  return mirror == 0 ? -std::log1p(-x) : -std::expm1(mirror * std::log1p(-x)) / mirror;
}

// The power of greatest likelihood under a normal distribution.
void TakeOutSkew(VectorXd& values) {
  const auto n = static_cast<double>(values.size());
  double best = -std::numeric_limits<double>::infinity();
  VectorXd kept = values;
  double jacobian = 0;
  for (const double x : values) jacobian += std::copysign(std::log1p(std::abs(x)), x);
  for (int step = -12; step <= 12; ++step) {
    const double lambda = 1 + step * 0.25;
    const VectorXd moved = values.unaryExpr([lambda](double x) { return YeoJohnson(x, lambda); });
    const double variance = (moved.array() - moved.mean()).square().mean();
    if (!(variance > 0) || !std::isfinite(variance)) continue;
    // A weak prior keeps few values as they are.
    const double likelihood =
        -0.5 * n * std::log(variance) + (lambda - 1) * jacobian - 0.5 * (lambda - 1) * (lambda - 1);
    if (likelihood > best) {
      best = likelihood;
      kept = moved;
    }
  }
  values = kept;
}

// Below the median only ranks count, spread like the lower half of a normal distribution.
void HalfRank(VectorXd& values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double median = Quantile(sorted, 0.5);
  double squares = 0;
  double above = 0;
  for (const double value : values) {
    if (value < median) continue;
    squares += (value - median) * (value - median);
    ++above;
  }
  double spread = std::sqrt(squares / std::max(above, 1.0));
  if (!(spread > 0)) spread = 1;
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  const auto below = std::lower_bound(sorted.begin(), sorted.end(), median) - sorted.begin();
  for (double& value : values) {
    if (value >= median) continue;
    const auto rank = std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin();
    const double p = 0.5 * (static_cast<double>(rank) + 0.5) / (static_cast<double>(below) + 0.5);
    value = median + spread * NormalQuantile(p);
  }
}

}  // namespace

VectorXd Labels(const std::vector<LearntRow>& rows, Warp warp) {
  VectorXd labels(static_cast<Index>(rows.size()));
  for (size_t i = 0; i < rows.size(); ++i) labels[static_cast<Index>(i)] = rows[i].value;
  if (rows.empty() || !ToUnitRange(labels)) return labels;
  if (warp == Warp::kHalfRank) HalfRank(labels);
  if (warp == Warp::kPower) {
    PullIn(labels);
    Standardise(labels);
    TakeOutSkew(labels);
  }
  Standardise(labels);
  return labels;
}

}  // namespace jizi::tuner
