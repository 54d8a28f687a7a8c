#pragma once
// minimise.h - a local minimum of a smooth function in a box, by projected L-BFGS.
// Shapes: x, low, high, gradient all n. Each step goes along the two-loop direction of the
// coordinates that are free (not held at a bound by the gradient), is cut off at the box, and is
// shortened until it descends enough (Armijo).
// Fails: never; a value that is not finite counts as too high, and the best point seen is returned.
// Cost: at most max_evaluations calls and O(memory n) beside each.
// Source: Nocedal & Wright 2006, algorithms 7.4 and 16.5 (projection as in Bertsekas 1982).

#include <Eigen/Core>
#include <functional>

namespace jizi::tuner {

struct MinimiseOptions {
  int max_evaluations = 100;
  int memory = 8;
  double gradient_tolerance = 1e-4;  // Largest component of the projected gradient.
  double value_tolerance = 1e-7;     // Relative descent of a step below which it ends.
  double first_step = 0.1;           // Largest component of the first step.
};

struct Minimum {
  Eigen::VectorXd x;
  double value = 0;
  int evaluations = 0;
};

// Returns the value and sets the gradient.
using Smooth = std::function<double(const Eigen::VectorXd& x, Eigen::VectorXd& gradient)>;

struct Box {
  Eigen::VectorXd low;
  Eigen::VectorXd high;
};

Minimum Minimise(const Smooth& function, const Eigen::VectorXd& start, const Box& box,
                 const MinimiseOptions& options);

}  // namespace jizi::tuner
