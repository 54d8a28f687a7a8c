#include "schedulers/model/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

// The outputs that the authors' programs give, as published with other implementations.
TEST(Rng, SplitMix64GivesTheReferenceOutputs) {
  SplitMix64 generator{1234567};
  for (const uint64_t expected : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                  4593380528125082431u, 16408922859458223821u}) {
    EXPECT_EQ(generator.Next(), expected);
  }
}

TEST(Rng, Xoshiro256GivesTheReferenceOutputs) {
  Xoshiro256 generator{{1, 2, 3, 4}};
  const std::vector<uint64_t> expected = {11520u,
                                          0u,
                                          1509978240u,
                                          1215971899390074240u,
                                          1216172134540287360u,
                                          607988272756665600u,
                                          16172922978634559625u,
                                          8476171486693032832u,
                                          10595114339597558777u,
                                          2904607092377533576u};
  for (const uint64_t output : expected) EXPECT_EQ(generator.Next(), output);
}

TEST(Rng, AStreamIsSplitMix64OfTheKeysHashInXoshiro256) {
  SplitMix64 seeds{HashOf({3, 4})};
  Xoshiro256 reference{{seeds.Next(), seeds.Next(), seeds.Next(), seeds.Next()}};
  Rng rng({3, 4});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rng.Next(), reference.Next());
}

TEST(Rng, KeysThatDifferInAWordTheOrderOrTheLengthGiveOtherStreams) {
  std::set<uint64_t> first;
  size_t streams = 0;
  for (uint64_t a = 0; a < 40; ++a) {
    for (uint64_t b = 0; b < 40; ++b, ++streams) first.insert(Rng({a, b}).Next());
    first.insert(Rng({a}).Next());
    first.insert(Rng({a, 0, 0}).Next());
    streams += 2;
  }
  EXPECT_EQ(first.size(), streams);
  EXPECT_NE(Rng::ForSuggest(7, 1).Next(), Rng::ForChange(7, 1, 0, 0, 0, 0).Next());
  EXPECT_NE(Rng::ForChange(7, 1, 2, 0, 0, 0).Next(), Rng::ForChange(7, 1, 0, 2, 0, 0).Next());
  EXPECT_EQ(Rng::ForSuggest(7, 1).Next(), Rng::ForSuggest(7, 1).Next());
}

TEST(Rng, UniformIsInTheHalfOpenIntervalWithMeanOneHalf) {
  Rng rng({TestSeed(), 3});
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const double u = rng.Uniform();
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 6 * std::sqrt(1.0 / 12 / 100000));
}

TEST(Rng, BelowGivesEveryNumberAlike) {
  Rng rng({TestSeed(), 4});
  EXPECT_EQ(rng.Below(1), 0u);
  std::vector<double> counts(7);
  for (int i = 0; i < 70000; ++i) counts.at(rng.Below(7)) += 1;
  double chi_squared = 0;
  for (const double count : counts) chi_squared += (count - 10000) * (count - 10000) / 10000;
  EXPECT_LT(chi_squared, 40);  // 6 degrees of freedom: above 40 once in two million.
  // With 3 * 2^62 a biased method gives the lower third half of all draws.
  int low = 0;
  for (int i = 0; i < 30000; ++i) low += rng.Below(uint64_t{3} << 62) < (uint64_t{1} << 62);
  EXPECT_NEAR(low, 10000, 500);
}

TEST(Rng, NormalHasMeanZeroVarianceOneAndTheRightTails) {
  Rng rng({TestSeed(), 5});
  double sum = 0, squares = 0;
  int beyond_two = 0;
  const int count = 100000;
  for (int i = 0; i < count; ++i) {
    const double x = rng.Normal();
    sum += x;
    squares += x * x;
    beyond_two += std::abs(x) > 2;
  }
  EXPECT_NEAR(sum / count, 0, 6 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 6 * std::sqrt(2.0 / count));
  EXPECT_NEAR(beyond_two, 0.0455 * count, 6 * std::sqrt(0.0455 * count));
}

}  // namespace
}  // namespace jizi::tuner
