#include "schedulers/tpe/tpe.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <sstream>

#include "schedulers/bayes/history.h"
#include "schedulers/brute_force/space_filling.h"
#include "schedulers/settings.h"
#include "schedulers/tpe/mixture.h"

namespace jizi::tuner {
namespace {

constexpr size_t kMostGood = 25;
constexpr int kMaxPicks = 64;  // Of the mixtures in one answer.

const std::vector<Setting>& TpeSettingNames() {
  static const std::vector<Setting> settings = {
      {"initial",
       {"10"},
       "space-filling points before the mixtures are asked",
       Setting::Range{1, 10'000, true}},
      {"candidates",
       {"24"},
       "points drawn from the mixture of the good trials, of which the best is proposed",
       Setting::Range{1, 10'000, true}},
      {"good_share",
       {"0.1"},
       "the part of the trials that counts as good, 25 trials at most",
       Setting::Range{0.01, 0.9}},
  };
  return settings;
}

struct TpeSettings {
  size_t initial = 10;
  int candidates = 24;
  double good_share = 0.1;
};

struct Observed {
  Point point;
  std::vector<bool> has;  // By group.
};

class Tpe : public Scheduler {
 public:
  Tpe(const Space& space, TpeSettings settings)
      : encoding_(space), settings_(settings), filling_(space) {
    for (size_t i = 0; i < space.parameters.size(); ++i) {
      const auto same = std::find_if(groups_.begin(), groups_.end(), [&](const auto& group) {
        return space.parameters[group.front()].when == space.parameters[i].when;
      });
      if (same != groups_.end()) {
        same->push_back(i);
      } else {
        groups_.push_back({i});
      }
    }
  }

  StatusOr<Decision> Suggest(const Study& study, int count, Rng rng, Memo& memo) const override {
    SpaceFilling::Answer answer(filling_, study, count, rng, memo);
    const History history = HistoryOf(study);
    if (history.learnt.size() < settings_.initial) {
      return answer.Finish("before there are mixtures");
    }
    std::vector<Observed> good, others;
    Split(study, history, good, others);
    for (int pick = 0; pick < kMaxPicks && !answer.IsFull(); ++pick) {
      auto proposal = Propose(answer, good, others);
      if (!proposal) break;
      others.push_back(ObservedOf(proposal->params));
      answer.Take(*std::move(proposal));
    }
    return answer.Finish("the mixtures gave no unused point");
  }

 private:
  void Split(const Study& study, const History& history, std::vector<Observed>& good,
             std::vector<Observed>& others) const {
    const std::vector<LearntRow> rows = Valued(study, history.learnt, history.learnt.size());
    std::vector<double> values;
    for (const LearntRow& row : rows) {
      if (row.feasible) values.push_back(row.value);
    }
    std::sort(values.rbegin(), values.rend());
    const auto share =
        static_cast<size_t>(std::ceil(settings_.good_share * static_cast<double>(values.size())));
    const size_t wanted = std::min({share, kMostGood, values.size()});
    const double least = wanted > 0 ? values[wanted - 1] : 0;
    const auto better = static_cast<size_t>(std::count_if(
        values.begin(), values.end(), [least](double value) { return value > least; }));
    size_t ties = wanted - std::min(better, wanted);  // Of the least, the earliest count.
    for (const LearntRow& row : rows) {
      const bool is_tie = row.feasible && row.value == least && ties > 0;
      const bool is_good = wanted > 0 && row.feasible && (row.value > least || is_tie);
      if (is_good && is_tie) --ties;
      (is_good ? good : others).push_back(ObservedOf(study.Find(row.trial)->params));
    }
    for (const TrialId id : history.pending) others.push_back(ObservedOf(study.Find(id)->params));
  }

  bool Has(const Params& params, size_t group) const {
    return params.contains(encoding_.space().parameters[groups_[group].front()].name);
  }

  Observed ObservedOf(const Params& params) const {
    Observed observed{encoding_.ToPoint(params), {}};
    for (size_t g = 0; g < groups_.size(); ++g) observed.has.push_back(Has(params, g));
    return observed;
  }

  Mixture MixtureOf(size_t group, const std::vector<Observed>& rows) const {
    std::vector<Point> points;
    for (const Observed& row : rows) {
      if (row.has[group]) points.push_back(row.point);
    }
    return Mixture(encoding_, groups_[group], std::move(points));
  }

  std::optional<Proposal> Propose(SpaceFilling::Answer& answer, const std::vector<Observed>& good,
                                  const std::vector<Observed>& others) const {
    std::vector<Mixture> likely, unlikely;
    for (size_t g = 0; g < groups_.size(); ++g) {
      likely.push_back(MixtureOf(g, good));
      unlikely.push_back(MixtureOf(g, others));
    }
    std::optional<Params> best;
    double best_ratio = 0;
    Point point = Point::Constant(static_cast<Eigen::Index>(encoding_.coordinates().size()), 0.5);
    for (int draw = 0; draw < settings_.candidates; ++draw) {
      // Coordinates of groups that are not there are drawn as well, and then not used.
      for (const Mixture& mixture : likely) mixture.Draw(answer.rng(), point);
      Params params = encoding_.ToParams(point);
      if (answer.IsUsed(params)) continue;
      double ratio = 0;
      for (size_t g = 0; g < groups_.size(); ++g) {
        if (Has(params, g)) ratio += likely[g].LogDensity(point) - unlikely[g].LogDensity(point);
      }
      if (best && ratio <= best_ratio) continue;
      best = std::move(params);
      best_ratio = ratio;
    }
    if (!best) return std::nullopt;
    Proposal proposal;
    proposal.params = *std::move(best);
    std::ostringstream why;
    why << std::setprecision(2) << "as the best " << good.size() << " trials, unlike the other "
        << others.size() << ": log ratio " << best_ratio << ", the best of " << settings_.candidates
        << " draws";
    proposal.why = why.str();
    return proposal;
  }

  Encoding encoding_;
  TpeSettings settings_;
  SpaceFilling filling_;
  std::vector<std::vector<size_t>> groups_;  // Places in the space, by equal conditions.
};

}  // namespace

StatusOr<std::unique_ptr<Scheduler>> CreateTpe(const StudySpec& spec) {
  const auto chosen = TRY(ParseSettings(spec.settings_json, "tpe", TpeSettingNames()));
  if (spec.metrics.size() > 1) {
    return Error(
        StatusCode::kUnimplemented,
        "method tpe takes one metric, the study has " + std::to_string(spec.metrics.size()),
        {"METHOD_UNKNOWN", "metrics", "keep the first one, or use method random"});
  }
  const auto number = [&](const char* name) {
    return std::strtod(chosen.at(name).c_str(), nullptr);
  };
  const TpeSettings settings{static_cast<size_t>(number("initial")),
                             static_cast<int>(number("candidates")), number("good_share")};
  return std::make_unique<Tpe>(spec.space, settings);
}

}  // namespace jizi::tuner
