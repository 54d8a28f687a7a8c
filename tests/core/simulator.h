#pragma once
// simulator.h - core, fake clock and log against a world of workers that crash, repeat, reorder and
// go silent, and strangers who guess tokens, while the service restarts and people pause it. One
// seed is one world, the same on every machine.   Cost: about a millisecond a world at -O2.

#include <cstdint>
#include <string>

namespace jizi::tuner::testing {

struct SimulationResult {
  std::string failure;  // Empty: every promise was kept.
  int64_t commands = 0;
  int64_t restarts = 0;
  int64_t reclaimed = 0;
  int64_t lost = 0;
  int64_t repeated = 0;      // Calls that were delivered more than once.
  int64_t wrong_tokens = 0;  // Calls with a lease that is not the caller's.
  int64_t on_target = 0;     // 1: it ended because a trial reached the target.
};

SimulationResult Simulate(uint64_t seed);

}  // namespace jizi::tuner::testing
