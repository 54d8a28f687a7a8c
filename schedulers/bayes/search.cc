#include "schedulers/bayes/search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "schedulers/bayes/minimise.h"
#include "schedulers/brute_force/sobol.h"

namespace jizi::tuner {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;
using Kind = Encoding::Kind;

constexpr double kApart = 0.05;      // Starts differ by this much in some coordinate.
constexpr size_t kMaxChanges = 400;  // Of listed values looked at in one step.
constexpr int kMaxSteps = 20;

struct Candidate {
  Point point;
  double value = 0;
};

// Ties are broken by where the points are, so that the order is the same everywhere.
bool Better(const Candidate& a, const Candidate& b) {
  if (a.value != b.value) return a.value > b.value;
  return std::lexicographical_compare(a.point.begin(), a.point.end(), b.point.begin(),
                                      b.point.end());
}

double Reflect(double unit) {
  unit = std::abs(unit);
  if (unit > 1) unit = 2 - unit;
  return std::clamp(unit, 0.0, 1 - 0x1p-53);
}

class Searcher {
 public:
  Searcher(const Encoding& encoding, const Acquisition& acquisition, const SearchOptions& options)
      : encoding_(encoding), acquisition_(acquisition), options_(options) {}

  std::vector<Candidate> Raw(const std::vector<Point>& best_trials, Rng& rng) const {
    const auto p = static_cast<Index>(encoding_.coordinates().size());
    std::vector<Point> points;
    const uint64_t seed = rng.Next();
    for (int i = 0; i < options_.raw; ++i) {
      Point point(p);
      int dimension = 0;
      for (Index c = 0; c < p; ++c) {
        if (encoding_.coordinates()[static_cast<size_t>(c)].kind == Kind::kFixed) {
          point[c] = 0.5;
        } else {
          point[c] =
              dimension < kSobolDimensions ? ScrambledSobol(seed, dimension, i) : rng.Uniform();
          ++dimension;
        }
      }
      points.push_back(std::move(point));
    }
    for (int i = 0; i < options_.raw / 2 && !best_trials.empty(); ++i) {
      const size_t from = static_cast<size_t>(i) % best_trials.size();
      points.push_back(Moved(best_trials[from], rng));
    }
    for (Point& point : points) encoding_.Settle(point);
    return Valued(std::move(points));
  }

  // Improves until neither the gradient nor a change of a listed value helps; adds what it met.
  void Improve(Candidate candidate, std::vector<Candidate>& met) const {
    for (int round = 0; round < options_.rounds; ++round) {
      const double before = candidate.value;
      if (encoding_.smooth()) Climb(candidate);
      if (encoding_.listed()) Change(candidate, met);
      if (!encoding_.smooth() || !encoding_.listed() || candidate.value < before + 1e-6) break;
    }
    met.push_back(candidate);
  }

 private:
  Point Moved(Point point, Rng& rng) const {
    constexpr double kSizes[] = {0.003, 0.03, 0.15};
    const double size = kSizes[rng.Below(3)];
    const auto varying = static_cast<double>(std::max(1, encoding_.features()));
    const double probability = std::max(0.25, 1 / varying);
    for (Index c = 0; c < point.size(); ++c) {
      const auto& coordinate = encoding_.coordinates()[static_cast<size_t>(c)];
      const double coin = rng.Uniform();
      if (coordinate.kind == Kind::kFixed) continue;
      if (coordinate.kind == Kind::kListed && !coordinate.ordered) {
        if (coin < probability) point[c] = rng.Uniform();
      } else if (coordinate.kind == Kind::kListed) {
        const double step = 1.0 / static_cast<double>(coordinate.units.size());
        if (coin < 2 * probability) point[c] = Reflect(point[c] + rng.Normal() * (size + step));
      } else if (coin < 2 * probability) {
        point[c] = Reflect(point[c] + rng.Normal() * size);
      }
    }
    return point;
  }

  std::vector<Candidate> Valued(std::vector<Point> points) const {
    constexpr size_t kBatch = 128;
    std::vector<Candidate> candidates;
    candidates.reserve(points.size());
    const auto columns = static_cast<Index>(encoding_.feature_of_column().size());
    for (size_t from = 0; from < points.size(); from += kBatch) {
      const size_t count = std::min(kBatch, points.size() - from);
      MatrixXd features(static_cast<Index>(count), columns);
      RowVectorXd row(columns);
      for (size_t i = 0; i < count; ++i) {
        encoding_.Features(points[from + i], row);
        features.row(static_cast<Index>(i)) = row;
      }
      const Promise promise = acquisition_.Values(features);
      for (size_t i = 0; i < count; ++i) {
        const double value = promise.value[static_cast<Index>(i)];
        candidates.push_back(
            {std::move(points[from + i]),
             std::isfinite(value) ? value : std::numeric_limits<double>::lowest()});
      }
    }
    return candidates;
  }

