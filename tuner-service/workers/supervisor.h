#pragma once
// supervisor.h - the one single-threaded child that starts and ends every process of a worker
// (contract 17). It is forked before any thread or gRPC object exists, is a child subreaper, and
// when the pipe to its parent closes it ends every process it ever started and all their
// descendants, then itself. It outlives kill -9 of its parent by moments only. Fails: Fork:
// Unavailable if another supervisor holds the lock after the deadline; Cancelled if told to stop
// before; Internal for fork and pipe. Start: InvalidArgument when the program cannot be started;
// Unavailable HOST_FAULT when this machine can start none now, SUPERVISOR_GONE, SUPERVISOR_SILENT
// (what may start later is ended). Threads: Fork from the only thread; the rest from any.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace jizi::tuner {

struct ProcessSpec {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // All of it.
  std::string folder;                              // Working folder.
  int stdout_fd = -1;                              // Handed over; the caller keeps its own copy.
  int stderr_fd = -1;
};

struct ProcessEnd {
  int exit_code = -1;  // If it exited.
  int signal = 0;      // If it was killed.
  bool lost = false;   // The supervisor was killed, and it with it.
};

struct ForkOptions {
  std::function<bool()> stop;  // Asked while the lock is waited for; true gives up. Empty: never.
  // File mode creation mask of the programs; unset: the caller's at Fork. `jizi run` narrows its
  // own to 077, which is none of the programs' business.
  std::optional<mode_t> program_umask;
  std::chrono::milliseconds start_deadline{30'000};  // For the answer to a Start.
  // Whether the supervisor stands still (SIGSTOP): it is continued at once, and killed when it does
  // so at kMaxStopped looks in a row.
  std::chrono::milliseconds look_every{1000};
};

class Supervisor {
 public:
  using ProcessId = int64_t;  // Ours, never reused (a pid may be).

  // lock_file: held by the supervisor as long as a process of it may live; a new owner waits for it
  // here.
  static StatusOr<std::unique_ptr<Supervisor>> Fork(const std::string& lock_file,
                                                    std::chrono::milliseconds wait_for_lock,
                                                    const ForkOptions& options = {});
  virtual ~Supervisor() = default;  // Ends everything.

  // on_end is called once, on the supervisor's reader thread, when the process and its whole group
  // are gone.
  virtual StatusOr<ProcessId> Start(const ProcessSpec& spec,
                                    std::function<void(ProcessEnd)> on_end) = 0;

  // SIGTERM to the group, SIGKILL to it and to every descendant after `grace`.
  virtual void End(ProcessId process, std::chrono::duration<double> grace) = 0;
};

inline constexpr int kMaxStopped = 30;

// Continues the supervisor that this lock names, if it stands still: it then sees that its owner is
// gone, ends its processes and lets go of the lock.
void ContinueSupervisor(const std::string& lock_file);

// Unavailable SUPERVISOR_GONE: it was killed, and its processes with it.
Status SupervisorGone();

}  // namespace jizi::tuner
