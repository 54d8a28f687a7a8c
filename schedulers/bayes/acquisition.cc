#include "schedulers/bayes/acquisition.h"

#include <cmath>

#include "schedulers/brute_force/sobol.h"
#include "schedulers/model/quantile.h"

namespace jizi::tuner {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

constexpr double kHalfLogTwoPi = 0.91893853320467274178;
constexpr double kRootHalf = 0.70710678118654752440;
constexpr double kTail = -5;

// For x >= 5: Mills' ratio (1 - cdf) / density = 1 / (x + c); the continued fraction gives c.
double MillsCorrection(double x) {
  double c = 0;
  for (int i = x > 20 ? 12 : 60; i >= 1; --i) c = i / (x + c);
  return c;
}

double LogDensity(double z) {
  return -0.5 * z * z - kHalfLogTwoPi;
}

}  // namespace

LogValue LogExpectedImprovement(double z) {
  if (z > kTail) {
    const double probability = 0.5 * std::erfc(-z * kRootHalf);
    const double expected = std::exp(LogDensity(z)) + z * probability;
    return {std::log(expected), probability / expected};
  }
  // density (1 - x Mills) = density c / (x + c).
  const double x = -z;
  const double c = MillsCorrection(x);
  return {LogDensity(z) + std::log(c / (x + c)), 1 / c};
}

LogValue LogNormalProbability(double z) {
  if (z > kTail) {
    const double probability = 0.5 * std::erfc(-z * kRootHalf);
    return {std::log(probability), std::exp(LogDensity(z)) / probability};
  }
  const double c = MillsCorrection(-z);
  return {LogDensity(z) - std::log(c - z), c - z};
}

Acquisition::Acquisition(const Posterior& posterior, const VectorXd& labels, Index silent,
                         uint64_t draw_seed)
    : posterior_(&posterior) {
  const Index n = labels.size();
  const Index pending = posterior.rows() - n - silent;
  const Index draws = pending > 0 ? kDraws : 1;
  MatrixXd whitened = MatrixXd::Zero(posterior.rows(), draws);
  whitened.topRows(n) = posterior.Whiten(labels).replicate(1, draws);
  for (Index p = 0; p < pending; ++p) {
    for (Index draw = 0; draw < draws; ++draw) {
      const int dimension = static_cast<int>(p % kSobolDimensions);
      const uint64_t seed = draw_seed + static_cast<uint64_t>(p / kSobolDimensions);
      whitened(n + silent + p, draw) = NormalQuantile(ScrambledSobol(seed, dimension, draw));
    }
  }
  weights_ = posterior.Weights(whitened);
  // K_noisy w = y, so the latent mean at the rows is y - t^2 w; y of the pending ones is drawn.
  MatrixXd means = -posterior.noise() * weights_;
  means.topRows(n).colwise() += labels;
  incumbents_ = means.topRows(n).colwise().maxCoeff();
  if (pending > 0) {
    means.bottomRows(pending) += posterior.Drawn(whitened).bottomRows(pending);
    incumbents_ = incumbents_.cwiseMax(means.bottomRows(pending).colwise().maxCoeff().transpose());
  }
  row_means_ = means.topRows(n).rowwise().mean();
}

void Acquisition::SetFeasibility(const Posterior& posterior, const VectorXd& labels, double least) {
  feasibility_ = &posterior;
  least_feasible_ = least;
  feasibility_weights_ = posterior.Weights(posterior.Whiten(labels));
}

Promise Acquisition::Values(const MatrixXd& queries) const {
  const MatrixXd covariance = posterior_->Covariance(queries);
  const MatrixXd means = covariance.transpose() * weights_;
  Promise promise{means.rowwise().mean(), posterior_->Variances(covariance),
                  VectorXd(queries.rows())};
  for (Index q = 0; q < queries.rows(); ++q) {
    const double deviation = std::sqrt(promise.variance[q]);
    double best = -std::numeric_limits<double>::infinity();
    double sum = 0;
    for (Index draw = 0; draw < means.cols(); ++draw) {
      const double value =
          LogExpectedImprovement((means(q, draw) - incumbents_[draw]) / deviation).value;
      if (value > best) {
        sum = sum * std::exp(best - value) + 1;
        best = value;
      } else {
        sum += std::exp(value - best);
      }
    }
    promise.value[q] =
        std::log(deviation) + best + std::log(sum / static_cast<double>(means.cols()));
  }
  if (feasibility_ == nullptr) return promise;
  const MatrixXd feasible = feasibility_->Covariance(queries);
  const VectorXd mean = feasible.transpose() * feasibility_weights_;
  const VectorXd variance = feasibility_->Variances(feasible);
  for (Index q = 0; q < queries.rows(); ++q) {
    const double deviation = std::sqrt(variance[q] + feasibility_->noise());
    promise.value[q] += LogNormalProbability((mean[q] - least_feasible_) / deviation).value;
  }
  return promise;
}

double Acquisition::ValueAndGradient(const RowVectorXd& query, RowVectorXd& gradient) const {
  const Posterior::Local local = posterior_->At(query);
  const RowVectorXd means = local.covariance.transpose() * weights_;
  const double deviation = std::sqrt(local.variance);
  const Index draws = means.size();
  VectorXd values(draws), slopes(draws), zs(draws);
  for (Index draw = 0; draw < draws; ++draw) {
    zs[draw] = (means[draw] - incumbents_[draw]) / deviation;
    const LogValue log_value = LogExpectedImprovement(zs[draw]);
    values[draw] = log_value.value;
    slopes[draw] = log_value.slope;
  }
  const double best = values.maxCoeff();
  VectorXd shares = (values.array() - best).exp();
  const double sum = shares.sum();
  shares /= sum;
  double value = std::log(deviation) + best + std::log(sum / static_cast<double>(draws));
  // d value = sum share (slope / deviation) d mean + (1 - sum share slope z) / deviation d
  // deviation
  const VectorXd by_mean = shares.cwiseProduct(slopes) / deviation;
  const double by_deviation = (1 - shares.cwiseProduct(slopes).cwiseProduct(zs).sum()) / deviation;
  // d variance = -2 (K^-1 k) . dk; the floor of the variance has no slope.
  const double by_variance = by_deviation / (2 * deviation);
  const bool floor = local.variance <= Posterior::kMinVariance * posterior_->signal();
  VectorXd by_covariance = weights_ * by_mean;
  if (!floor) by_covariance -= 2 * by_variance * local.solved;
  gradient = by_covariance.transpose() * local.slopes;
  if (feasibility_ == nullptr) return value;
  const Posterior::Local feasible = feasibility_->At(query);
  const double variance = feasible.variance + feasibility_->noise();
  const double spread = std::sqrt(variance);
  const double z = (feasible.covariance.dot(feasibility_weights_) - least_feasible_) / spread;
  const LogValue probability = LogNormalProbability(z);
  value += probability.value;
  const VectorXd direction =
      (probability.slope / spread) * (feasibility_weights_ + (z / spread) * feasible.solved);
  gradient += direction.transpose() * feasible.slopes;
  return value;
}

}  // namespace jizi::tuner
