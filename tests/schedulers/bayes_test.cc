// What method bayes promises beyond the contract of every scheduler.
#include "schedulers/bayes/bayes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "schedulers/bayes/history.h"
#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

std::unique_ptr<Scheduler> Make(const StudySpec& spec) {
  auto scheduler = MakeScheduler(spec);
  EXPECT_TRUE(scheduler.ok()) << ForPeople(scheduler.status());
  return std::move(scheduler).value();
}

// The trial has ended with this value; NaN: infeasible.
void End(Study& study, size_t index, double value) {
  Trial& trial = study.trials.Mutable(index).Mutable();
  trial.state = std::isnan(value) ? TrialState::kInfeasible : TrialState::kCompleted;
  if (!std::isnan(value)) trial.objective = value;
  trial.ended = Timestamp(std::chrono::microseconds(study.trials.size()));
}

using Objective = double (*)(const Params& params);

// Plays trials one by one; the best value found.
double Play(StudySpec spec, Objective objective, int trials) {
  Study study = StudyOf(std::move(spec));
  const auto scheduler = Make(*study.spec);
  Memo memo;
  double best = std::numeric_limits<double>::infinity();
  for (int64_t decision = 1; decision <= trials; ++decision) {
    const auto answer =
        scheduler->Suggest(study, 1, Rng::ForSuggest(study.spec->seed, decision), memo);
    EXPECT_TRUE(answer.ok());
    if (answer->start.empty()) break;
    Accept(study, answer->start, decision, TrialState::kRunning);
    const double value = objective(answer->start[0].params);
    End(study, study.trials.size() - 1, value);
    if (!std::isnan(value)) best = std::min(best, value);
  }
  return best;
}

double Number(const Params& params, const char* name) {
  return std::get<double>(params.at(name));
}

double Bowl(const Params& params) {
  return std::pow(Number(params, "x") - 0.31, 2) + 3 * std::pow(Number(params, "y") + 0.2, 2);
}
double Mixed(const Params& params) {
  const double lr = std::log10(Number(params, "lr"));
  const bool adam = params.at("optimizer") == ParamValue(std::string("adam"));
  const double depth = static_cast<double>(std::get<int64_t>(params.at("depth")));
  const double at = adam ? std::pow(lr + 3, 2) : 0.3 + std::pow(lr + 1, 2);
  const double momentum = adam ? 0 : std::pow(Number(params, "momentum") - 0.9, 2);
  return at + momentum + 0.05 * std::pow(depth - 4, 2);
}
// Half of the space diverges, and the best stands at the edge of it.
double Cliff(const Params& params) {
  const double x = Number(params, "x");
  if (x > 0.7) return std::nan("");
  return std::pow(x - 0.72, 2) + std::pow(Number(params, "y"), 2);
}

Space Square() {
  return {{Real("x", -1, 1), Real("y", -1, 1)}};
}
Space MixedSpace() {
  return {{Choice("optimizer", {std::string("sgd"), std::string("adam")}),
           Real("lr", 1e-5, 1, Scale::kLog),
           When(Real("momentum", 0, 1), "optimizer", {std::string("sgd")}), Int("depth", 1, 8)}};
}

struct Family {
  const char* name;
  Space (*space)();
  Objective objective;
  double regret;  // That 9 of 10 seeds reach after 40 trials.
};
constexpr Family kFamilies[] = {{"Bowl", Square, Bowl, 1e-3},
                                {"Mixed", MixedSpace, Mixed, 0.03},
                                {"Cliff", Square, Cliff, 2e-3}};

class Convergence : public testing::TestWithParam<Family> {};

TEST_P(Convergence, NineOfTenSeedsReachTheRegretAndRandomIsTwiceAsFar) {
  const Family& family = GetParam();
  int reached = 0;
  double ours = 0, random = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const double found = Play(SpecOf(family.space(), "bayes", "{}", seed), family.objective, 40);
    reached += found <= family.regret ? 1 : 0;
    ours += found;
    random += Play(SpecOf(family.space(), "random", "{}", seed), family.objective, 40);
  }
  EXPECT_GE(reached, 9);
  EXPECT_LT(2 * ours, random);
}

