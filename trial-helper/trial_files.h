#pragma once
// trial_files.h - a trial's folder, as its worker would make it: for its owner alone, with the
// parameters in it. The worker makes the first one's; of the trials that the same process takes
// later it may hear too late.
// Fails: what cannot be made is said on stderr.   Threads: one.

#include <string>

#include "trial-helper/trial_source.h"

namespace jizi::helper {

// With its parents, mode 0700; as it is, if it is there.
void MakePrivateFolder(const std::string& folder);

// params.json in the trial's folder.
void KeepParams(const Assigned& assigned);

}  // namespace jizi::helper
