#pragma once
// gaussian_process.h - exact Gaussian-process regression with a Matern-5/2 kernel and a lengthscale
// per feature: hyper-parameters of greatest posterior density, and a posterior that grows by rows.
// k(a, b) = s^2 M(r), M(r) = (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r), r^2 = sum over columns of
// ((a_c - b_c) / l_f(c))^2; observations have the noise variance t^2 on top; the mean is 0.
// Shapes: X n x D (encoding.h), y n, standardised, larger is better; queries m x D.
// Priors: log l_f ~ Normal(m + log(d) / 2, s) for d features (dimension-scaled, Hvarfner et al.
// 2024), log s^2 and log t^2 normal; the constants stand in GpPriors.
// Fails: never. A kernel matrix that is not positive definite gets jitter, ten times more at each
// try from kJitter on, until it is: rows that repeat with t^2 at its lower bound.
// Threads: values; const members are safe from any thread.
// Cost: an evaluation of the density n^3; Posterior n^3 / 3, Append n^2, Variances m n^2.
// Source: Rasmussen & Williams 2006, algorithm 2.1 and equation 5.9.

#include <Eigen/Core>
#include <vector>

namespace jizi::tuner {

struct Hyperparameters {
  Eigen::VectorXd log_lengthscale;  // One per feature.
  double log_signal = 0;            // Of the variance s^2.
  double log_noise = 0;             // Of the variance t^2.

  static constexpr double kMinNoise = 1e-6;
};

struct GpPriors {
  double lengthscale_location = -1;  // Of log l, before log(d) / 2 is added.
  double lengthscale_spread = 1;
  double signal_location = 0;  // Of log s^2: y is standardised.
  double signal_spread = 1;
  double noise_location = -6;  // Of log t^2.
  double noise_spread = 2;
};

struct GpData {
  Eigen::MatrixXd x;
  Eigen::VectorXd y;
  std::vector<int> feature_of_column;
  int features = 0;
};

// Minus the log of the posterior density of the hyper-parameters (up to a constant) and its
// gradient, in the order log l, log s^2, log t^2. Infinite where K has no factor.
double NegativeLogDensity(const GpData& data, const GpPriors& priors, const Eigen::VectorXd& logs,
                          Eigen::VectorXd& gradient);

Hyperparameters DefaultHyperparameters(const GpPriors& priors, int features);

// The best of L-BFGS from each start. Cost: evaluations x n^3.
Hyperparameters FitHyperparameters(const GpData& data, const GpPriors& priors,
                                   const std::vector<Hyperparameters>& starts,
                                   int evaluations_per_start);

class Posterior {
 public:
  static constexpr double kJitter = 1e-8;  // Of s^2.

  Posterior() = default;
  Posterior(const Eigen::MatrixXd& x, Hyperparameters hyper,
            const std::vector<int>& feature_of_column);

  Eigen::Index rows() const { return rows_; }
  const Hyperparameters& hyper() const { return hyper_; }
  double signal() const { return signal_; }
  double noise() const { return noise_; }

  void Append(const Eigen::RowVectorXd& x);
  void Truncate(Eigen::Index rows) { rows_ = rows; }  // Forget the rows appended last.

  // L^-1 y of the first y.size() rows, and L^-T w of all rows: the weights are the two in turn.
  Eigen::VectorXd Whiten(const Eigen::VectorXd& y) const;
  Eigen::MatrixXd Weights(const Eigen::MatrixXd& whitened) const;
  // L w: the values that whitened residuals stand for.
  Eigen::MatrixXd Drawn(const Eigen::MatrixXd& whitened) const;

  // Between rows and queries: rows() x m.
  Eigen::MatrixXd Covariance(const Eigen::MatrixXd& queries) const;
  // Of the latent function at the queries with this covariance; at least kMinVariance s^2.
  Eigen::VectorXd Variances(const Eigen::MatrixXd& covariance) const;
  static constexpr double kMinVariance = 1e-12;

  // At one query: the covariance k, K^-1 k, and dk/dx, rows() x D.
  struct Local {
    Eigen::VectorXd covariance;
    Eigen::VectorXd solved;
    Eigen::MatrixXd slopes;
    double variance = 0;
  };
  Local At(const Eigen::RowVectorXd& query) const;

 private:
  void Reserve(Eigen::Index rows);
  Eigen::MatrixXd Scaled(const Eigen::MatrixXd& x) const;

  Hyperparameters hyper_;
  double signal_ = 1;
  double noise_ = 0;
  double jitter_ = 0;
  Eigen::RowVectorXd inverse_lengthscale_;  // Per column.
  Eigen::Index rows_ = 0;
  Eigen::MatrixXd scaled_;  // Capacity x D.
  Eigen::VectorXd norms_;
  Eigen::MatrixXd factor_;  // Capacity x capacity, lower; the capacity is even (see Reserve).
};

}  // namespace jizi::tuner
