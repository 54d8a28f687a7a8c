#include "schedulers/model/points.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

TEST(Points, CountNumberAndPointAgreeWithBruteForceOnConditionalSpaces) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "JIZI_TEST_SEED=" << seed);
    Rng rng({seed, 10});
    const Space space = RandomSpace(rng, true);
    ASSERT_TRUE(Validate(space).ok()) << ForPeople(Validate(space));
    std::vector<Params> expected = AllPoints(space);
    const auto points = Points::Of(space);
    ASSERT_TRUE(points);
    ASSERT_EQ(points->count(), static_cast<int64_t>(expected.size()));
    std::vector<Params> listed;
    for (int64_t i = 0; i < points->count(); ++i) {
      listed.push_back(points->At(i));
      EXPECT_EQ(points->NumberOf(listed.back()), i);
      EXPECT_TRUE(Check(space, listed.back()).ok());
    }
    std::sort(expected.begin(), expected.end());
    std::sort(listed.begin(), listed.end());
    EXPECT_EQ(listed, expected);
  }
}

TEST(Points, WithoutConditionsTheOrderIsThatOfNestedLoops) {
  const Space space = {{Int("z", 0, 2), Choice("b", {true, false}), Int("a", 5, 6)}};
  const std::vector<Params> expected = AllPoints(space);
  const auto points = Points::Of(space);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(points->At(static_cast<int64_t>(i)), expected[i]);
  }
}

TEST(Points, CountsOnlyWhatConditionsLetBeReached) {
  const Space space = {{Choice("optimizer", {std::string("sgd"), std::string("adam")}),
                        When(Choice("nesterov", {true, false}), "optimizer", {std::string("sgd")}),
                        When(Int("momentum", 1, 3), "nesterov", {true}), Int("batch", 1, 10)}};
  EXPECT_EQ(CountPoints(space), (3 + 1 + 1) * 10);
}

TEST(Points, ManySwitchesThatAreListedBeforeTheirChildrenAreCounted) {
  Space space;  // 30 groups: no state spans them.
  for (int i = 0; i < 30; ++i)
    space.parameters.push_back(Choice("s" + std::to_string(i), {true, false}));
  for (int i = 0; i < 30; ++i) {
    space.parameters.push_back(
        When(Choice("c" + std::to_string(i), {true, false}), "s" + std::to_string(i), {true}));
  }
  int64_t expected = 1;
  for (int i = 0; i < 30; ++i) expected *= 3;
  EXPECT_EQ(CountPoints(space), expected);
}

TEST(Points, AnIntRangeAsParentTakesNoListOfItsValues) {
  const Space space = {
      {Int("layers", 1, 1e12), When(Int("width", 1, 4), "layers", {int64_t{2}, int64_t{7}})}};
  EXPECT_EQ(CountPoints(space), 1'000'000'000'000 - 2 + 8);
  const auto points = Points::Of(space);
  EXPECT_EQ(points->At(0), (Params{{"layers", int64_t{1}}}));
  EXPECT_EQ(points->At(1), (Params{{"layers", int64_t{2}}, {"width", int64_t{1}}}));
  EXPECT_EQ(points->At(5), (Params{{"layers", int64_t{3}}}));
  EXPECT_EQ(points->NumberOf({{"layers", int64_t{7}}, {"width", int64_t{4}}}), 12);
}

TEST(Points, AreEmptyForContinuousUnboundedOrTooEntangledSpaces) {
  EXPECT_FALSE(CountPoints({{Real("x", 0, 1)}}));
  EXPECT_FALSE(CountPoints({{{"x", NumericDomain{Normal{}, 1, true}, {}}}}));
  Space space;  // One child that asks for 20 switches: a million states.
  for (int i = 0; i < 20; ++i)
    space.parameters.push_back(Choice("s" + std::to_string(i), {true, false}));
  ParameterSpec child = Int("child", 0, 1);
  for (int i = 0; i < 20; ++i) child = When(child, "s" + std::to_string(i), {true});
  for (int i = 0; i < 20; ++i) {
    space.parameters.push_back(
        When(Int("c" + std::to_string(i), 0, 1), "s" + std::to_string(i), {true}));
  }
  space.parameters.push_back(child);
  ASSERT_TRUE(Validate(space).ok());
  EXPECT_FALSE(CountPoints(space));
}

TEST(Points, SaturateAtInt64Max) {
  Space space;
  for (int i = 0; i < 70; ++i) space.parameters.push_back(Int("p" + std::to_string(i), 0, 9));
  EXPECT_EQ(CountPoints(space), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(CountPoints({}), 1);
}

TEST(Points, AForeignPointHasNoNumber) {
  const auto points =
      Points::Of({{Choice("a", {int64_t{1}, true}), When(Int("b", 0, 1), "a", {true})}});
  ASSERT_TRUE(points);
  EXPECT_EQ(points->count(), 3);
  for (const Params& params :
       {Params{}, Params{{"a", 1.0}}, Params{{"a", true}},
        Params{{"a", int64_t{1}}, {"b", int64_t{0}}}, Params{{"a", true}, {"b", int64_t{2}}},
        Params{{"a", int64_t{1}}, {"z", true}}}) {
    EXPECT_FALSE(points->NumberOf(params)) << ToJsonText(params);
  }
}

}  // namespace
}  // namespace jizi::tuner
