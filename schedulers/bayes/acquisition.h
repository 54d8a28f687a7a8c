#pragma once
// acquisition.h - how much a point promises: the logarithm of the expected improvement, averaged
// over what the pending trials may bring, plus the logarithm of the probability that it is
// feasible.
// Shapes: queries m x D -> m values; one query -> its value and gradient by column.
// - Pending points are rows of the posterior without a value: each of `draws` fantasies draws their
//   values together (whitened residuals that are standard normal, from a scrambled Sobol sequence)
//   and has an incumbent of its own. The variance knows of them whatever they bring.
// - The incumbent is the best posterior mean at a row, not the best value: with noise, the luckiest
//   draw is not it (LogNEI's plug-in form).
// Fails: never; values are finite for finite queries.   Threads: const members are safe.
// Cost: Values m n^2; ValueAndGradient 2 n^2.
// Source: Ament et al. 2023 (LogEI); Snoek et al. 2012 (fantasies).

#include <Eigen/Core>
#include <memory>

#include "schedulers/bayes/gaussian_process.h"

namespace jizi::tuner {

// log of E[max(Z + z, 0)] for Z standard normal, accurate for every finite z, and its slope.
struct LogValue {
  double value = 0;
  double slope = 0;
};
LogValue LogExpectedImprovement(double z);

// log of the normal distribution function, and its slope.
LogValue LogNormalProbability(double z);

struct Promise {
  Eigen::VectorXd mean;      // Averaged over the fantasies.
  Eigen::VectorXd variance;  // Of the latent function.
  Eigen::VectorXd value;
};

class Acquisition {
 public:
  // `labels` are those of the first rows of the posterior; then come `silent` rows, which have none
  // and never will (they are taken for what the model predicts, so that nothing is left to learn
  // there), and the rest are pending.
  Acquisition(const Posterior& posterior, const Eigen::VectorXd& labels, Eigen::Index silent,
              uint64_t draw_seed);
  // A point is feasible where this regression, with noise, is above `least`.
  void SetFeasibility(const Posterior& posterior, const Eigen::VectorXd& labels, double least);

  Promise Values(const Eigen::MatrixXd& queries) const;
  double ValueAndGradient(const Eigen::RowVectorXd& query, Eigen::RowVectorXd& gradient) const;

  double incumbent() const { return incumbents_.mean(); }
  // Of the labelled rows, averaged over the fantasies.
  const Eigen::VectorXd& row_means() const { return row_means_; }

  static constexpr int kDraws = 32;

 private:
  const Posterior* posterior_;
  Eigen::MatrixXd weights_;     // rows x draws.
  Eigen::VectorXd incumbents_;  // draws.
  Eigen::VectorXd row_means_;
  const Posterior* feasibility_ = nullptr;
  Eigen::VectorXd feasibility_weights_;
  double least_feasible_ = 0;
};

}  // namespace jizi::tuner
