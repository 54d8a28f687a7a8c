#pragma once
// restless_scheduler.h - a scheduler that uses all it may: waits, resumes, stops, pauses,
// roll-backs and successors. Pure, as schedulers are. Threads: const.

#include "schedulers/scheduler.h"

namespace jizi::tuner::testing {

class RestlessScheduler : public Scheduler {
 public:
  StatusOr<Decision> Suggest(const Study& study, int count, Rng rng, Memo& memo) const override;
  StatusOr<Decision> OnChange(const Study& study, TrialId trial, const Change& change, Rng rng,
                              Memo& memo) const override;
};

}  // namespace jizi::tuner::testing
