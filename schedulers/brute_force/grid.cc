#include "schedulers/brute_force/grid.h"

#include "schedulers/brute_force/tried.h"
#include "schedulers/model/text.h"
#include "schedulers/settings.h"

namespace jizi::tuner {
namespace {

std::string Total(int64_t count) {
  return count == kManyPoints ? "more than 2^63" : std::to_string(count);
}

class Grid : public Scheduler {
 public:
  explicit Grid(Points points) : points_(std::move(points)) {}

  StatusOr<Decision> Suggest(const Study& study, int count, Rng, Memo& memo) const override {
    Tried& tried = Tried::Of(study, &points_, memo);
    Decision decision;
    // What is proposed here may be refused, so it does not stay among the tried.
    while (static_cast<int>(decision.start.size()) < count &&
           tried.numbers().size() < points_.count()) {
      const int64_t number = tried.numbers().NthUnused(0);
      Proposal proposal;
      proposal.params = points_.At(number);
      proposal.why = "grid point " + std::to_string(number + 1) + " of " + Total(points_.count());
      tried.Add(&points_, proposal.params);
      decision.start.push_back(std::move(proposal));
    }
    if (static_cast<int>(decision.start.size()) < count) {
      decision.next = Next::kExhausted;
      decision.why = "all " + Total(points_.count()) + " points of the grid are used";
    }
    for (const Proposal& proposal : decision.start) tried.Remove(&points_, proposal.params);
    return decision;
  }

 private:
  Points points_;
};

}  // namespace

StatusOr<std::unique_ptr<Scheduler>> CreateGrid(const StudySpec& spec) {
  TRY(ParseSettings(spec.settings_json, "grid", {}));
  for (const ParameterSpec& parameter : spec.space.parameters) {
    if (DiscreteDomain::Of(parameter.domain)) continue;
    return Error(
        StatusCode::kInvalidArgument,
        "parameter " + Quoted(parameter.name) + " has no grid: it is continuous or unbounded",
        {"INVALID_SPACE", parameter.name,
         "give it values, an int range or a step (q) between bounds; or use method random"});
  }
  auto points = Points::Of(spec.space);
  if (!points) {
    return Error(StatusCode::kInvalidArgument,
                 "the conditions tie too many parameters together to count the grid's points",
                 {"INVALID_SPACE", "when", "use fewer conditions, or method random"});
  }
  return std::make_unique<Grid>(*std::move(points));
}

}  // namespace jizi::tuner
