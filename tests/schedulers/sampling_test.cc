#include "schedulers/brute_force/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "schedulers/brute_force/sobol.h"
#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

constexpr char kSobol[] = R"({"sampler": "sobol"})";

std::unique_ptr<Scheduler> Make(const Study& study) {
  auto made = MakeScheduler(*study.spec);
  EXPECT_TRUE(made.ok()) << ForPeople(made.status());
  return std::move(made).value();
}

TEST(Sampling, SobolContinuesItsSequenceAcrossDecisionsAndFillsEachDimensionEvenly) {
  Study study =
      StudyOf(SpecOf({{Real("x", 0, 64), Fixed("c", true), Real("y", 0, 64)}}, "random", kSobol));
  const auto scheduler = Make(study);
  Memo memo;
  int64_t decision = 0;
  while (study.trials.size() < 64) {
    ++decision;
    const int count = static_cast<int>(std::min<size_t>(5, 64 - study.trials.size()));
    Accept(study, scheduler->Suggest(study, count, Rng::ForSuggest(9, decision), memo)->start,
           decision);
  }
  std::set<int> x, y;
  for (const Cow<Trial>& trial : study.trials) {
    x.insert(static_cast<int>(std::get<double>(trial->params.at("x"))));
    y.insert(static_cast<int>(std::get<double>(trial->params.at("y"))));
  }
  EXPECT_EQ(x.size(), 64u);
  EXPECT_EQ(y.size(), 64u);
  EXPECT_EQ(study.trials.back()->tags.at("sobol"), "63");
}

TEST(Sampling, ARefusedSobolPointIsProposedAgain) {
  Study study = StudyOf(SpecOf({{Real("x", 0, 1)}}, "random", kSobol));
  const auto scheduler = Make(study);
  Memo memo;
  auto first = scheduler->Suggest(study, 4, Rng::ForSuggest(1, 1), memo)->start;
  const Params refused = first.back().params;
  first.pop_back();
  Accept(study, first, 1);
  EXPECT_EQ(scheduler->Suggest(study, 1, Rng::ForSuggest(1, 2), memo)->start[0].params, refused);
}

TEST(Sampling, TheSameSeedGivesTheSameTrialsHoweverTheyAreAskedFor) {
  const auto trials = [](const std::string& settings, const std::vector<int>& counts) {
    StudySpec spec = SpecOf({{Real("x", 0, 1), Int("n", 0, 40)}}, "random", settings);
    spec.seed = 7;
    Study study = StudyOf(spec);
    const auto scheduler = Make(study);
    Memo memo;
    std::vector<std::string> texts;
    int64_t decision = 0;
    for (const int count : counts) {
      if (count == 0) {  // A person's, between the scheduler's own.
        Proposal by_hand;
        by_hand.params = {{"x", 0.5}, {"n", int64_t{1}}};
        Accept(study, {by_hand}, 0);
        continue;
      }
      ++decision;
      const auto start =
          scheduler->Suggest(study, count, Rng::ForSuggest(7, decision), memo)->start;
      for (const Proposal& proposal : start) texts.push_back(ToJsonText(proposal.params));
      Accept(study, start, decision);
    }
    return texts;
  };
  for (const std::string& settings : {std::string("{}"), std::string(kSobol)}) {
    const auto one_by_one = trials(settings, {1, 1, 1, 1, 1, 1});
    EXPECT_EQ(one_by_one, trials(settings, {6}));
    EXPECT_EQ(one_by_one, trials(settings, {4, 2}));
    EXPECT_EQ(one_by_one, trials(settings, {0, 1, 3, 0, 2}));
  }
}

TEST(Sampling, ATagOnAnEnqueuedTrialDoesNotMoveTheSobolSequence) {
  Study study = StudyOf(SpecOf({{Real("x", 0, 1)}}, "random", kSobol));
  Proposal by_hand;
  by_hand.params = {{"x", 0.5}};
  by_hand.tags = {{"sobol", "1000"}};
  Accept(study, {by_hand}, 0);
  Memo memo;
  EXPECT_EQ(Make(study)->Suggest(study, 1, Rng::ForSuggest(1, 1), memo)->start[0].tags.at("sobol"),
            "0");
}

