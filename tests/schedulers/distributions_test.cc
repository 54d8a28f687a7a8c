// Do draws follow their distributions? Kolmogorov-Smirnov and chi-square with limits that a right
// sampler passes on all but about one seed in a million.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "schedulers/model/quantile.h"
#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

constexpr int kDraws = 20000;

std::vector<ParamValue> Draws(const ParameterSpec& parameter, uint64_t stream) {
  Rng rng({TestSeed(), stream});
  const Space space = {{parameter}};
  std::vector<ParamValue> values;
  for (int i = 0; i < kDraws; ++i) values.push_back(Sample(space, rng).at(parameter.name));
  return values;
}

void ExpectContinuous(const ParameterSpec& parameter, const std::function<double(double)>& cdf) {
  std::vector<double> values;
  for (const ParamValue& value : Draws(parameter, 30)) values.push_back(std::get<double>(value));
  std::sort(values.begin(), values.end());
  double gap = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double p = cdf(values[i]);
    gap = std::max(
        {gap, p - static_cast<double>(i) / kDraws, static_cast<double>(i + 1) / kDraws - p});
  }
  EXPECT_LT(gap * std::sqrt(kDraws), 2.7) << parameter.name;  // 2 exp(-2 * 2.7^2) is 9e-7.
}

void ExpectDiscrete(const ParameterSpec& parameter,
                    const std::map<ParamValue, double>& probability) {
  std::map<ParamValue, double> counts;
  for (const ParamValue& value : Draws(parameter, 31)) counts[value] += 1;
  double chi_squared = 0;
  for (const auto& [value, p] : probability) {
    const double expected = p * kDraws;
    chi_squared += (counts[value] - expected) * (counts[value] - expected) / expected;
  }
  for (const auto& [value, count] : counts)
    EXPECT_TRUE(probability.contains(value)) << ToJsonText(value);
  const double degrees = static_cast<double>(probability.size()) - 1;
  EXPECT_LT(chi_squared, degrees + 7 * std::sqrt(2 * degrees) + 20) << parameter.name;
}

double NormalProbability(double x) {
  return std::erfc(-x / std::sqrt(2)) / 2;
}

ParameterSpec Numeric(std::string name, decltype(NumericDomain::distribution) distribution,
                      double quantum = 0, bool integral = false) {
  return {std::move(name), NumericDomain{distribution, quantum, integral}, {}};
}

TEST(Distributions, Uniform) {
  ExpectContinuous(Real("uniform", -2, 3), [](double x) { return (x + 2) / 5; });
}
TEST(Distributions, LogUniformAndItsInverse) {
  const auto cdf = [](double x) { return std::log(x / 1e-4) / std::log(1e4); };
  ExpectContinuous(Real("log", 1e-4, 1, Scale::kLog), cdf);
  ExpectContinuous(Real("inverse log", 1e-4, 1, Scale::kInverseLog), cdf);
}
TEST(Distributions, NormalAndLogNormal) {
  ExpectContinuous(Numeric("normal", Normal{3, 2, false}),
                   [](double x) { return NormalProbability((x - 3) / 2); });
  ExpectContinuous(Numeric("log normal", Normal{-1, 0.5, true}),
                   [](double x) { return NormalProbability((std::log(x) + 1) / 0.5); });
}
TEST(Distributions, BetaOfAnyShape) {
  for (const auto& [a, b] : {std::pair{2.0, 5.0}, {0.5, 0.5}, {1.0, 1.0}, {80.0, 3.0}}) {
    ExpectContinuous(Numeric("beta", Beta{a, b}),
                     [a, b](double x) { return BetaProbability(x, a, b); });
  }
}
TEST(Distributions, IntegersAndStepsAreAllAlikeTheEndsIncluded) {
  std::map<ParamValue, double> ints, steps;
  for (int64_t i = -3; i <= 6; ++i) ints[i] = 0.1;
  for (const double x : {0.25, 0.5, 0.75, 1.0}) steps[x] = 0.25;
  ExpectDiscrete(Int("int", -3, 6), ints);
  ExpectDiscrete(Real("steps", 0.1, 1.1, Scale::kLinear, 0.25), steps);
}
TEST(Distributions, QuantisedLogUniform) {
  std::map<ParamValue, double> expected;
  for (int64_t k = 1; k <= 5; ++k) {
    const auto x = static_cast<double>(k);
    expected[k] = std::log((x + 0.5) / (x - 0.5)) / std::log(5.5 / 0.5);
  }
  ExpectDiscrete(Numeric("q_log", Uniform{1, 5, Scale::kLog}, 1, true), expected);
}
TEST(Distributions, QuantisedNormalAndBetaTakeWhatRoundsToThem) {
  std::map<ParamValue, double> normal, beta;
  for (int64_t k = -12; k <= 12; k += 2) {
    const auto x = static_cast<double>(k);
    normal[k] = NormalProbability((x + 1) / 2) - NormalProbability((x - 1) / 2);
  }
  ExpectDiscrete(Numeric("q_normal", Normal{0, 2, false}, 2, true), normal);
  for (const double x : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    beta[x] = BetaProbability(x + 0.125, 2, 3) - BetaProbability(x - 0.125, 2, 3);
  }
  ExpectDiscrete(Numeric("q_beta", Beta{2, 3}, 0.25), beta);
}
TEST(Distributions, CategoricalWithAndWithoutProbabilities) {
  ExpectDiscrete(Choice("alike", {true, int64_t{1}, 1.0}),
                 {{true, 1.0 / 3}, {int64_t{1}, 1.0 / 3}, {1.0, 1.0 / 3}});
  ExpectDiscrete(Choice("weighted", {1.0, 2.0, 3.0}, {0.7, 0.2, 0.1}),
                 {{1.0, 0.7}, {2.0, 0.2}, {3.0, 0.1}});
}

}  // namespace
}  // namespace jizi::tuner
