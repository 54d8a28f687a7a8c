// What method tpe promises beyond the contract of every scheduler.
#include "schedulers/tpe/tpe.h"

#include <gtest/gtest.h>

#include <cmath>

#include "schedulers/tpe/mixture.h"
#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

Point At(double x, double y) {
  return Eigen::Vector2d(x, y);
}

TEST(Mixture, IsADensityOverNumbersAndAProbabilityOverCategories) {
  const std::vector<ParamValue> values = {std::string("a"), std::string("b"), std::string("c")};
  const Encoding encoding({{Real("x", 0, 1), Choice("c", values)}});
  for (const size_t count : {0, 1, 3, 40}) {
    std::vector<Point> points;
    Rng rng({TestSeed(), count});
    for (size_t i = 0; i < count; ++i) {
      points.push_back(At(rng.Uniform(), rng.Uniform()));
      encoding.Settle(points.back());
    }
    const Mixture mixture(encoding, {0, 1}, points);
    double total = 0;
    constexpr int kCells = 2000;
    for (int cell = 0; cell < kCells; ++cell) {
      for (const double unit : encoding.coordinates()[1].units) {
        total += std::exp(mixture.LogDensity(At((cell + 0.5) / kCells, unit))) / kCells;
      }
    }
    EXPECT_NEAR(total, 1, 1e-4) << count;
  }
}

TEST(Mixture, DrawsWhereItsDensityIs) {
  const Encoding encoding({{Real("x", 0, 1), Int("n", 0, 9)}});
  const std::vector<Point> points(30, At(0.2, 0.75));
  const Mixture mixture(encoding, {0, 1}, points);
  Rng rng({TestSeed(), 71});
  double x = 0, n = 0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    Point point = At(0, 0);
    mixture.Draw(rng, point);
    ASSERT_TRUE(point[0] >= 0 && point[0] < 1);
    x += point[0] / kDraws;
    n += point[1] / kDraws;
  }
  EXPECT_NEAR(x, 0.21, 0.03);
  EXPECT_NEAR(n, 0.74, 0.03);
}

double Play(const char* method, uint64_t seed, int trials) {
  const std::vector<ParamValue> sgd = {std::string("sgd")};
  Study study = StudyOf(
      SpecOf({{Choice("optimizer", {std::string("sgd"), std::string("adam")}),
               Real("lr", 1e-5, 1, Scale::kLog), When(Real("momentum", 0, 1), "optimizer", sgd),
               When(Real("decay", 0, 1), "optimizer", sgd)}},
             method, "{}", seed));
  const auto scheduler = MakeScheduler(*study.spec).value();
  Memo memo;
  double best = 1e9;
  for (int64_t decision = 1; decision <= trials; ++decision) {
    const auto answer = scheduler->Suggest(study, 1, Rng::ForSuggest(seed, decision), memo);
    EXPECT_TRUE(answer.ok());
    Accept(study, answer->start, decision, TrialState::kRunning);
    const Params& params = answer->start[0].params;
    double value = std::pow(std::log10(std::get<double>(params.at("lr"))) + 2, 2);
    if (params.contains("momentum")) {
      value += std::pow(std::get<double>(params.at("momentum")) - 0.8, 2) +
               std::pow(std::get<double>(params.at("decay")) - 0.1, 2);
    } else {
      value += 0.3;
    }
    Trial& trial = study.trials.Mutable(study.trials.size() - 1).Mutable();
    trial.state = TrialState::kCompleted;
    trial.objective = value;
    best = std::min(best, value);
  }
  return best;
}

TEST(Tpe, IsHalfAsFarAsRandomOnAConditionalSpace) {
  double ours = 0, random = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    ours += Play("tpe", seed, 60);
    random += Play("random", seed, 60);
  }
  EXPECT_LT(2 * ours, random);
}

TEST(Tpe, WrongSettingsAreRefused) {
  for (const char* settings : {R"({"initial": 0})", R"({"candidates": "many"})",
                               R"({"good_share": 1})", R"({"gamma": 0.1})"}) {
    const auto made = MakeScheduler(SpecOf({{Real("x", 0, 1)}}, "tpe", settings));
    EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument) << settings;
  }
}

}  // namespace
}  // namespace jizi::tuner
