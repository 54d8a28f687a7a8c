// Leases, attempts and their ends (docs/contracts.md, 7 to 9).

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/machine.h"

namespace jizi::tuner::testing {
namespace {

StatusOr<Reply> Fail(Machine& m, const LeaseRef& lease) {
  CompleteCommand command = m.CompleteOf(lease);
  command.outcome = FailedOutcome{"exit code 1"};
  return m.Call(command);
}

TEST(Contract7, AnotherTokenGetsLeaseLostAndChangesNothing) {
  Machine m(SimpleSpec());
  LeaseRef lease = m.Take("w");
  lease.token[5] ^= 1;
  EXPECT_EQ(CodeOf(m.Run(m.ReportOf(lease, 1, 0)).status()), "LEASE_LOST");
  EXPECT_EQ(CodeOf(m.Run(m.CompleteOf(lease)).status()), "LEASE_LOST");
  EXPECT_EQ(CodeOf(m.Run(ReleaseCommand{lease, {1, {}}, ""}).status()), "LEASE_LOST");
  lease.attempt = 2;
  EXPECT_EQ(CodeOf(m.Run(m.ReportOf(lease, 1, 0)).status()), "LEASE_LOST");
  lease.trial = 9;
  EXPECT_EQ(CodeOf(m.Run(m.ReportOf(lease, 1, 0)).status()), "TRIAL_NOT_FOUND");
  EXPECT_EQ(m.log.size(), 3u);  // Created, decided, assigned.
}

TEST(Contract7, ANewAttemptStartsFromTheLastCheckpointAndInheritsUpToIt) {
  Machine m(SimpleSpec());
  const LeaseRef first = m.Take("w");
  for (int64_t step = 1; step <= 2; ++step) m.Report(first, step, 0.1);
  ASSERT_TRUE(m.Run(RegisterCheckpointCommand{first, m.NextCall(first), {2, "c2", "", 5, 0}}).ok());
  m.Report(first, 3, 0.2);
  m.Advance(61);
  const SuggestReply reply = m.Suggest("v");
  const Assigned& second = std::get<std::vector<Assigned>>(reply).front();
  EXPECT_EQ(second.trial->id, 1);
  EXPECT_EQ(second.attempt, 2);
  ASSERT_TRUE(second.start);
  EXPECT_EQ(second.start->checkpoint.path, "c2");
  EXPECT_EQ(m.At(1).measurements.size(), 2u);
  EXPECT_EQ(m.At(1).attempts[1].start_step, 2);
  m.Report({1, 2, second.token}, 3, 0.3);  // Step 3 again: the old one no longer counts.
  EXPECT_EQ(m.At(1).measurements.back().attempt, 2);
}

TEST(Contract7, WithoutACheckpointNothingIsInherited) {
  Machine m(SimpleSpec());
  const LeaseRef first = m.Take("w");
  m.Report(first, 0, 0.1);
  ASSERT_TRUE(m.Run(ReleaseCommand{first, m.NextCall(first), "shutdown"}).ok());
  m.Take("w");
  EXPECT_TRUE(m.At(1).measurements.empty());
}

TEST(Contract7, ARollBackDoesTheSameInsideAnAttempt) {
  Machine m(SimpleSpec());
  m.script.on_change = [](const Study&, TrialId trial, const Change& change) {
    Decision decision;
    const auto* reported = std::get_if<Reported>(&change);
    if (reported != nullptr && reported->measurement.step == 3 &&
        reported->measurement.rollback == 0) {
      decision.tell[trial] = Continue{{}, 1, "diverges"};
    }
    return decision;
  };
  const LeaseRef lease = m.Take("w");
  Capabilities can;
  can.roll_back = true;
  ASSERT_TRUE(m.Call(AttachCommand{lease, "", can, std::nullopt}).ok());
  m.Report(lease, 1, 0.1);
  m.Report(lease, 2, 0.1);
  ASSERT_TRUE(m.Run(RegisterCheckpointCommand{lease, m.NextCall(lease), {2, "c2", "", 5, 0}}).ok());
  const ReportReply told = m.Report(lease, 3, 9);
  EXPECT_EQ(std::get<Continue>(told.directive).roll_back_to, 1);
  EXPECT_EQ(m.At(1).measurements.size(), 1u);
  EXPECT_TRUE(m.At(1).checkpoints.empty());  // Of the line that was given up.
  EXPECT_TRUE(m.Report(lease, 2, 0.2).rejected.empty());
  EXPECT_EQ(m.At(1).measurements.back().rollback, 1);
}

TEST(Contract7, AProgramThatCannotRollBackIsNotToldTo) {
  Machine m(SimpleSpec());
  m.script.on_change = [](const Study&, TrialId trial, const Change&) {
    Decision decision;
    decision.tell[trial] = Continue{{}, 0, "diverges"};
    return decision;
  };
  const LeaseRef lease = m.Take("w");
  EXPECT_EQ(m.Report(lease, 1, 9).directive, Directive(Continue{}));
}

TEST(Contract9, EveryReportAndRenewExtendsTheLeaseAndRenewWritesNoEvent) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  for (int i = 1; i <= 5; ++i) {
    m.Advance(50);
    if (i % 2 == 0) {
      m.Report(lease, i, 0.5);
    } else {
      const auto renewed = m.Run(RenewCommand{{lease}});
      ASSERT_TRUE(renewed.ok());
      EXPECT_TRUE(renewed->events.empty());
      EXPECT_TRUE(std::get<RenewReply>(*renewed->reply).leases[0].held);
    }
    ASSERT_TRUE(m.Run(TickCommand{}).ok());
    EXPECT_EQ(m.StateOf(1), TrialState::kRunning);
  }
  m.Advance(61);
  ASSERT_TRUE(m.Run(TickCommand{}).ok());
  EXPECT_EQ(m.StateOf(1), TrialState::kQueued);
  EXPECT_EQ(m.At(1).losses, 1);
}

TEST(Contract9, AnExpiredAttemptThatComesBackFirstGetsItsTrialWithItsBacklog) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  m.Report(lease, 1, 0.5);
  m.Advance(61);
  ASSERT_TRUE(m.Run(TickCommand{}).ok());
  ASSERT_EQ(m.StateOf(1), TrialState::kQueued);
  m.Report(lease, 2, 0.4);
  EXPECT_EQ(m.StateOf(1), TrialState::kRunning);
  EXPECT_EQ(m.At(1).losses, 0);
  EXPECT_EQ(m.At(1).measurements.size(), 2u);
  EXPECT_TRUE(m.state.queue.empty());
}

