#include "schedulers/brute_force/space_filling.h"

#include "schedulers/brute_force/sampling.h"
#include "schedulers/brute_force/sobol.h"

namespace jizi::tuner {

SpaceFilling::SpaceFilling(const Space& space) : space_(space), points_(Points::Of(space)) {
  // Where a number would not fit, points are told apart by their text: that many are never used up.
  if (points_ && points_->count() == kManyPoints) points_.reset();
  int dimension = 0;
  for (const ParameterSpec& parameter : space.parameters) {
    const auto discrete = DiscreteDomain::Of(parameter.domain);
    const bool varies = !discrete || discrete->count() > 1;
    sobol_dimension_.push_back(varies && dimension < kSobolDimensions ? dimension++ : -1);
  }
}

SpaceFilling::Answer::Answer(const SpaceFilling& filling, const Study& study, int count, Rng rng,
                             Memo& memo)
    : filling_(filling),
      study_(study),
      count_(count),
      rng_(rng),
      tried_(Tried::Of(study, filling.points(), memo)),
      next_sobol_(tried_.next_sobol()) {}

bool SpaceFilling::Answer::IsUsed(const Params& params) const {
  return tried_.Contains(filling_.points(), params);
}

bool SpaceFilling::Answer::IsFull() const {
  const Points* points = filling_.points();
  return missing() <= 0 || (points != nullptr && tried_.numbers().size() == points->count());
}

void SpaceFilling::Answer::Take(Proposal proposal) {
  if (!IsUsed(proposal.params)) {
    tried_.Add(filling_.points(), proposal.params);
    added_.push_back(proposal.params);
  }
  decision_.start.push_back(std::move(proposal));
}

Proposal SpaceFilling::Answer::NextPoint(const std::string& reason) {
  Proposal proposal;
  for (int draw = 0; draw < kRedraws; ++draw) {
    const int64_t point = next_sobol_++;
    std::vector<double> unit(filling_.sobol_dimension_.size());
    for (size_t i = 0; i < unit.size(); ++i) {
      const int dimension = filling_.sobol_dimension_[i];
      unit[i] =
          dimension >= 0 ? ScrambledSobol(study_.spec->seed, dimension, point) : rng_.Uniform();
    }
    proposal.params = FromUnit(filling_.space_, unit);
    proposal.tags[kSobolTag] = std::to_string(point);
    proposal.why = "space-filling point " + std::to_string(point) + ": " + reason;
    if (!IsUsed(proposal.params)) return proposal;
  }
  const Points* points = filling_.points();
  if (points == nullptr) {
    proposal.why += ", used before";
    return proposal;
  }
  const int64_t left = points->count() - tried_.numbers().size();
  const auto pick = static_cast<int64_t>(rng_.Below(static_cast<uint64_t>(left)));
  proposal.params = points->At(tried_.numbers().NthUnused(pick));
  proposal.why = "one of the " + std::to_string(left) + " points left: " + reason;
  return proposal;
}

Decision SpaceFilling::Answer::Finish(const std::string& reason) {
  while (!IsFull()) Take(NextPoint(reason));
  if (missing() > 0) {
    decision_.next = Next::kExhausted;
    decision_.why =
        "all " + std::to_string(filling_.points()->count()) + " points of the space are used";
  }
  // What is proposed here may be refused, so it does not stay among the tried.
  for (const Params& params : added_) tried_.Remove(filling_.points(), params);
  added_.clear();
  return std::move(decision_);
}

}  // namespace jizi::tuner
