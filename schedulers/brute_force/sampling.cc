#include "schedulers/brute_force/sampling.h"

#include "schedulers/brute_force/sobol.h"
#include "schedulers/brute_force/tried.h"
#include "schedulers/settings.h"

namespace jizi::tuner {
namespace {

const std::vector<Setting>& SamplerSettings() {
  static const std::vector<Setting> settings = {
      {"sampler",
       {"random", "sobol"},
       "independent draws, or scrambled Sobol points that fill the space evenly"}};
  return settings;
}

// Keys the draws of the n-th proposed trial, so that the same seed gives the same trials however
// many workers ask, and in whatever groups.
constexpr uint64_t kDrawStream = 0x64726177;

enum class Sampler { kRandom, kSobol };

class Sampling : public Scheduler {
 public:
  // `dimensions`: of each parameter its Sobol dimension, -1 if it does not vary.
  Sampling(Sampler sampler, std::vector<int> dimensions, std::optional<Points> points)
      : sampler_(sampler), dimensions_(std::move(dimensions)), points_(std::move(points)) {}

  StatusOr<Decision> Suggest(const Study& study, int count, Rng, Memo& memo) const override {
    const Points* points = points_ ? &*points_ : nullptr;
    Tried& tried = Tried::Of(study, points, memo);
    int64_t next_sobol = tried.next_sobol();
    Decision decision;
    std::vector<const Params*> added;
    decision.start.reserve(static_cast<size_t>(std::max(count, 0)));
    while (static_cast<int>(decision.start.size()) < count && !IsExhausted(tried)) {
      const int64_t number = tried.proposed() + static_cast<int64_t>(decision.start.size());
      Rng rng({kDrawStream, study.spec->seed, static_cast<uint64_t>(number)});
      decision.start.push_back(ProposeOne(*study.spec, tried, rng, next_sobol));
      const Params& params = decision.start.back().params;
      if (tried.Contains(points, params)) continue;
      tried.Add(points, params);
      added.push_back(&params);
    }
    if (static_cast<int>(decision.start.size()) < count) {
      decision.next = Next::kExhausted;
      decision.why = "all " + std::to_string(points_->count()) + " points of the space are used";
    }
    // What is proposed here may be refused, so it does not stay among the tried.
    for (const Params* params : added) tried.Remove(points, *params);
    return decision;
  }

 private:
  bool IsExhausted(const Tried& tried) const {
    return points_ && tried.numbers().size() == points_->count();
  }

  Proposal ProposeOne(const StudySpec& spec, const Tried& tried, Rng& rng,
                      int64_t& next_sobol) const {
    const Points* points = points_ ? &*points_ : nullptr;
    Proposal proposal;
    bool is_new = false;
    for (int draw = 0; draw < kRedraws && !is_new; ++draw) {
      if (sampler_ == Sampler::kSobol) {
        proposal.params = SobolPoint(spec, next_sobol);
        proposal.tags[kSobolTag] = std::to_string(next_sobol);
        proposal.why = "scrambled Sobol point " + std::to_string(next_sobol);
        ++next_sobol;
      } else {
        proposal.params = Sample(spec.space, rng);
        proposal.why = "random draw";
      }
      is_new = !tried.Contains(points, proposal.params);
    }
    if (is_new) return proposal;
    const std::string after = " (" + std::to_string(kRedraws) + " draws gave only used points)";
    if (points == nullptr) {
      proposal.why += ", used before" + after;
      return proposal;
    }
    const int64_t left = points->count() - tried.numbers().size();
    const auto pick = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(left)));
    proposal.params = points->At(tried.numbers().NthUnused(pick));
    proposal.why = "one of the " + std::to_string(left) + " points left" + after;
    return proposal;
  }

  Params SobolPoint(const StudySpec& spec, int64_t point) const {
    std::vector<double> unit(dimensions_.size());
    for (size_t i = 0; i < unit.size(); ++i) {
      if (dimensions_[i] >= 0) unit[i] = ScrambledSobol(spec.seed, dimensions_[i], point);
    }
    return FromUnit(spec.space, unit);
  }

  Sampler sampler_;
  std::vector<int> dimensions_;
  std::optional<Points> points_;
};

}  // namespace

StatusOr<std::unique_ptr<Scheduler>> CreateSampling(const StudySpec& spec) {
  const auto chosen = TRY(ParseSettings(spec.settings_json, "random", SamplerSettings()));
  const bool sobol = chosen.at("sampler") == "sobol";
  std::vector<int> dimensions;
  int varying = 0;
  for (const ParameterSpec& parameter : spec.space.parameters) {
    const auto discrete = DiscreteDomain::Of(parameter.domain);
    const bool varies = !discrete || discrete->count() > 1;
    dimensions.push_back(varies ? varying++ : -1);
  }
  if (sobol && varying > kSobolDimensions) {
    return Error(StatusCode::kInvalidArgument,
                 "sampler sobol has " + std::to_string(kSobolDimensions) +
                     " dimensions, and the space has " + std::to_string(varying) +
                     " parameters that vary",
                 {"INVALID_SETTING", "sampler", "use sampler random, or fix some parameters"});
  }
  // Where a number would not fit, points are told apart by their text: that many are never used up.
  auto points = Points::Of(spec.space);
  if (points && points->count() == kManyPoints) points.reset();
  return std::make_unique<Sampling>(sobol ? Sampler::kSobol : Sampler::kRandom,
                                    std::move(dimensions), std::move(points));
}

}  // namespace jizi::tuner
