#include "schedulers/model/space.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <set>

#include "schedulers/model/discrete.h"
#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

ParamValue At(const ParameterSpec& parameter, double unit) {
  const std::vector<double> units = {unit};
  return FromUnit({{parameter}}, units).at(parameter.name);
}

std::string Refusal(const ParameterSpec& parameter) {
  const Status status = Validate(Space{{parameter}});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << parameter.name;
  EXPECT_EQ(DetailOf(status).subject, parameter.name);
  EXPECT_FALSE(DetailOf(status).mend.empty());
  return ForPeople(status);
}

TEST(SpaceFromUnit, EveryPointPassesCheckAlsoAtTheEdgesOfTheCube) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "JIZI_TEST_SEED=" << seed);
    Rng rng({seed, 20});
    const Space space = RandomSpace(rng, false);
    ASSERT_TRUE(Validate(space).ok()) << ForPeople(Validate(space));
    for (int i = 0; i < 30; ++i) {
      std::vector<double> unit(space.parameters.size());
      for (double& u : unit) {
        const double edges[] = {0, 0x1p-53, 0.5, 1 - 0x1p-53};
        u = rng.Below(2) == 0 ? rng.Uniform() : edges[rng.Below(4)];
      }
      const Params params = FromUnit(space, unit);
      const Status inside = Check(space, params);
      EXPECT_TRUE(inside.ok()) << ForPeople(inside);
    }
    EXPECT_TRUE(Check(space, Sample(space, rng)).ok());
  }
}

TEST(SpaceFromUnit, IntegersReachBothEnds) {
  const ParameterSpec parameter = Int("n", -3, 4);
  EXPECT_EQ(At(parameter, 0), ParamValue(int64_t{-3}));
  EXPECT_EQ(At(parameter, 0.124), ParamValue(int64_t{-3}));
  EXPECT_EQ(At(parameter, 0.126), ParamValue(int64_t{-2}));
  EXPECT_EQ(At(parameter, 1 - 0x1p-53), ParamValue(int64_t{4}));
  const double far = 0x1p50;
  EXPECT_EQ(At(Int("n", -far, far), 1 - 0x1p-53), ParamValue(int64_t{1} << 50));
}

TEST(SpaceFromUnit, LogBoundsAreExactAndTheMiddleIsGeometric) {
  for (const auto& [min, max] : {std::pair{1e-5, 1e-1}, {3e-7, 0.3}, {1e-300, 1e300}}) {
    const ParameterSpec log = Real("lr", min, max, Scale::kLog);
    EXPECT_EQ(At(log, 0), ParamValue(min));
    EXPECT_LE(std::get<double>(At(log, 1 - 0x1p-53)), max);
    const double middle = std::get<double>(At(log, 0.5));
    EXPECT_NEAR(middle / std::sqrt(min) / std::sqrt(max), 1, 1e-12);
    const ParameterSpec inverse = Real("lr", min, max, Scale::kInverseLog);
    EXPECT_EQ(At(inverse, 0), ParamValue(max));
    EXPECT_NEAR(std::get<double>(At(inverse, 0.25)) / std::get<double>(At(log, 0.75)), 1, 1e-12);
  }
}

TEST(SpaceFromUnit, QuantisedValuesAreTheDecimalsThatAPersonWrites) {
  const ParameterSpec parameter = Real("x", 0.1, 0.7, Scale::kLinear, 0.1);
  EXPECT_EQ(GridValues(parameter.domain).value(),
            (std::vector<ParamValue>{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}));
  EXPECT_EQ(GridValues(Real("x", 0, 0.5, Scale::kLinear, 0.15).domain).value(),
            (std::vector<ParamValue>{0.0, 0.15, 0.3, 0.45}));
  const double third = 1.0 / 3;
  EXPECT_EQ(GridValues(Real("x", 0, 1, Scale::kLinear, third).domain).value(),
            (std::vector<ParamValue>{0.0, third, 2 * third, 3 * third}));
}

