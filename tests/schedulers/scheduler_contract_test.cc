// The contract of Scheduler (scheduler.h), for every method and sampler. A new scheduler adds a
// line to kSubjects.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

struct Subject {
  const char* label;
  const char* method;
  const char* settings;
  bool takes_continuous;
  bool repeats_nothing;  // On a space with finitely many points; says kExhausted there.
};

constexpr Subject kSubjects[] = {
    {"Bayes", "bayes", "{}", true, true},
    {"Grid", "grid", "{}", false, true},
    {"Random", "random", "{}", true, true},
    {"Sobol", "random", R"({"sampler": "sobol"})", true, true},
    {"Tpe", "tpe", R"({"initial": 2})", true, true},
};

class SchedulerContract : public testing::TestWithParam<Subject> {
 protected:
  StudySpec Spec(Space space, uint64_t seed = 7) const {
    return SpecOf(std::move(space), GetParam().method, GetParam().settings, seed);
  }
  static std::unique_ptr<Scheduler> Make(const StudySpec& spec) {
    auto scheduler = MakeScheduler(spec);
    EXPECT_TRUE(scheduler.ok()) << ForPeople(scheduler.status());
    return std::move(scheduler).value();
  }
  std::vector<Space> Spaces() const {
    Rng rng({TestSeed(), 11});
    std::vector<Space> spaces;
    for (int i = 0; i < 20; ++i) {
      spaces.push_back(RandomSpace(rng, !GetParam().takes_continuous || i % 2 == 0));
    }
    spaces.push_back({{Int("x", 0, 9)}});
    spaces.push_back({{Choice("c", {std::string("a"), std::string("b")})}});
    spaces.push_back({{Choice("a", {true, false}), Choice("b", {int64_t{1}, int64_t{2}})}});
    spaces.push_back({{Fixed("only", 1.5)}});
    if (GetParam().takes_continuous) spaces.push_back({{Real("x", -1, 1)}});
    return spaces;
  }
};

void ExpectWellFormed(const Study& study, const Decision& decision, int count) {
  EXPECT_LE(decision.start.size() + decision.resume.size(), static_cast<size_t>(count));
  for (const Proposal& proposal : decision.start) {
    const Status inside = Check(study.spec->space, proposal.params);
    EXPECT_TRUE(inside.ok()) << ForPeople(inside);
    EXPECT_FALSE(proposal.why.empty());
    EXPECT_EQ(proposal.why.find('\n'), std::string::npos);
  }
  if (decision.start.size() < static_cast<size_t>(count)) {
    EXPECT_NE(decision.next, Next::kMore);
  }
  EXPECT_EQ(decision.why.empty(), decision.next == Next::kMore);
}

TEST_P(SchedulerContract, ProposesInsideTheBoundsOfEverySpaceWithAReason) {
  for (const Space& space : Spaces()) {
    Study study = StudyOf(Spec(space));
    const auto scheduler = Make(*study.spec);
    Memo memo;
    for (int64_t decision = 1; decision <= 5; ++decision) {
      const auto answer = scheduler->Suggest(study, 7, Rng::ForSuggest(7, decision), memo);
      ASSERT_TRUE(answer.ok());
      ExpectWellFormed(study, *answer, 7);
      Accept(study, answer->start, decision);
    }
  }
}

TEST_P(SchedulerContract, TheSameHistoryGivesTheSameAnswerWithTheMemoDroppedOrNot) {
  for (const Space& space : Spaces()) {
    Study study = StudyOf(Spec(space));
    const auto scheduler = Make(*study.spec);
    const auto again = Make(*study.spec);
    Memo kept;
    for (int64_t decision = 1; decision <= 8; ++decision) {
      Memo dropped;
      const int count = static_cast<int>(decision);
      const Rng rng = Rng::ForSuggest(7, decision);
      const auto warm = scheduler->Suggest(study, count, rng, kept);
      const auto cold = again->Suggest(study, count, rng, dropped);
      ASSERT_TRUE(warm.ok() && cold.ok());
      EXPECT_EQ(*warm, *cold);
      EXPECT_EQ(*scheduler->Suggest(study, count, rng, kept), *cold);  // Asking leaves no trace.
      // A part of what was proposed is refused, as when a budget ends.
      std::vector<Proposal> taken = warm->start;
      if (decision % 3 == 0 && !taken.empty()) taken.pop_back();
      Accept(study, taken, decision, TrialState::kRunning);
    }
  }
}

TEST_P(SchedulerContract, LeavesTheStudyAsItWas) {
  for (const Space& space : Spaces()) {
    Study study = StudyOf(Spec(space));
    const auto scheduler = Make(*study.spec);
    Memo memo;
    Accept(study, scheduler->Suggest(study, 3, Rng::ForSuggest(7, 1), memo)->start, 1);
    const Study before = study;
    ASSERT_TRUE(scheduler->Suggest(study, 10, Rng::ForSuggest(7, 2), memo).ok());
    EXPECT_EQ(*study.spec, *before.spec);
    EXPECT_EQ(study.trials, before.trials);
    EXPECT_EQ(study.counts, before.counts);
  }
}

TEST_P(SchedulerContract, AnswersAnyCountFrom1To1000) {
  Study study = StudyOf(Spec({{Int("x", 0, 999), Int("y", 0, 999)}}));
  const auto scheduler = Make(*study.spec);
  Memo memo;
  for (const int count : {1, 2, 63, 1000}) {
    const auto answer = scheduler->Suggest(study, count, Rng::ForSuggest(7, count), memo);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->start.size(), static_cast<size_t>(count));
    EXPECT_EQ(answer->next, Next::kMore);
    ExpectWellFormed(study, *answer, count);
    Accept(study, answer->start, count);
  }
}

