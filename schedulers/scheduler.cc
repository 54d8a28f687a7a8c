#include "schedulers/scheduler.h"

namespace jizi::tuner {

StatusOr<Decision> Scheduler::OnChange(const Study&, TrialId, const Change&, Rng, Memo&) const {
  return Decision{};
}

}  // namespace jizi::tuner
