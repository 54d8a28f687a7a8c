#include "schedulers/bayes/bayes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "schedulers/bayes/model.h"
#include "schedulers/bayes/search.h"
#include "schedulers/brute_force/space_filling.h"
#include "schedulers/model/text.h"
#include "schedulers/settings.h"

namespace jizi::tuner {
namespace {

using Eigen::Index;
using Eigen::RowVectorXd;

constexpr int kMaxPicks = 64;       // Of the model in one answer.
constexpr size_t kOpenPerRow = 2;   // Pending trials for each row that the model has...
constexpr size_t kOpenAnyway = 16;  // ... and this many more.
constexpr size_t kBestTrials = 5;   // Whose surroundings are searched.
constexpr double kApart = 5e-3;  // Of a coordinate: nearer to a pending trial a number is no other.

const std::vector<Setting>& BayesSettingNames() {
  static const std::vector<Setting> settings = {
      {"warp",
       {"power", "half_rank", "standard"},
       "how the metric is made normal: by a power, by the ranks of the lower half, or not"},
      {"initial",
       {"0"},
       "space-filling points before the model is asked; 0: two for each parameter, 4 to 10",
       Setting::Range{0, 10'000, true}},
      {"refit_growth",
       {"0.1"},
       "the model is fitted again when the trials have grown by this part",
       Setting::Range{0, 10}},
      {"lengthscale_location",
       {"-1"},
       "prior: mean of the logarithm of a lengthscale, before log(parameters) / 2 is added",
       Setting::Range{-10, 10}},
      {"lengthscale_spread",
       {"1"},
       "prior: standard deviation of the logarithm of a lengthscale",
       Setting::Range{0.01, 100}},
      {"noise_location",
       {"-6"},
       "prior: mean of the logarithm of the noise's variance, that of the metric being 1",
       Setting::Range{-30, 5}},
      {"noise_spread",
       {"2"},
       "prior: standard deviation of the logarithm of the noise's variance",
       Setting::Range{0.01, 100}},
  };
  return settings;
}

struct BayesMemo {
  Memo tried;
  Model model;
};

struct BayesSettings {
  ModelSettings model;
  size_t initial = 4;  // Space-filling points.
};

class Bayes : public Scheduler {
 public:
  Bayes(const Space& space, BayesSettings settings)
      : encoding_(space), settings_(settings), filling_(space) {}

  StatusOr<Decision> Suggest(const Study& study, int count, Rng rng, Memo& memo) const override {
    auto* kept = std::any_cast<BayesMemo>(&memo.value);
    if (kept == nullptr) kept = &memo.value.emplace<BayesMemo>();
    SpaceFilling::Answer answer(filling_, study, count, rng, kept->tried);
    const History history = HistoryOf(study);
    if (history.learnt.size() < settings_.initial) {
      return answer.Finish("before there is a model");
    }
    if (!CanModel(history)) return answer.Finish("there is nothing to model yet");
    kept->model.Update(study, history.learnt, encoding_, settings_.model);
    SuggestByModel(answer, kept->model, history);
    return answer.Finish("more is pending than the model can judge");
  }

 private:
  bool CanModel(const History& history) const {
    return encoding_.features() > 0 &&
           std::any_of(history.learnt.begin(), history.learnt.end(),
                       [](const LearntRow& row) { return row.feasible; });
  }

  void SuggestByModel(SpaceFilling::Answer& answer, Model& model, const History& history) const {
    Posterior& posterior = model.posterior();
    const Index learnt = posterior.rows();
    const size_t most_open = kOpenAnyway + kOpenPerRow * history.learnt.size();
    if (history.pending.size() > most_open) return;
    const auto point_of = [&](TrialId id) {
      return encoding_.ToPoint(answer.study().Find(id)->params);
    };
    const std::vector<TrialId> infeasible = model.Infeasible();
    for (const TrialId id : infeasible) posterior.Append(Features(point_of(id)));
    std::vector<Point> open;
    for (const TrialId id : history.pending) {
      open.push_back(point_of(id));
      posterior.Append(Features(open.back()));
    }
    for (int pick = 0; pick < kMaxPicks && open.size() <= most_open && !answer.IsFull(); ++pick) {
      Acquisition acquisition(posterior, model.labels(), static_cast<Index>(infeasible.size()),
                              answer.study().spec->seed);
      if (model.feasibility() != nullptr) {
        acquisition.SetFeasibility(*model.feasibility(), model.feasibility_labels(),
                                   Model::kFeasibleAbove);
      }
      const auto found =
          Search(encoding_, acquisition, BestTrials(answer.study(), model, acquisition),
                 SearchOptionsFor(posterior.rows()), answer.rng(),
                 [&](const Params& params) { return IsNew(params, answer, open); });
      answer.rng().Next();
      if (!found) break;
      Proposal proposal;
      proposal.params = found->params;
      proposal.why =
          Why(acquisition.Values(Features(found->point)), acquisition, model, open.size());
      answer.Take(std::move(proposal));
      posterior.Append(Features(found->point));
      open.push_back(found->point);
    }
    posterior.Truncate(learnt);
  }

  // Not used before, and not all but the same as one that is under way.
  bool IsNew(const Params& params, const SpaceFilling::Answer& answer,
             const std::vector<Point>& open) const {
    if (answer.IsUsed(params)) return false;
    if (filling_.points() != nullptr || open.empty()) return true;
    const Point point = encoding_.ToPoint(params);
    return std::all_of(open.begin(), open.end(), [&](const Point& other) {
      return (point - other).cwiseAbs().maxCoeff() > kApart;
    });
  }

  RowVectorXd Features(const Point& point) const {
    RowVectorXd row(static_cast<Index>(encoding_.feature_of_column().size()));
    encoding_.Features(point, row);
    return row;
  }

  // Those with the best means, whatever luck their measurements had.
  std::vector<Point> BestTrials(const Study& study, const Model& model,
                                const Acquisition& acquisition) const {
    std::vector<size_t> order(model.rows().size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto mean = [&](size_t i) { return acquisition.row_means()[static_cast<Index>(i)]; };
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return mean(a) != mean(b) ? mean(a) > mean(b) : a < b; });
    std::vector<Point> best;
    for (size_t i = 0; i < std::min(order.size(), kBestTrials); ++i) {
      best.push_back(encoding_.ToPoint(study.Find(model.rows()[order[i]].trial)->params));
    }
    return best;
  }

  static std::string Why(const Promise& promise, const Acquisition& acquisition, const Model& model,
                         size_t open) {
    const double ahead = promise.mean[0] - acquisition.incumbent();
    const double deviation = std::sqrt(promise.variance[0]);
    std::ostringstream why;
    why << std::setprecision(2)
        << (ahead > 0 ? "expected improvement: predicted " : "exploration: predicted ")
        << std::abs(ahead) << (ahead >= 0 ? " sd above" : " sd below") << " the best so far, +- "
        << deviation << " sd; " << model.rows().size() << " trials";
    if (model.left_out() > 0) why << " of " << model.rows().size() + model.left_out();
    if (open > 0) why << ", given " << open << " pending";
    return why.str();
  }

  Encoding encoding_;
  BayesSettings settings_;
  SpaceFilling filling_;
};

}  // namespace

StatusOr<std::unique_ptr<Scheduler>> CreateBayes(const StudySpec& spec) {
  const auto chosen = TRY(ParseSettings(spec.settings_json, "bayes", BayesSettingNames()));
  if (spec.metrics.size() > 1) {
    return Error(
        StatusCode::kUnimplemented,
        "method bayes takes one metric, the study has " + std::to_string(spec.metrics.size()),
        {"METHOD_UNKNOWN", "metrics", "keep the first one, or use method random"});
  }
  const auto number = [&](const char* name) {
    return std::strtod(chosen.at(name).c_str(), nullptr);
  };
  BayesSettings settings;
  settings.model.warp = chosen.at("warp") == "power"       ? Warp::kPower
                        : chosen.at("warp") == "half_rank" ? Warp::kHalfRank
                                                           : Warp::kStandard;
  settings.model.refit_growth = number("refit_growth");
  settings.model.priors.lengthscale_location = number("lengthscale_location");
  settings.model.priors.lengthscale_spread = number("lengthscale_spread");
  settings.model.priors.noise_location = number("noise_location");
  settings.model.priors.noise_spread = number("noise_spread");
  settings.initial = static_cast<size_t>(number("initial"));
  if (settings.initial == 0) {
    settings.initial = std::clamp<size_t>(2 * spec.space.parameters.size(), 4, 10);
  }
  settings.model.first_fit = settings.initial;
  return std::make_unique<Bayes>(spec.space, settings);
}

}  // namespace jizi::tuner
