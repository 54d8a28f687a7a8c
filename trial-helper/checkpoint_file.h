#pragma once
// checkpoint_file.h - files of checkpoints: durable, digested, and nowhere but beneath the trial's
// folder. No component of a path may be a link (docs/contracts.md, 26).
// Fails: InvalidArgument (a path outside the folder or no UTF-8, a link, no ordinary file),
// NotFound, ResourceExhausted (disk full), Internal (other errors of files), each naming the path.
// Threads: one at a time for one folder.   Cost: reads the file once for its digest.

#include <functional>
#include <string>

#include "base/status.h"
#include "jizi/v1/types.pb.h"

namespace jizi::helper {

// Lets the writer fill a temporary file, syncs it, and renames it to checkpoints/<name>.
StatusOr<v1::Checkpoint> WriteCheckpoint(const std::string& folder, int64_t step, int attempt,
                                         const std::function<void(const std::string&)>& writer);

// A file that is there already: path beneath the folder, absolute or relative to it.
StatusOr<v1::Checkpoint> AdoptCheckpoint(const std::string& folder, int64_t step,
                                         const std::string& path);

// Is the file there, of this size and digest? Its absolute path.
StatusOr<std::string> VerifyCheckpoint(const std::string& folder, const v1::Checkpoint& checkpoint);

}  // namespace jizi::helper