INSTANTIATE_TEST_SUITE_P(Families, Convergence, testing::ValuesIn(kFamilies),
                         [](const auto& each) { return std::string(each.param.name); });

// One trial in `bad_in` is infeasible.
void ExpectNoTraceOfTheMemo(uint64_t bad_in) {
  Study study = StudyOf(SpecOf(MixedSpace(), "bayes"));
  const auto scheduler = Make(*study.spec);
  Memo kept;
  Rng order({TestSeed(), 61});
  std::vector<size_t> open;
  for (int64_t decision = 1; decision <= 35; ++decision) {
    Memo dropped;
    const Rng rng = Rng::ForSuggest(7, decision);
    const auto warm = scheduler->Suggest(study, 1, rng, kept);
    const auto cold = scheduler->Suggest(study, 1, rng, dropped);
    ASSERT_EQ(*warm, *cold) << decision;
    open.push_back(study.trials.size());
    Accept(study, warm->start, decision, TrialState::kRunning);
    while (open.size() > 3) {
      const size_t which = order.Below(open.size());
      const double value = Mixed(study.trials[open[which]]->params);
      End(study, open[which], order.Below(bad_in) == 0 ? std::nan("") : value);
      open.erase(open.begin() + static_cast<ptrdiff_t>(which));
    }
  }
}

TEST(Bayes, TheAnswerDoesNotDependOnTheMemoWhateverWasPendingAndWhicheverEndedFirst) {
  ExpectNoTraceOfTheMemo(1'000'000);
  ExpectNoTraceOfTheMemo(20);
  ExpectNoTraceOfTheMemo(4);
}

TEST(Bayes, TenSuggestionsAfterOneObservationInOneDimensionAreTenPoints) {
  Study study = StudyOf(SpecOf({{Real("x", 0, 1)}}, "bayes", R"({"initial": 1})"));
  const auto scheduler = Make(*study.spec);
  Memo memo;
  Accept(study, scheduler->Suggest(study, 1, Rng::ForSuggest(7, 1), memo)->start, 1);
  const auto answer = scheduler->Suggest(study, 10, Rng::ForSuggest(7, 2), memo);
  ASSERT_EQ(answer->start.size(), 10u);
  std::vector<double> points;
  for (const Proposal& proposal : answer->start) points.push_back(Number(proposal.params, "x"));
  std::sort(points.begin(), points.end());
  for (size_t i = 1; i < points.size(); ++i) EXPECT_GT(points[i], points[i - 1] + 1e-3);
}

TEST(Bayes, ObjectivesOfAnyShapeDoNotBreakIt) {
  const Objective objectives[] = {
      [](const Params&) { return 1.0; },
      [](const Params& p) { return 1e12 * Number(p, "x"); },
      [](const Params& p) { return 1e-12 * Number(p, "x"); },
      [](const Params& p) { return 1e300 * Number(p, "x"); },
      [](const Params& p) { return Number(p, "x") < 0.0 ? 1.0 : 0.0; },
      [](const Params&) { return std::nan(""); },
      [](const Params&) { return std::numeric_limits<double>::infinity(); },
      [](const Params& p) { return std::exp(50 * Number(p, "x")); },
  };
  for (const Objective objective : objectives) {
    Play(SpecOf(Square(), "bayes"), objective, 15);
  }
}

TEST(Bayes, APersonsTrialsCountAsTheFirstPoints) {
  Study study = StudyOf(SpecOf(Square(), "bayes"));
  for (int i = 0; i < 4; ++i) {
    Enqueue(study, {{"x", 0.2 * i}, {"y", -0.1 * i}});
    End(study, static_cast<size_t>(i), Bowl(study.trials[static_cast<size_t>(i)]->params));
  }
  Memo memo;
  const auto answer = Make(*study.spec)->Suggest(study, 1, Rng::ForSuggest(7, 1), memo);
  EXPECT_NE(answer->start[0].why.find("4 trials"), std::string::npos) << answer->start[0].why;
}