TEST(Contract9, OnceASuccessorWasHandedOutTheLeaseIsLost) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  m.Advance(61);
  EXPECT_EQ(m.Take("v").trial, 1);
  EXPECT_EQ(CodeOf(m.Run(m.ReportOf(lease, 2, 0.4)).status()), "LEASE_LOST");
  const auto renewed = m.Run(RenewCommand{{lease}});
  EXPECT_FALSE(std::get<RenewReply>(*renewed->reply).leases[0].held);
}

TEST(Contract9, LoadingRenewsEveryLiveLeaseInFull) {
  Machine m(SimpleSpec());
  m.Take("w");
  m.Advance(59);
  m.Restart();
  m.Advance(59);
  ASSERT_TRUE(m.Run(TickCommand{}).ok());
  EXPECT_EQ(m.StateOf(1), TrialState::kRunning);
  EXPECT_EQ(*NextDeadline(m.state, m.context()), m.context().steady_now + std::chrono::seconds(1));
}

TEST(Attempts, LostWorkersAreCountedUntilTheTrialFails) {
  StudySpec spec = SimpleSpec();
  spec.retries.max_lost_workers = 2;
  Machine m(spec);
  for (int loss = 1; loss <= 3; ++loss) {
    EXPECT_EQ(m.Take("w").trial, 1);
    m.Advance(61);
    ASSERT_TRUE(m.Run(TickCommand{}).ok());
  }
  EXPECT_EQ(m.StateOf(1), TrialState::kFailed);
  EXPECT_NE(m.At(1).end_why.find("lost 3 workers"), std::string::npos);
}

TEST(Attempts, AFailureIsTriedAgainUpToMaxRetriesAndBeforeNewTrials) {
  StudySpec spec = SimpleSpec();
  spec.retries.max_retries = 1;
  Machine m(spec);
  m.Suggest("other", 3);
  const LeaseRef lease = m.Take("w");
  ASSERT_TRUE(Fail(m, lease).ok());
  EXPECT_EQ(m.StateOf(4), TrialState::kQueued);
  const LeaseRef again = m.Take("w");
  EXPECT_EQ(again.trial, 4);
  EXPECT_EQ(again.attempt, 2);
  ASSERT_TRUE(Fail(m, again).ok());
  EXPECT_EQ(m.StateOf(4), TrialState::kFailed);
  EXPECT_EQ(m.At(4).end_why, "exit code 1");
}