TEST_P(SchedulerContract, GoesOnWhenAllTrialsAreInfeasible) {
  Study study = StudyOf(Spec({{Int("x", 0, 99)}}));
  const auto scheduler = Make(*study.spec);
  Memo memo;
  for (int64_t decision = 1; decision <= 5; ++decision) {
    const auto answer = scheduler->Suggest(study, 2, Rng::ForSuggest(7, decision), memo);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->start.size(), 2u);
    Accept(study, answer->start, decision, TrialState::kInfeasible);
  }
}

TEST_P(SchedulerContract, RepeatsNoPointOfAFiniteSpaceAndThenSaysExhausted) {
  if (!GetParam().repeats_nothing) GTEST_SKIP() << "may repeat points";
  for (uint64_t seed = TestSeed(); seed < TestSeed() + 15; ++seed) {
    SCOPED_TRACE(testing::Message() << "JIZI_TEST_SEED=" << seed);
    Rng rng({seed, 12});
    const Space space = RandomSpace(rng, true);
    const int64_t points = CountPoints(space).value();
    Study study = StudyOf(Spec(space, seed));
    const auto scheduler = Make(*study.spec);
    Enqueue(study, Sample(space, rng));  // Counts as the point that it is.
    std::set<Params> seen = {study.trials[0]->params};
    Memo memo;
    Next next = Next::kMore;
    for (int64_t decision = 1; next == Next::kMore; ++decision) {
      ASSERT_LE(decision, points + 1);
      const int count = 1 + static_cast<int>(rng.Below(9));
      const auto answer = scheduler->Suggest(study, count, Rng::ForSuggest(seed, decision), memo);
      ASSERT_TRUE(answer.ok());
      ExpectWellFormed(study, *answer, count);
      for (const Proposal& proposal : answer->start) {
        EXPECT_TRUE(seen.insert(proposal.params).second) << ToJsonText(proposal.params);
      }
      Accept(study, answer->start, decision, TrialState::kRunning);  // Pending ones count too.
      next = answer->next;
    }
    EXPECT_EQ(next, Next::kExhausted);
    EXPECT_EQ(static_cast<int64_t>(seen.size()), points);
    const auto after = scheduler->Suggest(study, 3, Rng::ForSuggest(seed, 999), memo);
    EXPECT_TRUE(after->start.empty());
    EXPECT_EQ(after->next, Next::kExhausted);
  }
}

TEST_P(SchedulerContract, FindsTheLastPointsOfALargeSpaceCheaply) {
  // 99.9 % used: were unused points found by drawing alone, this would take 10^5 draws and minutes.
  Study study = StudyOf(Spec({{Int("x", 0, 9999)}}));
  const auto scheduler = Make(*study.spec);
  for (int64_t x = 0; x < 10000; ++x) {
    if (x % 1000 != 500) Enqueue(study, {{"x", x}});
  }
  Memo memo;
  std::set<Params> found;
  for (int64_t decision = 1; decision <= 10; ++decision) {
    const auto answer = scheduler->Suggest(study, 1, Rng::ForSuggest(7, decision), memo);
    ASSERT_EQ(answer->start.size(), 1u);
    found.insert(answer->start[0].params);
    Accept(study, answer->start, decision);
  }
  EXPECT_EQ(found.size(), 10u);
  EXPECT_EQ(scheduler->Suggest(study, 1, Rng::ForSuggest(7, 11), memo)->next, Next::kExhausted);
}

TEST_P(SchedulerContract, OnChangeAnswersEveryChangeAndTellsNothingUnasked) {
  Study study = StudyOf(Spec({{Int("x", 0, 99)}}));
  const auto scheduler = Make(*study.spec);
  Memo memo;
  Accept(study, scheduler->Suggest(study, 1, Rng::ForSuggest(7, 1), memo)->start, 1,
         TrialState::kRunning);
  Measurement measured;
  measured.metrics = {{"loss", std::numeric_limits<double>::quiet_NaN()}};
  for (const Change& change : {Change(Reported{measured}), Change(Ended{}), Change(Lost{})}) {
    const auto answer =
        scheduler->OnChange(study, 1, change, Rng::ForChange(7, 1, 1, 0, 0, 0), memo);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(*answer, Decision{});
  }
}

TEST_P(SchedulerContract, AMemoOfALongerStudyIsNotTrusted) {
  Study longer = StudyOf(Spec({{Int("x", 0, 99)}}));
  const Study empty = longer;
  const auto scheduler = Make(*longer.spec);
  Memo memo;
  Accept(longer, scheduler->Suggest(longer, 20, Rng::ForSuggest(7, 1), memo)->start, 1);
  ASSERT_TRUE(scheduler->Suggest(longer, 1, Rng::ForSuggest(7, 2), memo).ok());
  Memo none;
  EXPECT_EQ(*scheduler->Suggest(empty, 20, Rng::ForSuggest(7, 1), memo),
            *scheduler->Suggest(empty, 20, Rng::ForSuggest(7, 1), none));
}

INSTANTIATE_TEST_SUITE_P(EveryMethod, SchedulerContract, testing::ValuesIn(kSubjects),
                         [](const auto& each) { return std::string(each.param.label); });

TEST(SchedulerContractList, NamesEveryMethodOfMakeScheduler) {
  std::set<std::string> covered;
  for (const Subject& subject : kSubjects) covered.insert(subject.method);
  const auto methods = SchedulerMethods();
  EXPECT_EQ(covered, std::set<std::string>(methods.begin(), methods.end()));
  EXPECT_TRUE(std::is_sorted(methods.begin(), methods.end()));
}

}  // namespace
}  // namespace jizi::tuner
