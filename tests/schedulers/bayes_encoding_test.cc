#include <gtest/gtest.h>

#include "schedulers/bayes/encoding.h"
#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

Eigen::RowVectorXd FeaturesOf(const Encoding& encoding, const Params& params) {
  Eigen::RowVectorXd row(static_cast<Eigen::Index>(encoding.feature_of_column().size()));
  encoding.Features(encoding.ToPoint(params), row);
  return row;
}

double SquaredDistance(const Encoding& encoding, const Params& a, const Params& b) {
  return (FeaturesOf(encoding, a) - FeaturesOf(encoding, b)).squaredNorm();
}

TEST(ToUnit, IsTheWayBackOfFromUnitInEverySpace) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "JIZI_TEST_SEED=" << seed);
    Rng rng({seed, 31});
    const Space space = RandomSpace(rng, false);
    const Params params = Sample(space, rng);
    const Params again = FromUnit(space, ToUnit(space, params));
    ASSERT_EQ(params.size(), again.size());
    for (const auto& [name, value] : params) {
      const auto* real = std::get_if<double>(&value);
      if (real == nullptr) {
        EXPECT_EQ(again.at(name), value) << name;
      } else {
        EXPECT_NEAR(std::get<double>(again.at(name)), *real, 1e-7 * (1 + std::abs(*real))) << name;
      }
    }
  }
}

TEST(ToUnit, IsTheMiddleOfWhatAValueOwns) {
  const Space space = {{Int("n", 0, 3), Choice("c", {true, false}, {0.9, 0.1})}};
  const auto unit = ToUnit(space, {{"n", int64_t{2}}, {"c", false}});
  EXPECT_DOUBLE_EQ(unit[0], 0.625);
  EXPECT_DOUBLE_EQ(unit[1], 0.95);
}

TEST(Encoding, ALogarithmicNumberIsEvenInItsExponent) {
  const Encoding encoding({{Real("lr", 1e-4, 1, Scale::kLog)}});
  EXPECT_NEAR(FeaturesOf(encoding, {{"lr", 1e-2}})[0], 0.5, 1e-12);
  EXPECT_NEAR(FeaturesOf(encoding, {{"lr", 1e-3}})[0], 0.25, 1e-12);
}

TEST(Encoding, WhatRoundsToTheSameStepHasTheSameFeatures) {
  const Encoding few({{Int("n", 1, 5)}});
  const Encoding many({{Int("n", 1, 500)}});
  for (const Encoding* encoding : {&few, &many}) {
    Point low(1), high(1);
    low[0] = 0.4001;
    high[0] = 0.4009;
    EXPECT_EQ(encoding->Canonical(low), encoding->Canonical(high));
  }
}

TEST(Encoding, TwoCategoriesAreAtADistanceOfOneWhateverTheirOrder) {
  const std::vector<ParamValue> values = {std::string("a"), std::string("b"), std::string("c")};
  const Encoding encoding({{Choice("c", values)}});
  EXPECT_EQ(encoding.features(), 1);
  for (const ParamValue& a : values) {
    for (const ParamValue& b : values) {
      EXPECT_NEAR(SquaredDistance(encoding, {{"c", a}}, {{"c", b}}), a == b ? 0 : 1, 1e-12);
    }
  }
}

TEST(Encoding, AListOfNumbersIsANumberByRank) {
  const Encoding encoding({{Choice("batch", {int64_t{128}, int64_t{32}, int64_t{64}})}});
  const double small = FeaturesOf(encoding, {{"batch", int64_t{32}}})[0];
  const double middle = FeaturesOf(encoding, {{"batch", int64_t{64}}})[0];
  const double large = FeaturesOf(encoding, {{"batch", int64_t{128}}})[0];
  EXPECT_NEAR(middle - small, large - middle, 1e-12);
  EXPECT_LT(small, large);
}

TEST(Encoding, AnAbsentParameterHasNoCoordinateButItsAbsenceCounts) {
  const Encoding encoding({{Choice("optimizer", {std::string("sgd"), std::string("adam")}),
                            When(Real("momentum", 0, 1), "optimizer", {std::string("sgd")})}});
  EXPECT_EQ(encoding.features(), 3);
  const Params adam = {{"optimizer", std::string("adam")}};
  const Params sgd = {{"optimizer", std::string("sgd")}, {"momentum", 0.5}};
  EXPECT_NEAR(SquaredDistance(encoding, adam, sgd), 1 + 1, 1e-12);
  Point one(2), other(2);
  one << 0.75, 0.1;
  other << 0.75, 0.9;
  encoding.Settle(one);
  encoding.Settle(other);
  EXPECT_EQ(one, other);
  EXPECT_EQ(encoding.ToParams(one), adam);
}

TEST(Encoding, ASettledPointStandsForTheParametersThatItIs) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "JIZI_TEST_SEED=" << seed);
    Rng rng({seed, 32});
    const Space space = RandomSpace(rng, false);
    const Encoding encoding(space);
    Point point(static_cast<Eigen::Index>(space.parameters.size()));
    for (double& unit : point) unit = rng.Uniform();
    const Params before = encoding.ToParams(point);
    encoding.Settle(point);
    EXPECT_EQ(encoding.ToParams(point), before);
    EXPECT_TRUE(Check(space, before).ok());
  }
}

}  // namespace
}  // namespace jizi::tuner
