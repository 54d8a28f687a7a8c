// Suggests that wait for a scheduler: off the engine thread, joined, exactly once
// (docs/contracts.md, 1, 10, 12).

#include <gtest/gtest.h>

#include <thread>

#include "tests/engine/engine_testing.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;

class DecisionTest : public testing::Test {
 protected:
  void Start(EngineOptions options = {}) {
    engine_.reset();
    options.make_scheduler = ScriptedSchedulers(scheduler_);
    auto engine = Engine::Start(ScriptedStore(script_), std::move(options), clock_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  void StartWithStudy(StudySpec spec = SpecOf("s")) {
    Start();
    ASSERT_TRUE(Create(*engine_, std::move(spec), "r").ok());
  }

  FakeClock clock_;
  std::shared_ptr<SchedulerScript> scheduler_ = std::make_shared<SchedulerScript>();
  std::shared_ptr<StoreScript> script_ = std::make_shared<StoreScript>();
  std::unique_ptr<Engine> engine_;
};

using Contract1 = DecisionTest;
using Contract10 = DecisionTest;
using Contract12InFlight = DecisionTest;

TEST_F(Contract1, ASlowSchedulerHoldsUpNobodysReport) {
  StartWithStudy();
  const Assigned held = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  ASSERT_EQ(held.trial->id, 1);
  scheduler_->gate.Shut();
  const auto slow = Send(*engine_, "s", SuggestOf("v", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(2));
  for (int step = 0; step < 20; ++step) {
    ASSERT_TRUE(Execute(*engine_, "s", ReportOf(held, step + 1, step, 0.5)).ok());
  }
  ASSERT_TRUE(Read(*engine_, "s").ok());
  EXPECT_FALSE(slow.answered());
  scheduler_->gate.Open();
  EXPECT_EQ(OnlyTrial(slow.Get()).trial->id, 2);
}

TEST_F(Contract10, TheAnswerIsAcceptedWhateverWasReportedInBetween) {
  StartWithStudy();
  const Assigned held = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  scheduler_->gate.Shut();
  const auto slow = Send(*engine_, "s", SuggestOf("v", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(2));
  ASSERT_TRUE(Execute(*engine_, "s", ReportOf(held, 1, 0, 0.5)).ok());
  scheduler_->gate.Open();
  const Assigned second = OnlyTrial(slow.Get());
  ASSERT_EQ(second.trial->id, 2);
  EXPECT_EQ(second.trial->decision, 2);
}

TEST_F(Contract10, CallsThatWaitAreJoinedIntoOneCount) {
  StartWithStudy();
  scheduler_->gate.Shut();
  std::vector<Awaited<Reply>> replies;
  replies.push_back(Send(*engine_, "s", SuggestOf("w0", 1)));
  ASSERT_TRUE(scheduler_->gate.Arrived(1));
  for (int i = 1; i <= 10; ++i) {
    replies.push_back(Send(*engine_, "s", SuggestOf("w" + std::to_string(i), 1, 2)));
  }
  ASSERT_TRUE(Read(*engine_, "s").ok());  // All are parked by now.
  scheduler_->gate.Open();
  for (const auto& reply : replies) ASSERT_TRUE(reply.Get().ok()) << reply.Get().status();
  EXPECT_EQ(scheduler_->Counts(), (std::vector<int>{1, 20}));
  EXPECT_EQ(Read(*engine_, "s")->study.trials.size(), 21u);
}

TEST_F(Contract10, OneDecisionAStudyAtATime) {
  StartWithStudy();
  scheduler_->gate.Shut();
  const auto first = Send(*engine_, "s", SuggestOf("w", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(1));
  const auto second = Send(*engine_, "s", SuggestOf("v", 1));
  ASSERT_TRUE(Read(*engine_, "s").ok());
  EXPECT_EQ(scheduler_->gate.arrivals(), 1);
  scheduler_->gate.Open();
  // They are served in order.
  EXPECT_EQ(OnlyTrial(first.Get()).trial->id, 1);
  EXPECT_EQ(OnlyTrial(second.Get()).trial->id, 2);
}

TEST_F(Contract10, TheJoinedCountKeepsToTheRunCap) {
  StudySpec spec = SpecOf("s");
  spec.budget.run_cap = 4;
  StartWithStudy(spec);
  scheduler_->gate.Shut();
  std::vector<Awaited<Reply>> replies;
  for (int i = 0; i < 10; ++i) {
    replies.push_back(Send(*engine_, "s", SuggestOf("w" + std::to_string(i), 1)));
  }
  ASSERT_TRUE(Read(*engine_, "s").ok());
  scheduler_->gate.Open();
  int trials = 0;
  for (const auto& reply : replies) {
    const auto got = reply.Get();
    ASSERT_TRUE(got.ok()) << got.status();
    if (OnlyTrial(got).trial->id != 0) ++trials;
  }
  EXPECT_EQ(trials, 4);
  EXPECT_EQ(Read(*engine_, "s")->study.trials.size(), 4u);
  int asked = 0;
  for (const int count : scheduler_->Counts()) asked += count;
  EXPECT_LE(asked, 4);
}

TEST_F(Contract10, AStudyThatIsPausedMeanwhileHandsOutNothing) {
  StartWithStudy();
  scheduler_->gate.Shut();
  const auto waiting = Send(*engine_, "s", SuggestOf("w", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(1));
  ASSERT_TRUE(Execute(*engine_, "s", SetStateCommand{StudyState::kPaused}).ok());
  scheduler_->gate.Open();
  const auto got = waiting.Get();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(std::holds_alternative<Wait>(std::get<SuggestReply>(*got)));
}

TEST_F(Contract12InFlight, ARepeatJoinsAndGetsTheSameAnswer) {
  StartWithStudy();
  scheduler_->gate.Shut();
  const auto first = Send(*engine_, "s", SuggestOf("w", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(1));
  const auto repeat = Send(*engine_, "s", SuggestOf("w", 1));  // Other tokens, the same body.
  ASSERT_TRUE(Read(*engine_, "s").ok());
  scheduler_->gate.Open();
  const Assigned a = OnlyTrial(first.Get());
  const Assigned b = OnlyTrial(repeat.Get());
  EXPECT_EQ(a.trial->id, 1);
  EXPECT_EQ(b.trial->id, 1);
  EXPECT_EQ(a.token, b.token);
  EXPECT_EQ(Read(*engine_, "s")->study.trials.size(), 1u);
}

TEST_F(Contract12InFlight, AnotherBodyOrAnotherNumberIsRefusedWhileOneWaits) {
  StartWithStudy();
  scheduler_->gate.Shut();
  const auto first = Send(*engine_, "s", SuggestOf("w", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(1));
  const auto other_body = Execute(*engine_, "s", SuggestOf("w", 1, 2));
  EXPECT_EQ(other_body.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf(other_body.status()).code, "SEQUENCE_REUSED");
  const auto next = Execute(*engine_, "s", SuggestOf("w", 2));
  EXPECT_EQ(next.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailOf(next.status()).code, "CALL_IN_FLIGHT");
  scheduler_->gate.Open();
  EXPECT_EQ(OnlyTrial(first.Get()).trial->id, 1);
  EXPECT_EQ(OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 2))).trial->id, 2);
}

TEST_F(Contract12InFlight, ACompleteThatWaitsForItsNextIsJoinedByItsRepeat) {
  StartWithStudy();
  const Assigned held = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  ASSERT_TRUE(Execute(*engine_, "s", ReportOf(held, 1, 0, 0.5)).ok());
  scheduler_->gate.Shut();
  CompleteCommand complete = CompleteOf(held, 2);
  complete.next = SuggestOf("w", 2);
  const auto first = Send(*engine_, "s", complete);
  ASSERT_TRUE(scheduler_->gate.Arrived(2));
  const auto repeat = Send(*engine_, "s", complete);
  EXPECT_EQ(Read(*engine_, "s")->study.trials[0]->state,
            TrialState::kCompleted);  // That half is done.
  scheduler_->gate.Open();
  for (const auto& reply : {first.Get(), repeat.Get()}) {
    ASSERT_TRUE(reply.ok()) << reply.status();
    const auto& completed = std::get<CompleteReply>(*reply);
    EXPECT_EQ(completed.trial->state, TrialState::kCompleted);
    ASSERT_TRUE(completed.next.has_value());
    EXPECT_EQ(OnlyTrial(StatusOr<SuggestReply>(*completed.next)).trial->id, 2);
  }
  EXPECT_EQ(Read(*engine_, "s")->study.trials.size(), 2u);
}

TEST_F(DecisionTest, AFailedDecisionAnswersItsCallersAndTheNextOneIsTakenAnew) {
  StartWithStudy();
  scheduler_->Instead(StatusOr<Decision>(absl::InternalError("no root found")));
  const auto failed = Suggest(*engine_, "s", SuggestOf("w", 1));
  EXPECT_EQ(failed.status().code(), StatusCode::kInternal) << failed.status();
  scheduler_->Instead(std::nullopt);
  EXPECT_EQ(OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1))).trial->id, 1);
}

TEST_F(DecisionTest, AFailedDecisionLeavesACompleteDone) {
  StartWithStudy();
  const Assigned held = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  ASSERT_TRUE(Execute(*engine_, "s", ReportOf(held, 1, 0, 0.5)).ok());
  scheduler_->Instead(StatusOr<Decision>(absl::InternalError("no root found")));
  CompleteCommand complete = CompleteOf(held, 2);
  complete.next = SuggestOf("w", 2);
  const auto reply = Execute(*engine_, "s", complete);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_FALSE(std::get<CompleteReply>(*reply).next.has_value());
  scheduler_->Instead(std::nullopt);
  EXPECT_EQ(OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 2))).trial->id, 2);
}

