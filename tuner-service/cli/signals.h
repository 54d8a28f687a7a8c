#pragma once
// signals.h - SIGINT, SIGTERM and SIGHUP as something to ask for, not as handlers. One that is
// ignored when the program starts (nohup, a script's background job) stays ignored.
// They are blocked in the thread that makes the object and in all that it starts afterwards, the
// supervisor's reader thread included: make it first of all. The supervisor ignores them, and
// unblocks them for the programs that it starts.
// Threads: from the thread that made it.

#include <signal.h>

#include <chrono>
#include <optional>

namespace jizi::tuner {

class Signals {
 public:
  Signals();
  ~Signals();  // As it was.
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The next signal; empty at the deadline.
  std::optional<int> Wait(std::chrono::milliseconds timeout);

 private:
  sigset_t set_;
  sigset_t before_;
};

}  // namespace jizi::tuner