TEST(Bayes, WhySaysWhatDroveTheChoice) {
  Study study = StudyOf(SpecOf(Square(), "bayes"));
  const auto scheduler = Make(*study.spec);
  Memo memo;
  const auto first = scheduler->Suggest(study, 5, Rng::ForSuggest(7, 1), memo);
  EXPECT_NE(first->start[0].why.find("space-filling"), std::string::npos);
  Accept(study, first->start, 1);
  const auto next = scheduler->Suggest(study, 2, Rng::ForSuggest(7, 2), memo);
  EXPECT_NE(next->start[0].why.find("the best so far"), std::string::npos);
  EXPECT_NE(next->start[1].why.find("given 1 pending"), std::string::npos) << next->start[1].why;
}

TEST(Bayes, SeveralMetricsAndWrongSettingsAreRefused) {
  StudySpec spec = SpecOf(Square(), "bayes");
  spec.metrics.push_back({.name = "size", .goal = Goal::kMinimize, .target = {}});
  EXPECT_EQ(MakeScheduler(spec).status().code(), StatusCode::kUnimplemented);
  for (const char* settings : {R"({"initial": 2.5})", R"({"initial": -1})", R"({"initial": "two"})",
                               R"({"warp": "log"})", R"({"noise_spread": 0})"}) {
    const auto made = MakeScheduler(SpecOf(Square(), "bayes", settings));
    EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument) << settings;
  }
}

Trial Measured(TrialState state, std::vector<double> losses) {
  Trial trial;
  trial.state = state;
  int64_t step = 0;
  for (const double loss : losses) {
    Measurement measurement;
    measurement.step = ++step;
    measurement.metrics = {{"loss", loss}};
    trial.measurements.push_back(measurement);
  }
  if (state == TrialState::kCompleted) trial.objective = losses.back();
  return trial;
}

TEST(History, AStoppedTrialIsCensoredAtItsStepAndNeverBetterThanTheMedian) {
  Study study = StudyOf(SpecOf(Square(), "bayes"));
  const auto add = [&](Trial trial) {
    trial.id = static_cast<TrialId>(study.trials.size()) + 1;
    trial.ended = Timestamp(std::chrono::microseconds(trial.id));
    study.trials.push_back(Cow<Trial>(std::move(trial)));
  };
  add(Measured(TrialState::kCompleted, {9, 5, 1}));
  add(Measured(TrialState::kCompleted, {8, 6, 2}));
  add(Measured(TrialState::kCompleted, {7, 7, 3}));
  add(Measured(TrialState::kStopped, {9, 6.5}));  // Between the second and the third.
  add(Measured(TrialState::kStopped, {0.1}));     // The best at its step.
  add(Measured(TrialState::kStopped, {}));        // Never measured.
  const History history = HistoryOf(study);
  ASSERT_EQ(history.learnt.size(), 5u);
  const auto rows = Valued(study, history.learnt, 5);
  EXPECT_EQ(rows[3].value, -2);
  EXPECT_EQ(rows[4].value, -2);
  EXPECT_TRUE(rows[3].censored);
  // What the first rows were worth does not depend on later ones.
  add(Measured(TrialState::kCompleted, {0, 0, 0}));
  EXPECT_EQ(Valued(study, HistoryOf(study).learnt, 5), rows);
}

TEST(History, IsInTheOrderOfTheEndsAndKnowsWhatIsOpen) {
  Study study = StudyOf(SpecOf(Square(), "bayes"));
  for (int i = 0; i < 4; ++i) Enqueue(study, {{"x", 0.1 * i}, {"y", 0.0}});
  End(study, 2, 5);
  study.trials.Mutable(2).Mutable().ended = Timestamp(std::chrono::microseconds(1));
  End(study, 0, std::nan(""));
  study.trials.Mutable(0).Mutable().ended = Timestamp(std::chrono::microseconds(2));
  const History history = HistoryOf(study);
  ASSERT_EQ(history.learnt.size(), 2u);
  EXPECT_EQ(history.learnt[0].trial, 3);
  EXPECT_EQ(history.learnt[0].value, -5);
  EXPECT_FALSE(history.learnt[1].feasible);
  EXPECT_EQ(history.pending, (std::vector<TrialId>{2, 4}));
}

}  // namespace
}  // namespace jizi::tuner
