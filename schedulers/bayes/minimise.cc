#include "schedulers/bayes/minimise.h"

#include <cmath>
#include <deque>
#include <limits>

namespace jizi::tuner {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double kArmijo = 1e-4;
constexpr int kMaxHalvings = 12;

struct Pair {
  VectorXd step;
  VectorXd change;  // Of the gradient.
  double inverse = 0;
};

// 1 where the coordinate may move, 0 where the gradient presses it against a bound.
VectorXd Free(const VectorXd& x, const VectorXd& gradient, const Box& box) {
  VectorXd free = VectorXd::Ones(x.size());
  for (Index i = 0; i < x.size(); ++i) {
    if (x[i] <= box.low[i] && gradient[i] > 0) free[i] = 0;
    if (x[i] >= box.high[i] && gradient[i] < 0) free[i] = 0;
  }
  return free;
}

VectorXd Direction(const std::deque<Pair>& pairs, const VectorXd& gradient, double first_step) {
  VectorXd q = gradient;
  if (pairs.empty()) {
    const double largest = q.cwiseAbs().maxCoeff();
    return largest > 0 ? VectorXd(-q * (first_step / largest)) : VectorXd(-q);
  }
  std::vector<double> weights(pairs.size());
  for (size_t i = pairs.size(); i-- > 0;) {
    weights[i] = pairs[i].inverse * pairs[i].step.dot(q);
    q -= weights[i] * pairs[i].change;
  }
  const Pair& last = pairs.back();
  q *= 1 / (last.inverse * last.change.squaredNorm());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const double weight = pairs[i].inverse * pairs[i].change.dot(q);
    q += (weights[i] - weight) * pairs[i].step;
  }
  return -q;
}

}  // namespace

Minimum Minimise(const Smooth& function, const VectorXd& start, const Box& box,
                 const MinimiseOptions& options) {
  VectorXd x = start.cwiseMax(box.low).cwiseMin(box.high);
  VectorXd gradient(x.size());
  double value = function(x, gradient);
  int evaluations = 1;
  std::deque<Pair> pairs;
  if (!std::isfinite(value) || !gradient.allFinite()) return {x, value, evaluations};
  while (evaluations < options.max_evaluations) {
    const VectorXd free = Free(x, gradient, box);
    const VectorXd reduced = gradient.cwiseProduct(free);
    if (reduced.cwiseAbs().maxCoeff() < options.gradient_tolerance) break;
    VectorXd direction = Direction(pairs, reduced, options.first_step).cwiseProduct(free);
    if (!(direction.dot(reduced) < 0) || !direction.allFinite()) {
      pairs.clear();
      direction = Direction(pairs, reduced, options.first_step);
    }
    double length = 1;
    VectorXd next, next_gradient(x.size());
    double next_value = std::numeric_limits<double>::infinity();
    bool descends = false;
    for (int halving = 0; halving < kMaxHalvings && evaluations < options.max_evaluations;
         ++halving) {
      next = (x + length * direction).cwiseMax(box.low).cwiseMin(box.high);
      next_value = function(next, next_gradient);
      ++evaluations;
      const double slope = gradient.dot(next - x);
      descends = std::isfinite(next_value) && next_gradient.allFinite() &&
                 next_value <= value + kArmijo * std::min(slope, 0.0);
      if (descends) break;
      // The parabola through both ends, kept between a tenth and a half.
      const double bend = next_value - value - slope;
      const double best = std::isfinite(bend) && bend > 0 ? -slope / (2 * bend) : 0.1;
      length *= std::clamp(best, 0.1, 0.5);
    }
    if (!descends) {
      if (pairs.empty()) break;
      pairs.clear();
      continue;
    }
    Pair pair{next - x, next_gradient - gradient, 0};
    const double curvature = pair.step.dot(pair.change);
    if (curvature > 1e-12 * pair.change.squaredNorm()) {
      pair.inverse = 1 / curvature;
      pairs.push_back(std::move(pair));
      if (pairs.size() > static_cast<size_t>(options.memory)) pairs.pop_front();
    }
    const double descent = value - next_value;
    x = next;
    gradient = next_gradient;
    value = next_value;
    if (descent <= options.value_tolerance * (1 + std::abs(value))) break;
  }
  return {x, value, evaluations};
}

}  // namespace jizi::tuner
