#include "tests/core/simulator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "tests/core/machine.h"

namespace jizi::tuner::testing {
namespace {

// JIZI_SIM_SEEDS=N: so many worlds. JIZI_TEST_SEED=S: that one world.
TEST(Simulator, EveryTrialEndsOnceAndNothingAcknowledgedIsLostOrDoubled) {
  const char* wanted = std::getenv("JIZI_SIM_SEEDS");
  const int count = wanted == nullptr ? 500 : std::atoi(wanted);
  SimulationResult sum;
  for (const uint64_t seed : Seeds(1, count)) {
    const SimulationResult result = Simulate(seed);
    ASSERT_EQ(result.failure, "") << "reproduce with JIZI_TEST_SEED=" << seed;
    ASSERT_FALSE(HasFailure()) << "reproduce with JIZI_TEST_SEED=" << seed;
    sum.commands += result.commands;
    sum.restarts += result.restarts;
    sum.reclaimed += result.reclaimed;
    sum.lost += result.lost;
    sum.repeated += result.repeated;
    sum.wrong_tokens += result.wrong_tokens;
    sum.on_target += result.on_target;
  }
  std::cout << count << " seeds: " << sum.commands << " commands, " << sum.restarts << " restarts, "
            << sum.lost << " leases lost, " << sum.reclaimed << " reclaimed, " << sum.repeated
            << " calls repeated, " << sum.wrong_tokens << " wrong tokens, " << sum.on_target
            << " targets reached\n";
  if (count < 100 || std::getenv("JIZI_TEST_SEED") != nullptr) return;
  // The worlds are as bad as they are meant to be.
  EXPECT_GT(sum.restarts, count);
  EXPECT_GT(sum.lost, count);
  EXPECT_GT(sum.reclaimed, count / 10);
  EXPECT_GT(sum.repeated, count);
  EXPECT_GT(sum.wrong_tokens, count);
  EXPECT_GT(sum.on_target, count / 10);
}

}  // namespace
}  // namespace jizi::tuner::testing
