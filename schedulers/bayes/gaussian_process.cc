#include "schedulers/bayes/gaussian_process.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>

#include "schedulers/bayes/minimise.h"

namespace jizi::tuner {
namespace {

using Eigen::ArrayXXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

struct Bounds {
  double low;
  double high;
};
constexpr Bounds kLogLengthscale = {-4.6, 6.9};  // 0.01 to 1000.
constexpr Bounds kLogSignal = {-4.6, 4.6};
constexpr Bounds kLogNoise = {-13.815510557964274, 2.3};

RowVectorXd PerColumn(const VectorXd& log_lengthscale, const std::vector<int>& feature_of_column) {
  RowVectorXd inverse(static_cast<Index>(feature_of_column.size()));
  for (Index c = 0; c < inverse.size(); ++c) {
    inverse[c] = std::exp(-log_lengthscale[feature_of_column[static_cast<size_t>(c)]]);
  }
  return inverse;
}

// r^2 between all rows of a and of b, both scaled by their lengthscales.
MatrixXd SquaredDistances(const MatrixXd& a, const VectorXd& a_norms, const MatrixXd& b) {
  MatrixXd squared = (-2.0 * a) * b.transpose();
  squared.colwise() += a_norms;
  squared.rowwise() += b.rowwise().squaredNorm().transpose();
  return squared.cwiseMax(0.0);
}

struct Kernel {
  MatrixXd value;  // M(r).
  MatrixXd slope;  // -2 dM / d(r^2) = 5/3 (1 + sqrt(5) r) exp(-sqrt(5) r).
};

Kernel Matern(const MatrixXd& squared) {
  const ArrayXXd scaled = (5.0 * squared.array()).sqrt();
  const ArrayXXd decay = (-scaled).exp();
  return {((1 + scaled + scaled.square() / 3) * decay).matrix(),
          ((5.0 / 3.0) * (1 + scaled) * decay).matrix()};
}

MatrixXd MaternValue(const MatrixXd& squared) {
  const ArrayXXd scaled = (5.0 * squared.array()).sqrt();
  return ((1 + scaled + scaled.square() / 3) * (-scaled).exp()).matrix();
}

// -log density of a normal and its slope, added to the value and the gradient.
void AddNormal(double x, double location, double spread, double& value, double& slope) {
  const double z = (x - location) / spread;
  value += 0.5 * z * z;
  slope += z / spread;
}

VectorXd Pack(const Hyperparameters& hyper) {
  VectorXd logs(hyper.log_lengthscale.size() + 2);
  logs << hyper.log_lengthscale, hyper.log_signal, hyper.log_noise;
  return logs;
}

Hyperparameters Unpack(const VectorXd& logs) {
  const Index features = logs.size() - 2;
  return {logs.head(features), logs[features], logs[features + 1]};
}

}  // namespace

double NegativeLogDensity(const GpData& data, const GpPriors& priors, const VectorXd& logs,
                          VectorXd& gradient) {
  const Index n = data.x.rows();
  const Index features = data.features;
  const double signal = std::exp(logs[features]);
  const double noise = std::exp(logs[features + 1]);
  const RowVectorXd inverse = PerColumn(logs.head(features), data.feature_of_column);
  const MatrixXd z = data.x.array().rowwise() * inverse.array();
  const Kernel kernel = Matern(SquaredDistances(z, z.rowwise().squaredNorm(), z));
  MatrixXd covariance = signal * kernel.value;
  covariance.diagonal().array() += noise + Posterior::kJitter * signal;
  const Eigen::LLT<MatrixXd> factor(covariance);
  gradient.setZero(logs.size());
  if (factor.info() != Eigen::Success) return std::numeric_limits<double>::infinity();
  const VectorXd weights = factor.solve(data.y);
  double value = 0.5 * data.y.dot(weights) +
                 factor.matrixLLT().diagonal().array().log().sum();  // Half the determinant's log.
  // W = K^-1 - weights weights^T; d value / d p = tr(W dK/dp) / 2.
  MatrixXd lower_inverse = MatrixXd::Identity(n, n);
  factor.matrixL().solveInPlace(lower_inverse);
  MatrixXd w = MatrixXd::Zero(n, n);
  w.selfadjointView<Eigen::Lower>().rankUpdate(lower_inverse.transpose());
  w.selfadjointView<Eigen::Lower>().rankUpdate(weights, -1.0);
  w.triangularView<Eigen::StrictlyUpper>() = w.transpose();
  const double trace = w.trace();
  gradient[features] =
      0.5 * signal * (w.cwiseProduct(kernel.value).sum() + Posterior::kJitter * trace);
  gradient[features + 1] = 0.5 * noise * trace;
  // sum_ab G_ab (z_a - z_b)^2 = 2 z^2 . (G 1) - 2 z . G z for symmetric G.
  const MatrixXd g = signal * w.cwiseProduct(kernel.slope);
  const VectorXd sums = g.rowwise().sum();
  const MatrixXd gz = g * z;
  for (Index c = 0; c < z.cols(); ++c) {
    const double total = 2 * (z.col(c).cwiseAbs2().dot(sums) - z.col(c).dot(gz.col(c)));
    gradient[data.feature_of_column[static_cast<size_t>(c)]] += 0.5 * total;
  }
  const double location =
      priors.lengthscale_location + 0.5 * std::log(std::max<double>(1, data.features));
  for (Index f = 0; f < features; ++f) {
    AddNormal(logs[f], location, priors.lengthscale_spread, value, gradient[f]);
  }
  AddNormal(logs[features], priors.signal_location, priors.signal_spread, value,
            gradient[features]);
  AddNormal(logs[features + 1], priors.noise_location, priors.noise_spread, value,
            gradient[features + 1]);
  return value;
}

Hyperparameters DefaultHyperparameters(const GpPriors& priors, int features) {
  const double mode = priors.lengthscale_location + 0.5 * std::log(std::max(1, features));
  return {VectorXd::Constant(features, std::clamp(mode, -0.7, 1.5)), priors.signal_location,
          std::clamp(priors.noise_location, kLogNoise.low, kLogNoise.high)};
}

Hyperparameters FitHyperparameters(const GpData& data, const GpPriors& priors,
                                   const std::vector<Hyperparameters>& starts,
                                   int evaluations_per_start) {
  const Index features = data.features;
  Box box{VectorXd::Constant(features + 2, kLogLengthscale.low),
          VectorXd::Constant(features + 2, kLogLengthscale.high)};
  box.low[features] = kLogSignal.low;
  box.high[features] = kLogSignal.high;
  box.low[features + 1] = kLogNoise.low;
  box.high[features + 1] = kLogNoise.high;
  const Smooth density = [&](const VectorXd& logs, VectorXd& gradient) {
    return NegativeLogDensity(data, priors, logs, gradient);
  };
  MinimiseOptions options;
  options.max_evaluations = evaluations_per_start;
  options.gradient_tolerance = 1e-2;
  options.value_tolerance = 1e-5;
  options.first_step = 0.5;
  Minimum best;
  best.value = std::numeric_limits<double>::infinity();
  best.x = Pack(starts.front()).cwiseMax(box.low).cwiseMin(box.high);
  for (const Hyperparameters& start : starts) {
    const Minimum found = Minimise(density, Pack(start), box, options);
    if (found.value < best.value) best = found;
  }
  return Unpack(best.x);
}

Posterior::Posterior(const MatrixXd& x, Hyperparameters hyper,
                     const std::vector<int>& feature_of_column)
    : hyper_(std::move(hyper)),
      signal_(std::exp(hyper_.log_signal)),
      noise_(std::exp(hyper_.log_noise)),
      jitter_(kJitter * signal_),
      inverse_lengthscale_(PerColumn(hyper_.log_lengthscale, feature_of_column)) {
  const Index n = x.rows();
  Reserve(n);
  rows_ = n;
  scaled_.topRows(n) = Scaled(x);
  norms_.head(n) = scaled_.topRows(n).rowwise().squaredNorm();
  const MatrixXd covariance =
      signal_ *
      MaternValue(SquaredDistances(scaled_.topRows(n), norms_.head(n), scaled_.topRows(n)));
  for (;; jitter_ *= 10) {
    MatrixXd noisy = covariance;
    noisy.diagonal().array() += noise_ + jitter_;
    const Eigen::LLT<Eigen::Ref<MatrixXd>> factor(noisy);
    if (factor.info() != Eigen::Success) continue;
    factor_.topLeftCorner(n, n).triangularView<Eigen::Lower>() = noisy;
    break;
  }
}

// An even capacity starts every column at the same alignment, whatever the capacity: sums are then
// in the same order, and a posterior that grew equals one that was made again.
void Posterior::Reserve(Index rows) {
  if (rows <= factor_.rows()) return;
  const Index capacity = (rows + rows / 4 + 17) / 2 * 2;
  MatrixXd factor = MatrixXd::Zero(capacity, capacity);
  MatrixXd scaled = MatrixXd::Zero(capacity, inverse_lengthscale_.size());
  VectorXd norms = VectorXd::Zero(capacity);
  if (rows_ > 0) {
    factor.topLeftCorner(rows_, rows_) = factor_.topLeftCorner(rows_, rows_);
    scaled.topRows(rows_) = scaled_.topRows(rows_);
    norms.head(rows_) = norms_.head(rows_);
  }
  factor_ = std::move(factor);
  scaled_ = std::move(scaled);
  norms_ = std::move(norms);
}

MatrixXd Posterior::Scaled(const MatrixXd& x) const {
  return x.array().rowwise() * inverse_lengthscale_.array();
}

void Posterior::Append(const RowVectorXd& x) {
  Reserve(rows_ + 1);
  const VectorXd covariance = Covariance(x).col(0);
  VectorXd row = covariance;
  factor_.topLeftCorner(rows_, rows_).triangularView<Eigen::Lower>().solveInPlace(row);
  const double left = signal_ + noise_ + jitter_ - row.squaredNorm();
  factor_.row(rows_).head(rows_) = row.transpose();
  factor_(rows_, rows_) = std::sqrt(std::max(left, noise_ + jitter_));
  scaled_.row(rows_) = x.cwiseProduct(inverse_lengthscale_);
  norms_[rows_] = scaled_.row(rows_).squaredNorm();
  ++rows_;
}

VectorXd Posterior::Whiten(const VectorXd& y) const {
  const Index n = y.size();
  return factor_.topLeftCorner(n, n).triangularView<Eigen::Lower>().solve(y);
}

MatrixXd Posterior::Weights(const MatrixXd& whitened) const {
  return factor_.topLeftCorner(rows_, rows_)
      .triangularView<Eigen::Lower>()
      .transpose()
      .solve(whitened);
}

MatrixXd Posterior::Drawn(const MatrixXd& whitened) const {
  return factor_.topLeftCorner(rows_, rows_).triangularView<Eigen::Lower>() * whitened;
}

MatrixXd Posterior::Covariance(const MatrixXd& queries) const {
  return signal_ *
         MaternValue(SquaredDistances(scaled_.topRows(rows_), norms_.head(rows_), Scaled(queries)));
}

VectorXd Posterior::Variances(const MatrixXd& covariance) const {
  const MatrixXd half =
      factor_.topLeftCorner(rows_, rows_).triangularView<Eigen::Lower>().solve(covariance);
  return (signal_ - half.colwise().squaredNorm().transpose().array())
      .max(kMinVariance * signal_)
      .matrix();
}

Posterior::Local Posterior::At(const RowVectorXd& query) const {
  const MatrixXd scaled = Scaled(query);
  const auto x = scaled_.topRows(rows_);
  const Kernel kernel = Matern(SquaredDistances(x, norms_.head(rows_), scaled));
  Local local;
  local.covariance = signal_ * kernel.value.col(0);
  const auto lower = factor_.topLeftCorner(rows_, rows_).triangularView<Eigen::Lower>();
  VectorXd solved = local.covariance;
  lower.solveInPlace(solved);
  local.variance = std::max(signal_ - solved.squaredNorm(), kMinVariance * signal_);
  lower.transpose().solveInPlace(solved);
  local.solved = std::move(solved);
  // dk/dq_c = s^2 slope (x_c - q_c) / l_c^2.
  local.slopes = (x.rowwise() - scaled.row(0)).array().rowwise() * inverse_lengthscale_.array();
  local.slopes.array().colwise() *= signal_ * kernel.slope.col(0).array();
  return local;
}

}  // namespace jizi::tuner