  void Climb(Candidate& candidate) const {
    std::vector<Index> moving;
    const Point settled = candidate.point;
    for (Index c = 0; c < settled.size(); ++c) {
      if (encoding_.coordinates()[static_cast<size_t>(c)].kind == Kind::kSmooth) {
        moving.push_back(c);
      }
    }
    const auto count = static_cast<Index>(moving.size());
    Point point = settled;
    RowVectorXd row(static_cast<Index>(encoding_.feature_of_column().size()));
    RowVectorXd by_column(row.size());
    const Smooth descent = [&](const VectorXd& x, VectorXd& gradient) {
      for (Index i = 0; i < count; ++i) point[moving[static_cast<size_t>(i)]] = x[i];
      encoding_.Features(point, row);
      const double value = acquisition_.ValueAndGradient(row, by_column);
      for (Index i = 0; i < count; ++i) {
        const auto c = static_cast<size_t>(moving[static_cast<size_t>(i)]);
        gradient[i] = -by_column[encoding_.coordinates()[c].column];
      }
      return -value;
    };
    VectorXd start(count);
    for (Index i = 0; i < count; ++i) start[i] = settled[moving[static_cast<size_t>(i)]];
    MinimiseOptions options;
    options.max_evaluations = options_.evaluations;
    options.gradient_tolerance = 1e-3;
    options.value_tolerance = 1e-6;
    options.first_step = 0.02;
    const Box box{VectorXd::Zero(count), VectorXd::Constant(count, 1 - 0x1p-53)};
    const Minimum found = Minimise(descent, start, box, options);
    if (!(-found.value > candidate.value)) return;
    for (Index i = 0; i < count; ++i) candidate.point[moving[static_cast<size_t>(i)]] = found.x[i];
    encoding_.Settle(candidate.point);
    candidate.value = -found.value;
  }

  // The best change of one listed value, again and again.
  void Change(Candidate& candidate, std::vector<Candidate>& met) const {
    for (int step = 0; step < kMaxSteps; ++step) {
      std::vector<Point> changed;
      for (Index c = 0; c < candidate.point.size(); ++c) {
        const auto& coordinate = encoding_.coordinates()[static_cast<size_t>(c)];
        for (const double unit : coordinate.units) {
          if (unit == candidate.point[c] || changed.size() == kMaxChanges) continue;
          changed.push_back(candidate.point);
          changed.back()[c] = unit;
          encoding_.Settle(changed.back());
        }
      }
      std::vector<Candidate> valued = Valued(std::move(changed));
      const auto best = std::min_element(valued.begin(), valued.end(), Better);
      const bool improves = best != valued.end() && best->value > candidate.value + 1e-9;
      const Candidate next = improves ? *best : candidate;
      std::move(valued.begin(), valued.end(), std::back_inserter(met));
      if (!improves) return;
      met.push_back(candidate);
      candidate = next;
    }
  }

  const Encoding& encoding_;
  const Acquisition& acquisition_;
  const SearchOptions& options_;
};

// The best ones that are apart from each other.
std::vector<Candidate> Starts(const std::vector<Candidate>& sorted, int count) {
  std::vector<Candidate> starts;
  for (const Candidate& candidate : sorted) {
    if (static_cast<int>(starts.size()) == count) break;
    const bool apart = std::all_of(starts.begin(), starts.end(), [&](const Candidate& start) {
      return (start.point - candidate.point).cwiseAbs().maxCoeff() > kApart;
    });
    if (apart) starts.push_back(candidate);
  }
  return starts;
}

}  // namespace

SearchOptions SearchOptionsFor(Index rows) {
  SearchOptions options;
  if (rows > 200) options = {256, 4, 30, 3};
  if (rows > 600) options = {128, 3, 20, 2};
  return options;
}

std::optional<Found> Search(const Encoding& encoding, const Acquisition& acquisition,
                            const std::vector<Point>& best_trials, const SearchOptions& options,
                            Rng rng, const std::function<bool(const Params&)>& is_new) {
  const Searcher searcher(encoding, acquisition, options);
  std::vector<Candidate> met = searcher.Raw(best_trials, rng);
  std::sort(met.begin(), met.end(), Better);
  for (Candidate& start : Starts(met, options.starts)) searcher.Improve(std::move(start), met);
  std::sort(met.begin(), met.end(), Better);
  for (const Candidate& candidate : met) {
    Params params = encoding.ToParams(candidate.point);
    if (!is_new(params)) continue;
    return Found{encoding.ToPoint(params), std::move(params), candidate.value};
  }
  return std::nullopt;
}

}  // namespace jizi::tuner
