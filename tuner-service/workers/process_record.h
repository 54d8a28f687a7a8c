#pragma once
// process_record.h - which processes a supervisor has seen beneath it, in the file of its lock: the
// pid of the supervisor on the first line, then boot and pid namespace, then pid and start time of
// each. If owner and supervisor are killed at once, the next owner knows by it also what shed its
// environment and its session. What was born and shed all since the last look is not in it.
// Fails: writing never (a full disk leaves the record as it was, or short: a torn line is passed
// over). Threads: one at a time.

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"
#include "tuner-service/workers/process_tree.h"

namespace jizi::tuner {

class ProcessRecord {
 public:
  // `lock` stays the caller's.
  explicit ProcessRecord(int lock);
  void Write(const std::vector<ProcessInfo>& seen);

 private:
  const int lock_;
  const std::string head_;
  std::string written_;
};

// SIGKILL to what is left of what this file records, and to their descendants, until none is left.
// Returns how many there were. The caller holds the lock, so that the supervisor is gone.
// Fails: Unavailable PROCESS_LEFT at the deadline.
StatusOr<int> EndRecordedProcesses(const std::string& lock_file,
                                   std::chrono::milliseconds deadline);

}  // namespace jizi::tuner
