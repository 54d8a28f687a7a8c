#include "schedulers/brute_force/sobol.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <vector>

#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

// First 30 bits of unscrambled points in six dimensions, by another implementation of Joe & Kuo's
// numbers.
TEST(Sobol, UnscrambledPointsAreThoseOfTheReference) {
  constexpr int kDimensions[] = {0, 1, 2, 6, 40, 255};
  struct Row {
    int64_t point;
    std::vector<uint64_t> bits;
  };
  const std::vector<Row> rows = {
      {1, {536870912, 536870912, 536870912, 536870912, 536870912, 536870912}},
      {2, {805306368, 268435456, 268435456, 268435456, 268435456, 805306368}},
      {3, {268435456, 805306368, 805306368, 805306368, 805306368, 268435456}},
      {7, {134217728, 671088640, 402653184, 671088640, 134217728, 134217728}},
      {100, {444596224, 276824064, 830472192, 25165824, 763363328, 612368384}},
      {1023, {1048576, 808452096, 657457152, 149946368, 678428672, 904921088}}};
  for (const Row& row : rows) {
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(SobolBits(kDimensions[i], row.point), row.bits[i] << 23) << row.point << " " << i;
    }
  }
}

TEST(Sobol, EveryDimensionHasOneScrambledPointInEachDyadicInterval) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, TestSeed() + 1000}) {
    for (int dimension = 0; dimension < kSobolDimensions; ++dimension) {
      for (const int64_t count : {4, 64}) {
        std::set<int64_t> hit;
        for (int64_t point = 0; point < count; ++point) {
          const double u = ScrambledSobol(seed, dimension, point);
          ASSERT_TRUE(u >= 0 && u < 1);
          hit.insert(static_cast<int64_t>(u * static_cast<double>(count)));
        }
        ASSERT_EQ(hit.size(), static_cast<size_t>(count)) << seed << " " << dimension;
      }
    }
  }
}

// The net property in two dimensions: for the first two dimensions (a (0, 2)-sequence) every
// elementary box of area 2^-k has one point.
TEST(Sobol, TheFirstTwoDimensionsFillEveryElementaryBox) {
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2}}) {
    for (int split = 0; split <= 6; ++split) {
      std::set<std::pair<int, int>> hit;
      for (int64_t point = 0; point < 64; ++point) {
        hit.emplace(static_cast<int>(ScrambledSobol(seed, 0, point) * (1 << split)),
                    static_cast<int>(ScrambledSobol(seed, 1, point) * (1 << (6 - split))));
      }
      EXPECT_EQ(hit.size(), 64u) << split;
    }
  }
}

TEST(Sobol, ScramblesKeepCommonPrefixesAndSeedsAndDimensionsDiffer) {
  Rng rng({TestSeed(), 8});
  for (int i = 0; i < 200; ++i) {
    const uint64_t a = rng.Next() >> 11;
    const uint64_t b = a ^ (rng.Next() >> (12 + rng.Below(40)));
    const uint64_t mixed_a = OwenScramble(a, 5, 3);
    const uint64_t mixed_b = OwenScramble(b, 5, 3);
    // Nested: the first differing bit stays where it is.
    EXPECT_EQ(std::countl_zero(a ^ b), std::countl_zero(mixed_a ^ mixed_b));
  }
  EXPECT_NE(OwenScramble(12345, 1, 0), OwenScramble(12345, 2, 0));
  EXPECT_NE(OwenScramble(12345, 1, 0), OwenScramble(12345, 1, 1));
}

}  // namespace
}  // namespace jizi::tuner