TEST(SpaceFromUnit, QuantisedLogTakesWhatRoundsToEachMultiple) {
  const ParameterSpec parameter = Real("x", 0.006, 3.9, Scale::kLog, 1);  // 0 is below min.
  EXPECT_EQ(GridValues(parameter.domain).value(), (std::vector<ParamValue>{1.0, 2.0, 3.0}));
  const double edge = std::log(1.5 / 0.5) / std::log(3.5 / 0.5);
  EXPECT_EQ(At(parameter, edge - 1e-9), ParamValue(1.0));
  EXPECT_EQ(At(parameter, edge + 1e-9), ParamValue(2.0));
}

TEST(SpaceFromUnit, UnboundedDistributionsStayFinite) {
  for (const bool log : {false, true}) {
    for (const double quantum : {0.0, 2.0}) {
      for (const bool integral : {false, true}) {
        if (integral && quantum == 0) continue;
        const ParameterSpec parameter = {
            "x", NumericDomain{Normal{0, 1e308, log}, quantum, integral}, {}};
        ASSERT_TRUE(Validate({{parameter}}).ok());
        for (const double unit : {0.0, 1e-9, 0.5, 1 - 0x1p-53}) {
          const Params params = {{"x", At(parameter, unit)}};
          EXPECT_TRUE(Check({{parameter}}, params).ok()) << ToJsonText(params);
        }
      }
    }
  }
  EXPECT_EQ(At(Real("x", -1e308, 1e308), 0.5), ParamValue(0.0));
}

TEST(SpaceFromUnit, ACoordinateAlwaysMeansTheSameParameter) {
  const Space space = {
      {Choice("a", {true, false}), When(Real("b", 0, 1), "a", {true}), Real("c", 0, 1)}};
  const std::vector<double> on = {0.1, 0.2, 0.3};
  const std::vector<double> off = {0.9, 0.2, 0.3};
  EXPECT_EQ(FromUnit(space, on), (Params{{"a", true}, {"b", 0.2}, {"c", 0.3}}));
  EXPECT_EQ(FromUnit(space, off), (Params{{"a", false}, {"c", 0.3}}));
}

TEST(SpaceCheck, NamesTheFirstParameterThatIsNotRight) {
  const Space space = {{Choice("opt", {std::string("sgd"), std::string("adam")}),
                        When(Real("momentum", 0, 1), "opt", {std::string("sgd")}),
                        Int("batch", 8, 64, 8), Real("lr", 1e-4, 1, Scale::kLog)}};
  const Params good = {
      {"opt", std::string("sgd")}, {"momentum", 0.9}, {"batch", int64_t{16}}, {"lr", 0.1}};
  ASSERT_TRUE(Check(space, good).ok());
  const auto refuses = [&](const std::string& name, std::optional<ParamValue> value) {
    Params params = good;
    value ? void(params[name] = *value) : void(params.erase(name));
    const Status status = Check(space, params);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << ToJsonText(params);
    EXPECT_EQ(DetailOf(status).subject, name);
    EXPECT_FALSE(DetailOf(status).mend.empty());
    return ForPeople(status);
  };
  refuses("momentum", std::nullopt);
  refuses("momentum", 1.5);
  refuses("momentum", kNan);
  refuses("batch", int64_t{17});
  refuses("batch", int64_t{72});
  refuses("batch", 16.0);
  refuses("lr", int64_t{1});
  refuses("lr", 0.0);
  refuses("lr", kInf);
  EXPECT_NE(refuses("opt", std::string("sdg")).find("give one of \"sgd\", \"adam\""),
            std::string::npos);
  EXPECT_NE(refuses("batc", int64_t{8}).find("did you mean \"batch\"?"), std::string::npos);
  Params inactive = good;
  inactive["opt"] = std::string("adam");
  EXPECT_EQ(DetailOf(Check(space, inactive)).subject, "momentum");
}

TEST(SpaceCheck, ComparesListedValuesWithTheirType) {
  const Space space = {{Choice("v", {int64_t{1}, std::string("1")})}};
  EXPECT_TRUE(Check(space, {{"v", int64_t{1}}}).ok());
  EXPECT_TRUE(Check(space, {{"v", std::string("1")}}).ok());
  EXPECT_FALSE(Check(space, {{"v", 1.0}}).ok());
  EXPECT_FALSE(Check(space, {{"v", true}}).ok());
}

