#pragma once
// search.h - the point of a space that an acquisition promises most of, among those not used yet.
// Raw points (scrambled Sobol over the space, and moves from the best trials) are ranked; the best,
// apart from each other, are improved in turn: numbers by gradient, listed values by the best
// change of one of them, until neither helps.
// Fails: empty if every point that it came across is used.   Threads: pure.
// Cost: about raw + starts x (evaluations + changes) evaluations of the acquisition.

#include <functional>
#include <optional>
#include <vector>

#include "schedulers/bayes/acquisition.h"
#include "schedulers/bayes/encoding.h"
#include "schedulers/model/rng.h"

namespace jizi::tuner {

struct SearchOptions {
  int raw = 512;  // Sobol points; half as many moves from the best trials.
  int starts = 6;
  int evaluations = 40;  // Of the gradient, for each start and round.
  int rounds = 4;
};

// Fewer where n rows make each evaluation dear.
SearchOptions SearchOptionsFor(Eigen::Index rows);

struct Found {
  Point point;
  Params params;
  double value = 0;
};

std::optional<Found> Search(const Encoding& encoding, const Acquisition& acquisition,
                            const std::vector<Point>& best_trials, const SearchOptions& options,
                            Rng rng, const std::function<bool(const Params&)>& is_new);

}  // namespace jizi::tuner
