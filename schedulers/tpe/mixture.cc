#include "schedulers/tpe/mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "schedulers/model/quantile.h"

namespace jizi::tuner {
namespace {

using Eigen::Index;
using Kind = Encoding::Kind;

constexpr double kWidth = 0.2;  // Of the unit interval, for one point; falls with their number.
constexpr size_t kFullWeight = 25;
constexpr double kLogRootTwoPi = 0.91893853320467274178;

double Cdf(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

double LogSumExp(const std::vector<double>& values) {
  const double most = *std::max_element(values.begin(), values.end());
  if (!std::isfinite(most)) return most;
  double sum = 0;
  for (const double value : values) sum += std::exp(value - most);
  return most + std::log(sum);
}

}  // namespace

Mixture::Mixture(const Encoding& encoding, std::vector<size_t> group, std::vector<Point> points)
    : encoding_(encoding), group_(std::move(group)), points_(std::move(points)) {
  const size_t n = points_.size();
  const auto count = static_cast<double>(n);
  double sum = 1;
  std::vector<double> weights(n, 1.0);
  for (size_t i = 0; n > kFullWeight && i < n - kFullWeight; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(n - kFullWeight);
    weights[i] = std::lerp(1 / count, 1.0, share);
  }
  for (const double weight : weights) sum += weight;
  for (const double weight : weights) log_weights_.push_back(std::log(weight / sum));
  log_weights_.push_back(-std::log(sum));
  const double power = -1.0 / (static_cast<double>(group_.size()) + 4);
  width_ = kWidth * std::pow(std::max(count, 1.0), power);
  width_ = std::max(width_, 1 / std::min(100.0, 2 + count));
}

double Mixture::Bandwidth(size_t place) const {
  const auto& coordinate = encoding_.coordinates()[place];
  if (coordinate.kind != Kind::kListed) return width_;
  return std::max(width_, 0.5 / static_cast<double>(coordinate.units.size()));
}

// The probabilities of a listed parameter's values in the component of a point.
std::vector<double> Mixture::LevelShares(size_t place, double centre) const {
  const auto& coordinate = encoding_.coordinates()[place];
  const size_t levels = coordinate.units.size();
  std::vector<double> shares(levels);
  double sum = 0;
  for (size_t level = 0; level < levels; ++level) {
    if (coordinate.ordered) {
      const double at = coordinate.positions[level];
      const double own = coordinate.positions[encoding_.LevelOf(place, centre)];
      const double z = (at - own) / Bandwidth(place);
      shares[level] = std::exp(-0.5 * z * z);
    } else {
      // As a count of 1 beside the prior, which is one point's worth over all points.
      shares[level] = 1 / static_cast<double>((points_.size() + 1) * levels) +
                      (level == encoding_.LevelOf(place, centre) ? 1.0 : 0.0);
    }
    sum += shares[level];
  }
  for (double& share : shares) share /= sum;
  return shares;
}

double Mixture::LogComponent(size_t component, const Point& point) const {
  double density = 0;
  for (const size_t place : group_) {
    const auto& coordinate = encoding_.coordinates()[place];
    const double unit = point[static_cast<Index>(place)];
    if (coordinate.kind == Kind::kFixed) continue;
    if (component == points_.size()) {
      if (coordinate.kind == Kind::kListed) {
        density -= std::log(static_cast<double>(coordinate.units.size()));
      }
      continue;
    }
    const double centre = points_[component][static_cast<Index>(place)];
    if (coordinate.kind == Kind::kListed) {
      density += std::log(LevelShares(place, centre)[encoding_.LevelOf(place, unit)]);
      continue;
    }
    const double width = Bandwidth(place);
    const double z = (unit - centre) / width;
    const double inside = Cdf((1 - centre) / width) - Cdf(-centre / width);
    density += -0.5 * z * z - kLogRootTwoPi - std::log(width * inside);
  }
  return density;
}

double Mixture::LogDensity(const Point& point) const {
  std::vector<double> logs(log_weights_.size());
  for (size_t i = 0; i < logs.size(); ++i) logs[i] = log_weights_[i] + LogComponent(i, point);
  return LogSumExp(logs);
}

void Mixture::Draw(Rng& rng, Point& point) const {
  double coin = rng.Uniform();
  size_t component = 0;
  while (component < points_.size() && (coin -= std::exp(log_weights_[component])) >= 0) {
    ++component;
  }
  for (const size_t place : group_) {
    const auto& coordinate = encoding_.coordinates()[place];
    double& unit = point[static_cast<Index>(place)];
    unit = rng.Uniform();
    if (coordinate.kind == Kind::kFixed) continue;
    if (component == points_.size()) {
      if (coordinate.kind == Kind::kListed) {
        unit = coordinate
                   .units[static_cast<size_t>(unit * static_cast<double>(coordinate.units.size()))];
      }
      continue;
    }
    const double centre = points_[component][static_cast<Index>(place)];
    if (coordinate.kind == Kind::kListed) {
      const std::vector<double> shares = LevelShares(place, centre);
      size_t level = 0;
      while (level + 1 < shares.size() && (unit -= shares[level]) >= 0) ++level;
      unit = coordinate.units[level];
      continue;
    }
    const double width = Bandwidth(place);
    const double low = Cdf(-centre / width);
    const double high = Cdf((1 - centre) / width);
    unit =
        std::clamp(centre + width * NormalQuantile(std::lerp(low, high, unit)), 0.0, 1 - 0x1p-53);
  }
}

}  // namespace jizi::tuner
