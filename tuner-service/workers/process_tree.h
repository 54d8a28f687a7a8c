#pragma once
// process_tree.h - what /proc says about the processes of this machine, now.
// A scan is a moment's picture: callers that end processes scan again until nothing is left.
// Fails: never; what cannot be read is left out.
// Threads: any; allocates.   Cost: about 20 us a process of the machine.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace jizi::tuner {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '?';  // 'Z': dead, not yet waited for. 'T', 't': stopped, by a signal or a tracer.
  unsigned long long started = 0;  // Ticks since boot: with the pid it names a process for good.
  std::string name;
};

std::vector<ProcessInfo> AllProcesses();
std::optional<ProcessInfo> ProcessOf(pid_t pid);

// Children, their children, ... of `ancestor`, itself not among them.
std::vector<ProcessInfo> DescendantsOf(pid_t ancestor);

// Is it this user's? False when it is gone.
bool IsOurs(pid_t pid);

// Does its environment hold this whole entry (NAME=value)? As it was at exec.
bool EnvironmentHolds(pid_t pid, const std::string& entry);

}  // namespace jizi::tuner
