#pragma once
// load_loop.h - when the channels' calls are issued: closed or open loop, and the window in
// which calls are counted.
// Threads: Window from any; a Loop's Stop returns once no call is under way.

#include <atomic>
#include <memory>
#include <vector>

#include "tests/bench/load_channel.h"

namespace jizi::bench {

// Calls count that end inside the window.
class Window {
 public:
  SteadyClock::time_point Begin();
  SteadyClock::time_point End();
  bool open() const { return open_.load(std::memory_order_relaxed); }
  void SleepFor(std::chrono::milliseconds time) const;

 private:
  std::atomic<bool> open_{false};
};

class Loop {
 public:
  virtual ~Loop() = default;
  virtual void Stop() = 0;
};
using Channels = std::vector<std::unique_ptr<Channel>>;
std::unique_ptr<Loop> ClosedLoop(Channels& channels, const Window& window);
std::unique_ptr<Loop> OpenLoop(Channels& channels, const Window& window, double calls_per_second);

}  // namespace jizi::bench