TEST_F(DecisionTest, ASchedulerThatSaysNothingIsNoLoop) {
  StartWithStudy();
  scheduler_->Instead(StatusOr<Decision>(Decision{}));
  EXPECT_TRUE(Suggest(*engine_, "s", SuggestOf("w", 1)).ok());
  EXPECT_LE(scheduler_->Counts().size(), 2u);
}

TEST_F(DecisionTest, ASchedulerThatWaitsIsAWait) {
  StartWithStudy();
  ASSERT_EQ(OnlyTrial(Suggest(*engine_, "s", SuggestOf("v", 1))).trial->id,
            1);  // May bring a change.
  Decision wait;
  wait.next = Next::kWait;
  wait.why = "for the other members";
  scheduler_->Instead(StatusOr<Decision>(wait));
  const auto reply = Suggest(*engine_, "s", SuggestOf("w", 1));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(std::holds_alternative<Wait>(*reply));
}

TEST_F(DecisionTest, ShutdownPastItsDeadlineLeavesASlowSchedulerBehind) {
  StartWithStudy();
  scheduler_->gate.Shut();
  const auto waiting = Send(*engine_, "s", SuggestOf("w", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(1));
  engine_->Shutdown(milliseconds(10));
  EXPECT_EQ(waiting.Get().status().code(), StatusCode::kUnavailable);
  engine_.reset();
  scheduler_->gate.Open();  // It ends by itself and touches nothing of the engine.
  Start();
  EXPECT_EQ(OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1))).trial->id, 1);
}

