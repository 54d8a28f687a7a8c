#include "schedulers/bayes/model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace jizi::tuner {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

constexpr int kEvaluations = 60;      // Of the density, from each start of a first fit.
constexpr int kWarmEvaluations = 25;  // With a start from the last fit.
constexpr size_t kFewRows = 60;       // With fewer all starts are tried at each fit.

RowVectorXd FeaturesOf(const Study& study, TrialId trial, const Encoding& encoding) {
  RowVectorXd row(static_cast<Index>(encoding.feature_of_column().size()));
  encoding.Features(encoding.ToPoint(study.Find(trial)->params), row);
  return row;
}

MatrixXd FeaturesOf(const Study& study, const std::vector<LearntRow>& rows,
                    const Encoding& encoding) {
  MatrixXd features(static_cast<Index>(rows.size()),
                    static_cast<Index>(encoding.feature_of_column().size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    features.row(static_cast<Index>(i)) = FeaturesOf(study, rows[i].trial, encoding);
  }
  return features;
}

VectorXd FeasibilityLabels(const std::vector<LearntRow>& rows) {
  VectorXd labels(static_cast<Index>(rows.size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    labels[static_cast<Index>(i)] = rows[i].feasible ? 0 : 2 * Model::kFeasibleAbove;
  }
  return labels;
}

// Whether a point is feasible has hardly any noise: an edge is sharp, not blurred.
GpPriors FeasibilityPriors(GpPriors priors) {
  priors.noise_location = -7;
  priors.noise_spread = 0.5;
  return priors;
}

std::vector<LearntRow> Feasible(const std::vector<LearntRow>& rows) {
  std::vector<LearntRow> feasible;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(feasible),
               [](const LearntRow& row) { return row.feasible; });
  return feasible;
}

// In their order: the `best` with the largest labels, and as many of the others as leave `most`.
std::vector<size_t> Chosen(const VectorXd& labels, size_t best, size_t most, bool newest) {
  const auto n = static_cast<size_t>(labels.size());
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  if (n <= most) return order;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const double first = labels[static_cast<Index>(a)], second = labels[static_cast<Index>(b)];
    return first != second ? first > second : a < b;
  });
  std::vector<size_t> chosen(order.begin(), order.begin() + static_cast<ptrdiff_t>(best));
  std::vector<size_t> others(order.begin() + static_cast<ptrdiff_t>(best), order.end());
  std::sort(others.begin(), others.end());
  const size_t wanted = most - best;
  for (size_t i = 0; i < wanted; ++i) {
    chosen.push_back(newest ? others[others.size() - wanted + i]
                            : others[i * others.size() / wanted]);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

Hyperparameters Fit(const MatrixXd& x, const VectorXd& y, const Encoding& encoding,
                    const GpPriors& priors, const std::optional<Hyperparameters>& last) {
  const std::vector<size_t> chosen = Chosen(y, Model::kMaxFitRows / 4, Model::kMaxFitRows, false);
  GpData data;
  data.x.resize(static_cast<Index>(chosen.size()), x.cols());
  data.y.resize(static_cast<Index>(chosen.size()));
  for (size_t i = 0; i < chosen.size(); ++i) {
    data.x.row(static_cast<Index>(i)) = x.row(static_cast<Index>(chosen[i]));
    data.y[static_cast<Index>(i)] = y[static_cast<Index>(chosen[i])];
  }
  data.feature_of_column = encoding.feature_of_column();
  data.features = encoding.features();
  std::vector<Hyperparameters> starts;
  const bool warm = last.has_value();
  if (warm) starts.push_back(*last);
  if (!warm || chosen.size() < kFewRows) {
    Hyperparameters start = DefaultHyperparameters(priors, data.features);
    starts.push_back(start);
    start.log_lengthscale.setConstant(-1.2);
    start.log_noise = -2;
    starts.push_back(start);
  }
  return FitHyperparameters(data, priors, starts, warm ? kWarmEvaluations : kEvaluations);
}

}  // namespace