TEST(SpaceCoerce, GivesTypedNumbersTheTypeOfTheSpaceAndNothingElse) {
  const Space space = {{Real("lr", 0, 1), Int("n", 0, 99), Choice("c", {1.0, 2.0}),
                        Choice("both", {int64_t{1}, 1.5, 1.0})}};
  EXPECT_EQ(Coerce(space, {{"lr", int64_t{1}}, {"n", 64.0}, {"c", int64_t{2}}, {"both", 1.0}}),
            (Params{{"lr", 1.0}, {"n", int64_t{64}}, {"c", 2.0}, {"both", 1.0}}));
  const Params kept = {{"lr", std::string("1")}, {"n", 6.5}, {"c", int64_t{3}}, {"x", int64_t{1}}};
  EXPECT_EQ(Coerce(space, kept), kept);
  EXPECT_EQ(Coerce(space, {{"n", 1e300}}), (Params{{"n", 1e300}}));
}

TEST(SpaceValidate, RefusesImpossibleNumbersWithTheMend) {
  const auto numeric = [](auto distribution, double quantum = 0, bool integral = false) {
    return ParameterSpec{"x", NumericDomain{distribution, quantum, integral}, {}};
  };
  Refusal(numeric(Uniform{2, 1}));
  Refusal(numeric(Uniform{kNan, 1}));
  Refusal(numeric(Uniform{0, kInf}));
  Refusal(numeric(Uniform{0, 1, Scale::kLog}));
  Refusal(numeric(Uniform{-1, 1, Scale::kInverseLog}));
  Refusal(numeric(Normal{0, 0}));
  Refusal(numeric(Normal{kNan, 1}));
  Refusal(numeric(Beta{0, 1}));
  Refusal(numeric(Beta{1, 1e7}));
  Refusal(numeric(Uniform{0, 1}, -0.1));
  Refusal(numeric(Uniform{0, 1}, kNan));
  Refusal(numeric(Uniform{0, 9}, 1.5, true));
  Refusal(numeric(Uniform{0, 9}, 0, true));
  Refusal(numeric(Uniform{0, 1e300}, 1, true));
  Refusal(numeric(Uniform{0, 1}, 1e-300));
  EXPECT_NE(Refusal(numeric(Uniform{0.2, 0.8}, 1)).find("no multiple of the step 1.0"),
            std::string::npos);
  EXPECT_TRUE(Validate({{numeric(Uniform{0.25, 1}, 1)}}).ok());
  EXPECT_TRUE(Validate({{numeric(Uniform{3, 3})}}).ok());
}

TEST(SpaceValidate, RefusesImpossibleListsAndNames) {
  Refusal(Choice("c", {}));
  Refusal(Choice("c", {1.0, 1.0}));
  Refusal(Choice("c", {kNan}));
  Refusal(Choice("c", {std::string("\xFF")}));
  Refusal(Choice("c", {1.0, 2.0}, {0.5}));
  Refusal(Choice("c", {1.0, 2.0}, {0.5, 0.6}));
  Refusal(Choice("c", {1.0, 2.0}, {1.0, 0.0}));
  Refusal(Fixed("c", kInf));
  EXPECT_TRUE(
      Validate({{Choice("c", {int64_t{1}, 1.0, true, std::string("1"), JsonText{"1"}})}}).ok());
  EXPECT_FALSE(Validate({{Fixed("", 1.0)}}).ok());
  EXPECT_FALSE(Validate({{Fixed("a\nb", 1.0)}}).ok());
  EXPECT_FALSE(Validate({{Fixed("a", 1.0), Fixed("a", 2.0)}}).ok());
  Space many;
  for (size_t i = 0; i <= kMaxParameters; ++i)
    many.parameters.push_back(Fixed("p" + std::to_string(i), 1.0));
  EXPECT_FALSE(Validate(many).ok());
  many.parameters.pop_back();
  EXPECT_TRUE(Validate(many).ok());
}