TEST(Attempts, AReleaseIsNotCounted) {
  Machine m(SimpleSpec());
  for (int i = 0; i < 20; ++i) {
    const LeaseRef lease = m.Take("w");
    EXPECT_EQ(lease.trial, 1);
    ASSERT_TRUE(m.Run(ReleaseCommand{lease, m.NextCall(lease), "Ctrl-C"}).ok());
    EXPECT_EQ(CodeOf(m.Run(m.ReportOf(lease, 1, 0)).status()), "LEASE_LOST");
  }
  EXPECT_EQ(m.At(1).failures + m.At(1).losses, 0);
}

TEST(Attempts, ATrialThatNeverEndsFailsAtItsThousandthAttempt) {
  Machine m(SimpleSpec());
  m.check_replay = false;
  for (size_t i = 0; i < kMaxAttemptsPerTrial; ++i) {
    const LeaseRef lease = m.Take("w");
    ASSERT_EQ(lease.trial, 1);
    ASSERT_TRUE(m.Run(ReleaseCommand{lease, m.NextCall(lease), "again"}).ok());
  }
  EXPECT_EQ(m.StateOf(1), TrialState::kFailed);
}

TEST(Attempts, LateCallsOnAnEndedTrialAreRefused) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  m.Report(lease, 1, 0.5);
  ASSERT_TRUE(m.Run(m.CompleteOf(lease)).ok());
  const Status late = m.Run(m.ReportOf(lease, 2, 0.5)).status();
  EXPECT_EQ(CodeOf(late), "TRIAL_ENDED");
  EXPECT_EQ(late.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf(m.Run(AttachCommand{lease, "", {}, {}}).status()), "TRIAL_ENDED");
}

TEST(Attempts, RetryByHandQueuesFailedTrialsOnlyAndStartsTheCountsAnew) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  ASSERT_TRUE(Fail(m, lease).ok());
  EXPECT_EQ(CodeOf(m.Run(RetryCommand{{7}, "a"}).status()), "TRIAL_NOT_FOUND");
  ASSERT_TRUE(m.Run(RetryCommand{{1}, "b"}).ok());
  EXPECT_EQ(m.StateOf(1), TrialState::kQueued);
  EXPECT_EQ(m.At(1).failures, 0);
  EXPECT_EQ(CodeOf(m.Run(RetryCommand{{1}, "c"}).status()), "TRIAL_NOT_FAILED");
  EXPECT_EQ(CodeOf(m.Run(m.ReportOf(lease, 1, 0)).status()), "LEASE_LOST");
}

TEST(Attempts, AnEndAfterStopOrPauseIsThatWhateverItsCode) {
  for (const bool stop : {true, false}) {
    for (const int outcome : {0, 1, 2, 3}) {
      Machine m(SimpleSpec());
      m.script.on_change = [stop](const Study&, TrialId trial, const Change&) {
        Decision decision;
        decision.tell[trial] = stop ? Directive(Stop{"bad"}) : Directive(Pause{"turns"});
        return decision;
      };
      const LeaseRef lease = m.Take("w");
      Capabilities can;
      can.pause = true;
      ASSERT_TRUE(m.Call(AttachCommand{lease, "", can, std::nullopt}).ok());
      m.Report(lease, 1, std::nan(""));
      CompleteCommand complete = m.CompleteOf(lease);
      if (outcome == 1) complete.outcome = FailedOutcome{"exit code 1"};
      if (outcome == 2) complete.outcome = InfeasibleOutcome{"diverged"};
      if (outcome == 3) {
        m.Advance(61);
        ASSERT_TRUE(m.Run(TickCommand{}).ok());
      } else {
        ASSERT_TRUE(m.Call(complete).ok());
      }
      EXPECT_EQ(m.StateOf(1), stop ? TrialState::kStopped : TrialState::kPaused);
    }
  }
}

