#include "schedulers/brute_force/grid.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

std::vector<Proposal> AllOf(const Study& study, int count) {
  const auto scheduler = MakeScheduler(*study.spec);
  EXPECT_TRUE(scheduler.ok()) << ForPeople(scheduler.status());
  Memo memo;
  return (*scheduler)->Suggest(study, count, Rng::ForSuggest(1, 1), memo)->start;
}

std::vector<Params> ParamsOf(const std::vector<Proposal>& proposals) {
  std::vector<Params> params;
  for (const Proposal& proposal : proposals) params.push_back(proposal.params);
  return params;
}

TEST(Grid, GoesInNestedLoopsWithTheLastParameterFastest) {
  const Study study = StudyOf(
      SpecOf({{Choice("b", {std::string("x"), std::string("y")}), Int("a", 1, 5, 2)}}, "grid"));
  const auto proposals = AllOf(study, 4);
  EXPECT_EQ(ParamsOf(proposals),
            (std::vector<Params>{{{"b", std::string("x")}, {"a", int64_t{2}}},
                                 {{"b", std::string("x")}, {"a", int64_t{4}}},
                                 {{"b", std::string("y")}, {"a", int64_t{2}}},
                                 {{"b", std::string("y")}, {"a", int64_t{4}}}}));
  EXPECT_EQ(proposals[2].why, "grid point 3 of 4");
}

TEST(Grid, VisitsEveryReachablePointOfConditionalSpacesOnce) {
  for (uint64_t seed = TestSeed(); seed < TestSeed() + 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "JIZI_TEST_SEED=" << seed);
    Rng rng({seed, 9});
    const Space space = RandomSpace(rng, true);
    std::vector<Params> expected = AllPoints(space);
    std::vector<Params> visited = ParamsOf(AllOf(StudyOf(SpecOf(space, "grid")), 100000));
    std::sort(expected.begin(), expected.end());
    std::sort(visited.begin(), visited.end());
    EXPECT_EQ(visited, expected);
  }
}

TEST(Grid, AnEnqueuedTrialCountsAsThePointThatItEquals) {
  Study study = StudyOf(SpecOf({{Real("lr", 0.1, 0.3, Scale::kLinear, 0.1)}}, "grid"));
  Enqueue(study, {{"lr", 0.1 + 0.1}});
  EXPECT_EQ(ParamsOf(AllOf(study, 5)), (std::vector<Params>{{{"lr", 0.1}}, {{"lr", 0.3}}}));
}

TEST(Grid, AnEnqueuedTrialOutsideTheSpaceTakesNoPoint) {
  Study study = StudyOf(SpecOf({{Int("x", 0, 1)}}, "grid"));
  Enqueue(study, {{"x", 0.0}});
  Enqueue(study, {{"x", int64_t{0}}, {"y", int64_t{1}}});
  EXPECT_EQ(AllOf(study, 5).size(), 2u);
}

TEST(Grid, AContinuousOrUnboundedParameterIsRefusedWithTheMend) {
  for (const Domain& domain :
       {Domain(NumericDomain{Uniform{0, 1}, 0, false}), Domain(NumericDomain{Normal{}, 1, true}),
        Domain(NumericDomain{Beta{}, 0, false})}) {
    const auto made = MakeScheduler(SpecOf({{Int("a", 0, 1), {"lr", domain, {}}}}, "grid"));
    ASSERT_EQ(made.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(DetailOf(made.status()).subject, "lr");
    EXPECT_NE(ForPeople(made.status()).find("method random"), std::string::npos);
  }
}

TEST(Grid, AGridOfMoreThan2To63PointsStartsAtItsFirst) {
  Space space;
  for (int i = 0; i < 80; ++i) space.parameters.push_back(Int("p" + std::to_string(i), 0, 1));
  const auto proposals = AllOf(StudyOf(SpecOf(space, "grid")), 3);
  ASSERT_EQ(proposals.size(), 3u);
  EXPECT_EQ(proposals[1].params.at("p79"), ParamValue(int64_t{1}));
  EXPECT_EQ(proposals[2].params.at("p78"), ParamValue(int64_t{1}));
  EXPECT_EQ(proposals[1].why, "grid point 2 of more than 2^63");
}

}  // namespace
}  // namespace jizi::tuner