TEST(Sampling, SobolRefusesMoreParametersThanItHasDimensions) {
  Space space;
  for (int i = 0; i < kSobolDimensions; ++i)
    space.parameters.push_back(Real("p" + std::to_string(i), 0, 1));
  space.parameters.push_back(Fixed("constant", 1.0));
  EXPECT_TRUE(MakeScheduler(SpecOf(space, "random", kSobol)).ok());
  space.parameters.push_back(Real("one_more", 0, 1));
  const auto made = MakeScheduler(SpecOf(space, "random", kSobol));
  ASSERT_EQ(made.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(ForPeople(made.status()).find("256 dimensions"), std::string::npos);
  EXPECT_TRUE(MakeScheduler(SpecOf(space, "random")).ok());
}

TEST(Sampling, ADiscreteBranchOfAContinuousSpaceIsNotRepeatedWhileAnotherBranchIsOpen) {
  // "none" has no learning rate: it is one point beside a continuum.
  const Space space = {{Choice("optimizer", {std::string("none"), std::string("sgd")}),
                        When(Real("lr", 0, 1), "optimizer", {std::string("sgd")})}};
  for (const char* settings : {"{}", kSobol}) {
    Study study = StudyOf(SpecOf(space, "random", settings));
    const auto scheduler = Make(study);
    Memo memo;
    Accept(study, scheduler->Suggest(study, 100, Rng::ForSuggest(1, 1), memo)->start, 1);
    Accept(study, scheduler->Suggest(study, 100, Rng::ForSuggest(1, 2), memo)->start, 2);
    int none = 0;
    for (const Cow<Trial>& trial : study.trials) none += trial->params.size() == 1;
    EXPECT_EQ(none, 1) << settings;
    EXPECT_EQ(study.trials.size(), 200u);
  }
}

TEST(Sampling, ARepeatThatCannotBeAvoidedIsSaid) {
  // Formally continuous, yet two doubles wide.
  const double next = std::nextafter(1.0, 2.0);
  Study study = StudyOf(SpecOf({{Real("x", 1.0, next)}}, "random"));
  Memo memo;
  const auto answer = Make(study)->Suggest(study, 5, Rng::ForSuggest(1, 1), memo);
  ASSERT_EQ(answer->start.size(), 5u);
  EXPECT_EQ(answer->next, Next::kMore);
  EXPECT_EQ(answer->start[0].why, "random draw");
  EXPECT_NE(answer->start[4].why.find("used before"), std::string::npos);
}

TEST(Sampling, RarePointsAreReachedOnceTheCommonOnesAreUsed) {
  Study study = StudyOf(SpecOf(
      {{Choice("c", {int64_t{0}, int64_t{1}, int64_t{2}}, {1 - 2e-9, 1e-9, 1e-9})}}, "random"));
  Memo memo;
  const auto answer = Make(study)->Suggest(study, 5, Rng::ForSuggest(1, 1), memo);
  EXPECT_EQ(answer->start.size(), 3u);
  EXPECT_EQ(answer->next, Next::kExhausted);
  EXPECT_NE(answer->start[2].why.find("one of the 1 points left"), std::string::npos);
}

TEST(Sampling, SuggestingWithAWarmMemoDoesNotSlowWithTheStudy) {
  // Counted, not timed: a warm call reads only the trials that are new. A study whose old trials
  // are gone would crash otherwise; here they are changed, and the answers must not see it.
  Study study = StudyOf(SpecOf({{Int("x", 0, 99999)}}, "random"));
  const auto scheduler = Make(study);
  Memo memo;
  Accept(study, scheduler->Suggest(study, 1000, Rng::ForSuggest(1, 1), memo)->start, 1);
  ASSERT_TRUE(scheduler->Suggest(study, 1, Rng::ForSuggest(1, 2), memo).ok());
  Study changed = study;
  for (size_t i = 0; i < changed.trials.size(); ++i)
    changed.trials.Mutable(i).Mutable().params.clear();
  EXPECT_EQ(*scheduler->Suggest(changed, 500, Rng::ForSuggest(1, 3), memo),
            *scheduler->Suggest(study, 500, Rng::ForSuggest(1, 3), memo));
}

// A tag comes from a file: a number that no Sobol point has is as good as none.
TEST(Sobol, ATagBeyondEveryPointIsPassedOver) {
  const StudySpec spec = SpecOf({{Real("x", 0, 1)}}, "random", kSobol);
  const auto scheduler = MakeScheduler(spec);
  ASSERT_TRUE(scheduler.ok());
  Study study = StudyOf(spec);
  Memo memo;
  const auto first = (*scheduler)->Suggest(study, 1, Rng({1}), memo);
  Proposal odd = first->start.front();
  odd.tags["sobol"] = "9223372036854775807";
  Accept(study, {odd}, 1);
  const auto next = (*scheduler)->Suggest(study, 1, Rng({2}), memo);
  ASSERT_TRUE(next.ok());
  ASSERT_EQ(next->start.size(), 1u);
  EXPECT_EQ(next->start.front().tags.at("sobol").size(), 1u);
  EXPECT_TRUE(Check(spec.space, next->start.front().params).ok());
}

}  // namespace
}  // namespace jizi::tuner
