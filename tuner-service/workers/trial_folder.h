#pragma once
// trial_folder.h - names of folders and files beneath a worker's folder, and paths opened safely.
// Fails: as said beside each.
// Threads: any; nothing is kept.

#include <cstdint>
#include <string>

#include "base/status.h"

namespace jizi::tuner {

std::string TrialFolder(const std::string& root, int64_t trial);  // <root>/000042

// Makes it, with checkpoints/ in it. Returns its absolute path.
// Fails: Unavailable HOST_FAULT.
StatusOr<std::string> MakeTrialFolder(const std::string& root, int64_t trial);

// The file of reports that a process of this worker could not deliver (contract 22).
std::string OutboxPath(const std::string& root, const std::string& worker);

// The absolute path of a trial's checkpoint, for a program to start from. `path` is relative to the
// trial's folder; no link anywhere on the way is followed and nothing outside is reached
// (contract 26).
// Fails: FailedPrecondition WARM_START_NOT_VISIBLE with the reason; Unavailable HOST_FAULT.
StatusOr<std::string> CheckpointPath(const std::string& root, int64_t trial,
                                     const std::string& path);

}  // namespace jizi::tuner