void Model::Refit(const Study& study, const std::vector<LearntRow>& learnt, size_t count,
                  const Encoding& encoding, const ModelSettings& settings) {
  judged_ = Valued(study, learnt, count);
  told_ = Feasible(judged_);
  const bool all_feasible = told_.size() == judged_.size();
  const double growth = std::ceil(static_cast<double>(count) * settings.refit_growth);
  next_fit_ = count + std::max<size_t>(1, static_cast<size_t>(growth));
  if (told_.empty()) {
    next_fit_ = count + 1;
    return;
  }
  if (told_.size() > kMaxRows) {
    const VectorXd labels = Labels(told_, settings.warp);
    std::vector<LearntRow> kept;
    for (const size_t i : Chosen(labels, kMaxRows / 2, kMaxRows, true)) kept.push_back(told_[i]);
    told_ = std::move(kept);
  }
  if (judged_.size() > kMaxRows) {
    judged_.erase(judged_.begin(), judged_.end() - static_cast<ptrdiff_t>(kMaxRows));
  }
  hyper_ = Fit(FeaturesOf(study, told_, encoding), Labels(told_, settings.warp), encoding,
               settings.priors, hyper_);
  if (!all_feasible) {
    feasibility_hyper_ = Fit(FeaturesOf(study, judged_, encoding), FeasibilityLabels(judged_),
                             encoding, FeasibilityPriors(settings.priors), feasibility_hyper_);
  }
  stale_ = true;
}

std::vector<TrialId> Model::Infeasible() const {
  std::vector<TrialId> infeasible;
  for (const LearntRow& row : judged_) {
    if (!row.feasible) infeasible.push_back(row.trial);
  }
  return infeasible;
}

void Model::Build(const Encoding& encoding, const Study& study) {
  const std::vector<int>& features = encoding.feature_of_column();
  posterior_ = Posterior(FeaturesOf(study, told_, encoding), *hyper_, features);
  if (feasibility_hyper_) {
    feasibility_.emplace(FeaturesOf(study, judged_, encoding), *feasibility_hyper_, features);
  }
  stale_ = false;
}

void Model::Update(const Study& study, const std::vector<LearntRow>& learnt,
                   const Encoding& encoding, const ModelSettings& settings) {
  if (seen_.size() > learnt.size() || !std::equal(seen_.begin(), seen_.end(), learnt.begin())) {
    *this = Model();
  }
  if (next_fit_ == 0) next_fit_ = settings.first_fit;
  const auto first_bad = std::find_if(learnt.begin(), learnt.end(),
                                      [](const LearntRow& row) { return !row.feasible; });
  const auto upto_bad = static_cast<size_t>(first_bad - learnt.begin()) + 1;
  for (;;) {
    // The first infeasible row begins a model of its own.
    if (upto_bad > seen_.size() && upto_bad <= learnt.size()) {
      next_fit_ = std::min(next_fit_, std::max(upto_bad, settings.first_fit));
    }
    if (next_fit_ > learnt.size()) break;
    const size_t count = next_fit_;
    Refit(study, learnt, count, encoding, settings);
    seen_.assign(learnt.begin(), learnt.begin() + static_cast<ptrdiff_t>(count));
  }
  if (stale_) Build(encoding, study);
  for (size_t i = seen_.size(); i < learnt.size(); ++i) {
    const RowVectorXd row = FeaturesOf(study, learnt[i].trial, encoding);
    if (feasibility_) feasibility_->Append(row);
    judged_.push_back(learnt[i]);
    if (learnt[i].feasible) {
      posterior_.Append(row);
      told_.push_back(learnt[i]);
    }
    seen_.push_back(learnt[i]);
  }
  // What a stopped trial is worth changes with every row.
  told_ = Valued(study, told_, told_.size());
  labels_ = Labels(told_, settings.warp);
  feasibility_labels_ = FeasibilityLabels(judged_);
  left_out_ = static_cast<size_t>(std::count_if(
                  seen_.begin(), seen_.end(), [](const LearntRow& row) { return row.feasible; })) -
              told_.size();
}

}  // namespace jizi::tuner
