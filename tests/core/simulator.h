#pragma once
// simulator.h - core, fake clock and log against a world of workers that crash, repeat, reorder and
// go silent, while the service restarts. One seed is one world, the same on every machine.   Cost:
// about a millisecond a world at -O2.

#include <cstdint>
#include <string>

namespace jizi::tuner::testing {

struct SimulationResult {
  std::string failure;  // Empty: every promise was kept.
  int64_t commands = 0;
  int64_t restarts = 0;
  int64_t reclaimed = 0;
  int64_t lost = 0;
  int64_t repeated = 0;  // Calls that were delivered more than once.
};

SimulationResult Simulate(uint64_t seed);

}  // namespace jizi::tuner::testing
