#pragma once
// pages.h - lists in pages: which trials or studies come next, by id or by a value, and the token
// that continues. A token names the last element of its page (value and id), not a place: what is
// added or changes between two pages makes nothing else appear twice or vanish. A page ends early
// at kMaxPageBytes (limits.h), with at least one element. Sorting: trials without a value (none
// measured, NaN), Failed and Infeasible ones come last, whichever the direction; equals by id.
// Fails: InvalidArgument for a token of another query or no token at all, a page size out of range,
// an unknown state. Threads: pure functions.   Cost: by id, the trials looked at; of a worker,
// those that it holds; sorted, n + k log k for a page of k, and for a metric that was not measured
// last, its way back through the measurements.

#include "base/status.h"
#include "jizi/v1/tune_service.pb.h"
#include "tuner-service/engine/engine.h"

namespace jizi::tuner {

// `held`: of the request's worker, where it names one; nothing else is looked at then.
StatusOr<v1::ListTrialsResponse> ListTrials(const StudyView& view,
                                            const v1::ListTrialsRequest& request,
                                            const std::vector<TrialId>& held = {});
StatusOr<v1::ListStudiesResponse> ListStudies(const std::vector<StudyView>& studies,
                                              const v1::ListStudiesRequest& request);
// As many checkpoints as fit in kCheckpointPageBytes, but for `skip_checkpoints` the last ones.
StatusOr<v1::GetTrialResponse> GetTrial(const StudyView& view, const v1::GetTrialRequest& request);

}  // namespace jizi::tuner
