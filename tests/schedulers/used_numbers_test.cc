#include "schedulers/brute_force/used_numbers.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

TEST(UsedNumbers, AgreesWithASetThroughSplitsAndErasures) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + 3; ++seed) {
    SCOPED_TRACE(testing::Message() << "JIZI_TEST_SEED=" << seed);
    Rng rng({seed, 7});
    UsedNumbers numbers;
    std::set<int64_t> plain;
    const uint64_t range = 12000;
    for (int step = 0; step < 20000; ++step) {
      const auto number = static_cast<int64_t>(rng.Below(range));
      if (rng.Below(4) > 0) {
        EXPECT_EQ(numbers.Insert(number), plain.insert(number).second);
      } else if (plain.erase(number) > 0) {
        numbers.Erase(number);
      }
      EXPECT_EQ(numbers.Contains(number), plain.contains(number));
    }
    EXPECT_EQ(numbers.size(), static_cast<int64_t>(plain.size()));
    int64_t unused = 0;
    for (int64_t n = 0; n < static_cast<int64_t>(range) + 5; ++n) {
      if (!plain.contains(n)) {
        ASSERT_EQ(numbers.NthUnused(unused++), n);
      }
    }
  }
}

TEST(UsedNumbers, AnEmptySetHasEveryNumberUnused) {
  UsedNumbers numbers;
  EXPECT_FALSE(numbers.Contains(0));
  EXPECT_EQ(numbers.NthUnused(0), 0);
  EXPECT_EQ(numbers.NthUnused(int64_t{1} << 62), int64_t{1} << 62);
  numbers.Insert(3);
  numbers.Erase(3);
  EXPECT_EQ(numbers.NthUnused(3), 3);
}

}  // namespace
}  // namespace jizi::tuner
