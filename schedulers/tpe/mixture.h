#pragma once
// mixture.h - a density over the parameters of one group: a component per observed point, a product
// over the parameters, and one that is uniform.
// Shapes: points as encoding.h has them; only the coordinates of the group are read and written.
// Units: log densities per unit of the coordinates, probabilities for listed values.
// Fails: never; without points the density is uniform.   Threads: immutable.
// Cost: O(points x parameters) a density or a draw.

#include <vector>

#include "schedulers/bayes/encoding.h"
#include "schedulers/model/rng.h"

namespace jizi::tuner {

class Mixture {
 public:
  // Oldest point first. `group` are places in the space.
  Mixture(const Encoding& encoding, std::vector<size_t> group, std::vector<Point> points);

  double LogDensity(const Point& point) const;
  void Draw(Rng& rng, Point& point) const;

 private:
  double LogComponent(size_t component, const Point& point) const;
  std::vector<double> LevelShares(size_t place, double centre) const;
  double Bandwidth(size_t place) const;

  const Encoding& encoding_;
  std::vector<size_t> group_;
  std::vector<Point> points_;
  std::vector<double> log_weights_;  // Of the points, then of the uniform component.
  double width_ = 1;                 // Of the Gaussians, before a listed number's step counts.
};

}  // namespace jizi::tuner