TEST_F(DecisionTest, ShutdownWaitsForADecisionWithinItsDeadline) {
  StartWithStudy();
  scheduler_->gate.Shut();
  const auto waiting = Send(*engine_, "s", SuggestOf("w", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(1));
  std::thread shutdown([&] { engine_->Shutdown(milliseconds(30'000)); });
  const bool begun = Eventually([&] {
    const auto late = Send(*engine_, "s", SetAttributesCommand{0, {{"i", "x"}}, {}});
    return late.answered() && DetailOf(late.Get().status()).code == "SHUTTING_DOWN";
  });
  EXPECT_FALSE(waiting.answered());
  scheduler_->gate.Open();
  EXPECT_EQ(OnlyTrial(waiting.Get()).trial->id, 1);
  shutdown.join();
  EXPECT_TRUE(begun);
}

TEST_F(DecisionTest, AboveTheBoundACompleteIsDoneWithoutItsNext) {
  Start({.queue = 2});
  ASSERT_TRUE(Create(*engine_, SpecOf("s"), "r").ok());
  const Assigned held = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  ASSERT_TRUE(Execute(*engine_, "s", ReportOf(held, 1, 0, 0.5)).ok());
  scheduler_->gate.Shut();
  const auto first = Send(*engine_, "s", SuggestOf("u", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(2));
  const auto second = Send(*engine_, "s", SuggestOf("v", 1));
  ASSERT_TRUE(Read(*engine_, "s").ok());  // Both are parked.
  const auto refused = Execute(*engine_, "s", SuggestOf("x", 1));
  EXPECT_EQ(DetailOf(refused.status()).code, "QUEUE_FULL");
  CompleteCommand complete = CompleteOf(held, 2);
  complete.next = SuggestOf("w", 2);
  for (int i = 0; i < 2; ++i) {  // It, and its repeat.
    const auto reply = Execute(*engine_, "s", complete);
    ASSERT_TRUE(reply.ok()) << reply.status();
    const auto& completed = std::get<CompleteReply>(*reply);
    EXPECT_EQ(completed.trial->state, TrialState::kCompleted);
    EXPECT_FALSE(completed.next.has_value());
  }
  scheduler_->gate.Open();
  ASSERT_TRUE(first.Get().ok());
  ASSERT_TRUE(second.Get().ok());
  EXPECT_EQ(OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 2))).trial->id, 4);
}

}  // namespace
}  // namespace jizi::tuner
