// Leases and ticks under a clock that is moved by hand (docs/contracts.md, 9).

#include <gtest/gtest.h>

#include "tests/engine/engine_testing.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Contract9 : public testing::Test {
 protected:
  void Start() {
    engine_.reset();
    auto engine = Engine::Start(ScriptedStore(script_), {}, clock_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  void SetUp() override {
    Start();
    ASSERT_TRUE(Create(*engine_, SpecOf("s"), "r").ok());
    held_ = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
    ASSERT_EQ(held_.trial->id, 1);
  }
  // After all that was due: the ticks of a jump come after the calls that meet it.
  TrialState State() {
    EXPECT_TRUE(Read(*engine_, "s").ok());
    return Read(*engine_, "s")->study.trials[0]->state;
  }
  bool Becomes(TrialState state) {
    return Eventually([&] { return State() == state; });
  }

  FakeClock clock_;
  std::shared_ptr<StoreScript> script_ = std::make_shared<StoreScript>();
  std::unique_ptr<Engine> engine_;
  Assigned held_;
};

TEST_F(Contract9, ALeaseEndsByItselfWhenItsWorkerIsSilent) {
  clock_.Advance(seconds(59));
  EXPECT_EQ(State(), TrialState::kRunning);
  clock_.Advance(seconds(2));
  EXPECT_TRUE(Becomes(TrialState::kQueued));
  EXPECT_EQ(Read(*engine_, "s")->study.trials[0]->losses, 1);
}

TEST_F(Contract9, AReportIsAHeartbeat) {
  clock_.Advance(seconds(50));
  ASSERT_TRUE(Execute(*engine_, "s", ReportOf(held_, 1, 0, 0.5)).ok());
  clock_.Advance(seconds(50));
  EXPECT_EQ(State(), TrialState::kRunning);
  clock_.Advance(seconds(11));
  EXPECT_TRUE(Becomes(TrialState::kQueued));
}

TEST_F(Contract9, RenewKeepsTheLeaseAndWritesNothing) {
  const int64_t position = Read(*engine_, "s")->log_position;
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(seconds(50));
    const auto renewed =
        Execute(*engine_, "s", RenewCommand{{{held_.trial->id, held_.attempt, held_.token}}});
    ASSERT_TRUE(renewed.ok());
    EXPECT_TRUE(std::get<RenewReply>(*renewed).leases.at(0).held);
  }
  EXPECT_EQ(State(), TrialState::kRunning);
  EXPECT_EQ(Read(*engine_, "s")->log_position, position);
}

TEST_F(Contract9, LoadingRenewsEveryLiveLeaseInFull) {
  clock_.Advance(seconds(55));
  Start();
  clock_.Advance(seconds(55));
  EXPECT_EQ(State(), TrialState::kRunning);
  clock_.Advance(seconds(10));
  EXPECT_TRUE(Becomes(TrialState::kQueued));
}

TEST_F(Contract9, AnExpiredAttemptThatComesBackBeforeASuccessorGetsItsTrialBack) {
  clock_.Advance(seconds(61));
  ASSERT_TRUE(Becomes(TrialState::kQueued));
  ASSERT_TRUE(Execute(*engine_, "s", ReportOf(held_, 1, 0, 0.5)).ok());
  EXPECT_EQ(State(), TrialState::kRunning);
}

TEST_F(Contract9, AStudyWhoseLastWorkerDiedStillEnds) {
  StudySpec spec = SpecOf("ends");
  spec.budget.run_cap = 1;
  spec.retries.max_lost_workers = 0;
  ASSERT_TRUE(Create(*engine_, spec, "r2").ok());
  ASSERT_EQ(OnlyTrial(Suggest(*engine_, "ends", SuggestOf("w", 1))).trial->id, 1);
  clock_.Advance(seconds(61));
  EXPECT_TRUE(Eventually([&] { return Read(*engine_, "ends")->state == StudyState::kFinished; }));
}

TEST_F(Contract9, AWallClockBudgetEndsByItself) {
  StudySpec spec = SpecOf("hour");
  spec.budget.wall_clock = seconds(3600);
  ASSERT_TRUE(Create(*engine_, spec, "r2").ok());
  const Assigned trial = OnlyTrial(Suggest(*engine_, "hour", SuggestOf("w", 1)));
  ASSERT_EQ(trial.trial->id, 1);
  ASSERT_TRUE(Execute(*engine_, "hour", ReportOf(trial, 1, 0, 0.5)).ok());
  ASSERT_TRUE(Execute(*engine_, "hour", CompleteOf(trial, 2)).ok());
  EXPECT_EQ(Read(*engine_, "hour")->state, StudyState::kActive);
  clock_.Advance(seconds(3601));
  EXPECT_TRUE(Eventually([&] { return Read(*engine_, "hour")->state == StudyState::kFinished; }));
}

}  // namespace
}  // namespace jizi::tuner