TEST(Contract8, AMetricThatWasNeverReportedFailsTheTrialWithTheNamesThatWere) {
  StudySpec spec = SimpleSpec();
  spec.metrics[0].name = "val_acc";
  Machine m(spec);
  const LeaseRef lease = m.Take("w");
  ReportCommand report = m.ReportOf(lease, 1, 0.5);
  report.measurements = {{1, {}, {{"val_accuracy", 0.9}, {"loss", 0.5}}, std::nullopt},
                         {2, {}, {{"loss", 0.4}, {"jizi/steps_per_s", 9}}, std::nullopt}};
  ASSERT_TRUE(m.Call(report).ok());
  ASSERT_TRUE(m.Call(m.CompleteOf(lease)).ok());
  EXPECT_EQ(m.StateOf(1), TrialState::kFailed);
  EXPECT_EQ(m.At(1).end_why,
            "the program ended well but never reported the metric 'val_acc'; reported: loss, "
            "val_accuracy");
  ASSERT_TRUE(m.Call(m.CompleteOf(m.Take("w"))).ok());
  EXPECT_EQ(m.At(2).end_why,
            "the program ended well but never reported the metric 'val_acc'; it reported nothing");
}

// What decides is how it ended, not how a program words its own reason.
TEST(Contract8, AProgramThatFailsInTheSameWordsGoesOnFromItsCheckpoint) {
  StudySpec spec = SimpleSpec();
  spec.retries.max_retries = 1;
  Machine m(spec);
  const LeaseRef first = m.Take("w");
  ASSERT_TRUE(m.Run(RegisterCheckpointCommand{first, m.NextCall(first), {4, "c4", "", 5, 0}}).ok());
  CompleteCommand failed = m.CompleteOf(first);
  failed.outcome = FailedOutcome{"the program ended well but never reported the metric 'x'"};
  ASSERT_TRUE(m.Call(failed).ok());
  const SuggestReply reply = m.Suggest("w");
  ASSERT_TRUE(std::get<std::vector<Assigned>>(reply).front().start);
}

// From a checkpoint at the training's end it would train nothing and report nothing.
TEST(Contract8, ATrialWithoutItsMetricIsTriedAgainAnew) {
  for (const bool by_hand : {false, true}) {
    StudySpec spec = SimpleSpec();
    spec.retries.max_retries = by_hand ? 0 : 1;
    Machine m(spec);
    const LeaseRef first = m.Take("w");
    ASSERT_TRUE(
        m.Run(RegisterCheckpointCommand{first, m.NextCall(first), {4, "c4", "", 5, 0}}).ok());
    ASSERT_TRUE(m.Call(m.CompleteOf(first)).ok());
    if (by_hand) {
      EXPECT_EQ(m.StateOf(1), TrialState::kFailed);
      ASSERT_TRUE(m.Call(RetryCommand{{1}, "r"}).ok());
    }
    const SuggestReply reply = m.Suggest("w");
    const Assigned& second = std::get<std::vector<Assigned>>(reply).front();
    EXPECT_EQ(second.attempt, 2);
    EXPECT_FALSE(second.start);
    EXPECT_TRUE(m.At(1).checkpoints.empty());
    // And a crash of this one goes on from its checkpoint, as ever.
    const LeaseRef again{1, 2, second.token};
    ASSERT_TRUE(
        m.Run(RegisterCheckpointCommand{again, m.NextCall(again), {2, "c2", "", 5, 0}}).ok());
    m.Advance(61);
    const SuggestReply third = m.Suggest("w");
    ASSERT_TRUE(std::get<std::vector<Assigned>>(third).front().start);
    ASSERT_TRUE(
        m.Call(m.CompleteOf({1, 3, std::get<std::vector<Assigned>>(third).front().token})).ok());
  }
}

TEST(Attempts, APausedTrialIsResumedByTheSchedulerAsANewAttempt) {
  StudySpec spec = SimpleSpec();
  spec.budget.run_cap = 1;
  Machine m(spec);
  m.script.on_change = [](const Study&, TrialId trial, const Change& change) {
    Decision decision;
    if (std::holds_alternative<Reported>(change)) decision.tell[trial] = Pause{"turns"};
    return decision;
  };
  const LeaseRef lease = m.Take("w");
  Capabilities can;
  can.pause = true;
  ASSERT_TRUE(m.Call(AttachCommand{lease, "", can, std::nullopt}).ok());
  m.Report(lease, 1, 0.5);
  ASSERT_TRUE(m.Call(m.CompleteOf(lease)).ok());
  EXPECT_EQ(m.state.state, StudyState::kActive);  // At its run_cap, but a resume may come.
  m.script.suggest = [](const Study&, int) {
    Decision decision;
    decision.resume = {1};
    return decision;
  };
  EXPECT_EQ(m.Take("w").attempt, 2);
}

}  // namespace
}  // namespace jizi::tuner::testing
