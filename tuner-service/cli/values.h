#pragma once
// values.h - parameters as people write them, fitted to a search space: 1 for a real parameter
// is 1.0, constants may be left out. Fails: InvalidArgument naming the parameter, what is wrong and
// the mend. Threads: pure functions.

#include <string>
#include <vector>

#include "base/status.h"
#include "schedulers/model/space.h"

namespace jizi::tuner {

// A whole point of the space: with the types that it wants, constants added, checked.
StatusOr<Params> CompletePoint(const Space& space, const Params& given);

// {"lr=0.1", "optimizer=sgd", "layers=[1,2]"}: JSON where it is JSON and fits, else text.
StatusOr<Params> ParseAssignments(const Space& space, const std::vector<std::string>& assignments);

}  // namespace jizi::tuner