TEST(SpaceValidate, WantsParentsFirstAndConditionsThatCanHold) {
  const ParameterSpec parent = Choice("opt", {std::string("sgd"), std::string("adam")});
  const auto text = [](const Space& space) { return ForPeople(Validate(space)); };
  EXPECT_TRUE(Validate({{parent, When(Real("m", 0, 1), "opt", {std::string("sgd")})}}).ok());
  EXPECT_NE(
      text({{When(Real("m", 0, 1), "opt", {std::string("sgd")}), parent}}).find("parent first"),
      std::string::npos);
  EXPECT_NE(text({{parent, When(Real("m", 0, 1), "otp", {std::string("sgd")})}})
                .find("did you mean \"opt\"?"),
            std::string::npos);
  EXPECT_NE(text({{When(Real("m", 0, 1), "m", {0.5})}}).find("circle"), std::string::npos);
  EXPECT_NE(
      text({{parent, When(Real("m", 0, 1), "opt", {std::string("sdg")})}}).find("it never is"),
      std::string::npos);
  EXPECT_NE(text({{parent, When(Real("m", 0, 1), "opt", {})}}).find("lists 0 values"),
            std::string::npos);
  EXPECT_NE(text({{Int("n", 0, 3), When(Real("m", 0, 1), "n", {2.0})}}).find("it never is"),
            std::string::npos);
}

TEST(SpaceValidate, AnIntsStepIsAWholeNumberThatAnIntCanHold) {
  for (const double step : {0.0, 0.5, 1e300, kInf, kNan}) {
    Refusal({"n", NumericDomain{Normal{0, 1}, step, true}, {}});
  }
  EXPECT_TRUE(Validate(Space{{{"n", NumericDomain{Normal{0, 1}, 2, true}, {}}}}).ok());
}

// Looking each value up in a copy of the list took minutes for the largest request.
TEST(SpaceValidate, ThousandsOfConditionValuesAreQuick) {
  std::vector<ParamValue> values;
  for (int64_t i = 0; i < 3000; ++i) values.emplace_back(i);
  Space space{{Choice("parent", values)}};
  for (int i = 0; i < 10; ++i) {
    space.parameters.push_back(When(Fixed("c" + std::to_string(i), true), "parent", values));
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(Validate(space).ok());
  EXPECT_EQ(CountPoints(space), 3000);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  space.parameters.back().when[0].any_of.back() = int64_t{3000};
  EXPECT_EQ(DetailOf(Validate(space)).subject, "c9");
}

TEST(SpaceCheckValue, IsTheCheckOfOneParameter) {
  EXPECT_TRUE(CheckValue(Int("n", 1, 3), int64_t{3}).ok());
  EXPECT_FALSE(CheckValue(Int("n", 1, 3), int64_t{4}).ok());
  EXPECT_FALSE(CheckValue(Choice("c", {1.0, "a"}), int64_t{1}).ok());
  EXPECT_TRUE(CheckValue(Fixed("f", true), true).ok());
}

TEST(SpaceGridValues, AreAscendingNumbersOrTheListAsWritten) {
  EXPECT_EQ(GridValues(Int("n", -1, 1).domain).value(),
            (std::vector<ParamValue>{int64_t{-1}, int64_t{0}, int64_t{1}}));
  EXPECT_EQ(GridValues(Choice("c", {2.0, 1.0}).domain).value(),
            (std::vector<ParamValue>{2.0, 1.0}));
  EXPECT_EQ(GridValues(Fixed("c", true).domain).value(), (std::vector<ParamValue>{true}));
  EXPECT_EQ(GridValues(NumericDomain{Beta{2, 2}, 0.5, false}).value(),
            (std::vector<ParamValue>{0.0, 0.5, 1.0}));
  EXPECT_FALSE(GridValues(Real("x", 0, 1).domain));
  EXPECT_FALSE(GridValues(NumericDomain{Normal{}, 1, false}));
  EXPECT_FALSE(GridValues(Int("n", 0, 1e9).domain));
}

}  // namespace
}  // namespace jizi::tuner
