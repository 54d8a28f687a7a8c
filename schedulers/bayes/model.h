#pragma once
// model.h - the surrogate of a study, kept from suggestion to suggestion: hyper-parameters are
// fitted again when the rows have grown by a tenth, from fixed starts and the last optimum; in
// between each new row is appended to the factor. The chain of fits is a function of the rows in
// their order alone: one that is brought up to date and one that is made anew are the same to the
// last bit.
// Rows beyond kMaxRows: at a refit the model keeps the best half of kMaxRows and the newest of the
// rest, until the next. A fit looks at no more than kMaxFitRows rows, the best and every k-th.
// Infeasible rows are no rows of the objective's model: a label for them would bend it where the
// best may be; a suggestion takes them for what the model predicts there. From the first one on a
// second regression says where a point is feasible: 0 where it was, -2 where not, so that a point
// far from all of them counts as feasible. Fails: never.   Threads: a value, not shared. Cost:
// Update n^2 a row, n^3 / 3 at a refit, and about 100 evaluations of kMaxFitRows^3 there.

#include <optional>
#include <vector>

#include "schedulers/bayes/encoding.h"
#include "schedulers/bayes/gaussian_process.h"
#include "schedulers/bayes/history.h"
#include "schedulers/bayes/output.h"

namespace jizi::tuner {

struct ModelSettings {
  Warp warp = Warp::kPower;
  GpPriors priors;
  size_t first_fit = 4;  // Rows.
  double refit_growth = 0.1;
};

class Model {
 public:
  static constexpr size_t kMaxRows = 2'000;
  static constexpr size_t kMaxFitRows = 400;
  // A point is feasible where the regression says more than this.
  static constexpr double kFeasibleAbove = -1;

  // At least `first_fit` rows, one of them feasible.
  void Update(const Study& study, const std::vector<LearntRow>& learnt, const Encoding& encoding,
              const ModelSettings& settings);

  Posterior& posterior() { return posterior_; }
  const Eigen::VectorXd& labels() const { return labels_; }     // Of the posterior's rows.
  const std::vector<LearntRow>& rows() const { return told_; }  // Likewise: the feasible ones.
  // Regression on feasibility, if there is one, and its labels.
  const Posterior* feasibility() const { return feasibility_ ? &*feasibility_ : nullptr; }
  const Eigen::VectorXd& feasibility_labels() const { return feasibility_labels_; }
  std::vector<TrialId> Infeasible() const;
  size_t left_out() const { return left_out_; }

 private:
  void Refit(const Study& study, const std::vector<LearntRow>& learnt, size_t count,
             const Encoding& encoding, const ModelSettings& settings);
  void Build(const Encoding& encoding, const Study& study);

  std::vector<LearntRow> seen_;
  size_t next_fit_ = 0;
  std::optional<Hyperparameters> hyper_;
  std::optional<Hyperparameters> feasibility_hyper_;
  std::vector<LearntRow> told_;
  std::vector<LearntRow> judged_;  // All: rows of the feasibility's regression.
  size_t left_out_ = 0;
  bool stale_ = false;  // Fitted, but the factor is not made yet.
  Posterior posterior_;
  std::optional<Posterior> feasibility_;
  Eigen::VectorXd labels_;
  Eigen::VectorXd feasibility_labels_;
};

}  // namespace jizi::tuner
