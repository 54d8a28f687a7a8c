#include "tests/core/restless_scheduler.h"

#include "tests/core/machine.h"

namespace jizi::tuner::testing {

StatusOr<Decision> RestlessScheduler::Suggest(const Study& study, int count, Rng rng, Memo&) const {
  Decision decision;
  for (const Cow<Trial>& trial : study.trials) {
    if (static_cast<int>(decision.resume.size()) == count) return decision;
    if (trial->state == TrialState::kPaused) decision.resume.push_back(trial->id);
  }
  if (study.counts[TrialState::kRunning] > 0 && rng.Below(8) == 0) {
    decision.next = Next::kWait;
    return decision;
  }
  const auto left = static_cast<uint64_t>(count) - decision.resume.size();
  for (uint64_t i = 0; i < left; ++i) decision.start.push_back(ProposalAt(rng.Uniform()));
  return decision;
}

StatusOr<Decision> RestlessScheduler::OnChange(const Study& study, TrialId id, const Change& change,
                                               Rng rng, Memo&) const {
  Decision decision;
  const auto* reported = std::get_if<Reported>(&change);
  if (reported == nullptr) return decision;
  switch (rng.Below(20)) {
    case 0:
      decision.tell[id] = Stop{"bad"};
      break;
    case 1:
      if (study.Find(id)->attempts.size() < 5) decision.tell[id] = Pause{"turns"};
      break;
    case 2:
      if (study.Find(id)->attempts.back().rollbacks < 2) {
        decision.tell[id] = Continue{{}, reported->measurement.step / 2, "again"};
      }
      break;
    case 3: {
      Proposal successor = ProposalAt(rng.Uniform());
      successor.successor_of = id;
      decision.start.push_back(std::move(successor));
      decision.tell[id] = Stop{"exploited"};
      break;
    }
    default:
      break;
  }
  return decision;
}

}  // namespace jizi::tuner::testing
