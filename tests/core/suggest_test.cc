// Suggest, decisions and budgets (docs/contracts.md, 10 and 11).

#include <gtest/gtest.h>

#include <limits>

#include "tests/core/machine.h"

namespace jizi::tuner::testing {
namespace {

size_t Given(const SuggestReply& reply) {
  const auto* trials = std::get_if<std::vector<Assigned>>(&reply);
  return trials == nullptr ? 0 : trials->size();
}
std::string WhyFinished(const SuggestReply& reply) {
  const auto* finished = std::get_if<Finished>(&reply);
  return finished == nullptr ? "not finished" : finished->why;
}
void Finish(Machine& m, const LeaseRef& lease) {
  m.Report(lease, 1, 0.5);
  EXPECT_TRUE(m.Call(m.CompleteOf(lease)).ok());
}

TEST(Contract10, OneDecisionPerStudyAtATimeAndLaterCallsPark) {
  Machine m(SimpleSpec());
  const auto first = m.Run(m.SuggestFor("a", 2));
  const auto second = m.Run(m.SuggestFor("b"));
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE(first->need && first->parked && !first->reply);
  EXPECT_EQ(first->need->count, 2);
  EXPECT_EQ(first->need->decision, 1);
  EXPECT_TRUE(second->parked && !second->need && !second->reply);
}

TEST(Contract10, TheAnswerIsRecordedWithNumberPositionAndCount) {
  Machine m(SimpleSpec());
  const auto parked = m.Run(m.SuggestFor("a"));
  ASSERT_TRUE(m.Call(EnqueueCommand{AtX(0.5), "meanwhile"}).ok());
  const auto answered = m.Run(m.Decide(*parked->need));
  ASSERT_TRUE(answered.ok());
  const auto& decided = std::get<Decided>(answered->events.front());
  EXPECT_EQ(decided.decision, 1);
  EXPECT_EQ(decided.log_position, 1);
  EXPECT_EQ(decided.count, 1);
  EXPECT_EQ(m.state.decisions, 1);
  EXPECT_EQ(CodeOf(m.Run(m.Decide(*parked->need)).status()), "STALE_DECISION");
}

TEST(Contract10, TheAnswerIsCheckedAgainForStopPauseAndBudget) {
  for (const StudyState state : {StudyState::kPaused, StudyState::kStopped}) {
    Machine m(SimpleSpec());
    const auto parked = m.Run(m.SuggestFor("a"));
    ASSERT_TRUE(m.Run(SetStateCommand{state}).ok());
    ASSERT_TRUE(m.Run(m.Decide(*parked->need)).ok());
    EXPECT_TRUE(m.state.study.trials.empty());
    const auto reply = m.Run(*parked->parked);
    ASSERT_TRUE(reply->reply);
  }
  StudySpec spec = SimpleSpec();
  spec.budget.run_cap = 2;
  Machine m(spec);
  const auto parked = m.Run(m.SuggestFor("a", 2));
  ASSERT_TRUE(m.Call(EnqueueCommand{AtX(0.5), "meanwhile"}).ok());
  ASSERT_TRUE(m.Run(m.Decide(*parked->need)).ok());
  EXPECT_EQ(m.state.study.trials.size(), 2u);
}

TEST(Contract10, AFailingOrStrayingSchedulerIsOurBugAndTheStudyGoesOn) {
  Machine m(SimpleSpec());
  const auto refused = [&] {
    const auto status = m.Call(m.SuggestFor("a")).status();
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_FALSE(m.state.pending);
    return CodeOf(status);
  };
  m.script.suggest = [](const Study&, int) -> StatusOr<Decision> {
    return absl::InternalError("oops");
  };
  EXPECT_EQ(refused(), "SCHEDULER_FAILED");
  Decision bad;
  m.script.suggest = [&bad](const Study&, int) { return bad; };
  bad.start = {ProposalAt(3)};
  EXPECT_EQ(refused(), "SCHEDULER_FAILED");
  bad.start = {ProposalAt(std::numeric_limits<double>::quiet_NaN())};
  EXPECT_EQ(refused(), "SCHEDULER_FAILED");
  bad.start = {ProposalAt(0.1), ProposalAt(0.2)};  // One was asked for.
  EXPECT_EQ(refused(), "SCHEDULER_FAILED");
  bad.start.clear();
  bad.resume = {5};
  EXPECT_EQ(refused(), "SCHEDULER_FAILED");
  m.script.suggest = nullptr;
  EXPECT_EQ(m.Take("a").trial, 1);
}

TEST(Contract10, ASchedulerThatWaitsIsAskedAgainOnlyAfterAChange) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("a");
  int asked = 0;
  m.script.suggest = [&asked](const Study& study, int) {
    Decision decision;
    if (++asked > 1) decision.start.push_back(ProposalAt(0.5));
    if (study.counts[TrialState::kRunning] > 0 && asked == 1) decision.next = Next::kWait;
    return decision;
  };
  EXPECT_TRUE(std::holds_alternative<Wait>(m.Suggest("b")));
  EXPECT_TRUE(std::holds_alternative<Wait>(m.Suggest("b")));
  m.Restart();
  EXPECT_TRUE(std::holds_alternative<Wait>(m.Suggest("b")));
  EXPECT_EQ(asked, 1);
  m.Report(lease, 1, 0.5);
  EXPECT_EQ(Given(m.Suggest("b")), 1u);
}

TEST(Contract10, ASchedulerThatWaitsForNothingFinishesTheStudy) {
  for (const Next next : {Next::kWait, Next::kMore}) {
    Machine m(SimpleSpec());
    m.script.suggest = [next](const Study&, int) {
      Decision decision;
      decision.next = next;
      return decision;
    };
    EXPECT_NE(WhyFinished(m.Suggest("a")).find("nothing is running"), std::string::npos);
  }
}

TEST(Contract11, AnExhaustedSchedulerFinishesTheStudyOnceItsTrialsHaveEnded) {
  Machine m(SimpleSpec());
  m.script.suggest = [](const Study& study, int) {
    Decision decision;
    if (study.trials.empty()) decision.start.push_back(ProposalAt(0.5));
    decision.next = Next::kExhausted;
    decision.why = "all 1 points of the grid are used";
    return decision;
  };
  const SuggestReply reply = m.Suggest("a", 3);
  ASSERT_EQ(Given(reply), 1u);  // As many as there are.
  const Assigned& only = std::get<std::vector<Assigned>>(reply).front();
  EXPECT_TRUE(std::holds_alternative<Wait>(m.Suggest("b")));
  Finish(m, {1, 1, only.token});
  EXPECT_EQ(m.state.state, StudyState::kFinished);
  EXPECT_EQ(WhyFinished(m.Suggest("b")), "all 1 points of the grid are used");
}

TEST(Contract11, WaitAtTheCapWhileTrialsMayComeBackThenFinished) {
  StudySpec spec = SimpleSpec();
  spec.budget.run_cap = 2;
  Machine m(spec);
  const LeaseRef a = m.Take("a");
  const LeaseRef b = m.Take("b");
  EXPECT_TRUE(std::holds_alternative<Wait>(m.Suggest("c")));
  m.Advance(30);
  m.Report(a, 1, 0.5);
  m.Advance(31);  // b is lost, and comes back.
  const LeaseRef again = m.Take("c");
  EXPECT_EQ(again.trial, b.trial);
  Finish(m, again);
  ASSERT_TRUE(m.Call(m.CompleteOf(a)).ok());
  EXPECT_EQ(m.state.state, StudyState::kFinished);
  EXPECT_EQ(WhyFinished(m.Suggest("c")), "run_cap of 2 reached");
}

TEST(Budgets, EnqueuedTrialsComeFirstAndRunEvenAtTheCap) {
  StudySpec spec = SimpleSpec();
  spec.budget.run_cap = 2;
  Machine m(spec);
  m.script.suggest = [](const Study&, int count) {
    Decision decision;
    for (int i = 0; i < count; ++i) decision.start.push_back(ProposalAt(0.5));
    return decision;
  };
  const auto parked = m.Run(m.SuggestFor("a", 1));
  ASSERT_TRUE(m.Run(m.Decide(*parked->need)).ok());  // Trial 1 waits in the queue.
  ASSERT_TRUE(m.Call(EnqueueCommand{AtX(0.1), "2"}).ok());
  ASSERT_TRUE(m.Call(EnqueueCommand{AtX(0.2), "3"}).ok());
  for (const TrialId trial : {2, 3, 1}) {
    const LeaseRef lease = m.Take("a");
    EXPECT_EQ(lease.trial, trial);
    Finish(m, lease);
  }
  EXPECT_EQ(m.state.state, StudyState::kFinished);
  EXPECT_EQ(m.state.study.trials.size(), 3u);
  ASSERT_TRUE(m.Call(EnqueueCommand{AtX(0.3), "4"}).ok());  // A finished study goes on.
  EXPECT_EQ(m.state.state, StudyState::kActive);
  Finish(m, m.Take("a"));
  EXPECT_EQ(m.state.state, StudyState::kFinished);
}

TEST(Budgets, AnIdleStudyEndsWithItsWallClockBudget) {
  StudySpec spec = SimpleSpec();
  spec.budget.wall_clock = Seconds(100);
  Machine m(spec);
  Finish(m, m.Take("a"));
  const auto deadline = NextDeadline(m.state, m.context());
  ASSERT_TRUE(deadline);
  EXPECT_EQ(*deadline, m.context().steady_now + std::chrono::seconds(100));
  m.Advance(100);
  ASSERT_TRUE(m.Run(TickCommand{}).ok());
  EXPECT_EQ(m.state.state, StudyState::kFinished);
  EXPECT_EQ(m.state.state_why, "the wall-clock budget is used up");
  EXPECT_FALSE(NextDeadline(m.state, m.context()));
}

TEST(Budgets, AHugeWallClockBudgetIsNoTrouble) {
  StudySpec spec = SimpleSpec();
  spec.budget.wall_clock = Seconds(1e300);
  Machine m(spec);
  ASSERT_TRUE(NextDeadline(m.state, m.context()));
  EXPECT_GT(*NextDeadline(m.state, m.context()), m.context().steady_now);
}

TEST(Suggest, BoundsOfCountLeaseAndName) {
  Machine m(SimpleSpec());
  SuggestCommand command = m.SuggestFor("a");
  command.count = 0;
  EXPECT_EQ(CodeOf(m.Run(command).status()), "BAD_COUNT");
  command.count = kMaxSuggestions + 1;
  EXPECT_EQ(CodeOf(m.Run(command).status()), "BAD_COUNT");
  command.count = 1;
  for (const double lease : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), 1e300}) {
    command.lease = Seconds(lease);
    EXPECT_EQ(CodeOf(m.Run(command).status()), "BAD_LEASE") << lease;
  }
  command.lease = kDefaultLease;
  command.worker = "";
  EXPECT_EQ(CodeOf(m.Run(command).status()), "BAD_NAME");
  command.worker = std::string(kMaxIdBytes + 1, 'w');
  EXPECT_EQ(CodeOf(m.Run(command).status()), "BAD_NAME");
}

TEST(Suggest, ASuccessorIsKeptForTheWorkerThatHoldsItsPredecessor) {
  Machine m(SimpleSpec());
  m.script.on_change = [](const Study&, TrialId trial, const Change& change) {
    Decision decision;
    if (trial != 1 || !std::holds_alternative<Reported>(change)) return decision;
    decision.tell[trial] = Stop{"exploited"};
    decision.start.push_back(ProposalAt(0.75));
    decision.start.back().successor_of = trial;
    return decision;
  };
  const LeaseRef loser = m.Take("a");
  m.Report(loser, 1, 9);
  ASSERT_EQ(m.state.study.trials.size(), 2u);
  EXPECT_EQ(m.At(2).decision, -1);
  EXPECT_EQ(m.Take("b").trial, 3);  // Not the reserved one.
  CompleteCommand complete = m.CompleteOf(loser);
  complete.next = m.SuggestFor("a");
  const auto reply = m.Call(complete);
  const auto& next = std::get<CompleteReply>(*reply).next;
  EXPECT_EQ(std::get<std::vector<Assigned>>(*next).front().trial->id, 2);
}

}  // namespace
}  // namespace jizi::tuner::testing
