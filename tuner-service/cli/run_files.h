#pragma once
// run_files.h - what stands beside a database (or, on a server, beside nothing but its name):
// the supervisor's lock and the trials' folders. Two studies of one database have folders of their
// own, since trials are numbered for each study.
//   sweep.db   sweep.db.supervisor   sweep.trials/<study>-<8 hex digits>/000001/
// Fails: MakeFolder: PermissionDenied TRIALS_FOLDER. Threads: pure but for MakeFolder.

#include <string>

#include "base/status.h"

namespace jizi::tuner {

std::string SupervisorLockOf(const std::string& database);

// `x.db` -> `x.trials`; nothing but a last ".db" is taken off: v1.2 and v1.3 are two names.
std::string TrialsRootOf(const std::string& database);

// Any name becomes one safe folder name; the hash keeps apart what the replacing makes alike.
std::string StudyFolder(const std::string& trials_root, const std::string& study);

Status MakeFolder(const std::string& folder);

}  // namespace jizi::tuner
