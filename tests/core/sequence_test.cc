// Exactly once (docs/contracts.md, 12): numbered calls of attempts and workers, and request ids.

#include <gtest/gtest.h>

#include <limits>

#include "tests/core/machine.h"

namespace jizi::tuner::testing {
namespace {

TEST(Contract12, TheLastNumberAgainGetsTheRecordedAnswerAndStoresNothing) {
  Machine m(SimpleSpec());
  m.script.on_change = [](const Study&, TrialId trial, const Change&) {
    Decision decision;
    decision.tell[trial] = Stop{"bad"};
    return decision;
  };
  const LeaseRef lease = m.Take("w");
  ReportCommand report = m.ReportOf(lease, 1, 0.5);
  report.measurements.push_back({0, {}, {{"loss", 1}}, std::nullopt});
  for (int delivery = 0; delivery < 3; ++delivery) {
    const auto outcome = m.Run(report);
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome->events.empty(), delivery > 0);
    const auto& reply = std::get<ReportReply>(*outcome->reply);
    EXPECT_EQ(reply.directive, Directive(Stop{"bad"}));
    ASSERT_EQ(reply.rejected.size(), 1u);
    EXPECT_EQ(reply.rejected[0].index, 1);
    if (delivery == 1) m.Restart();
  }
  EXPECT_EQ(m.At(1).measurements.size(), 1u);
}

TEST(Contract12, TheSameNumberWithAnotherBodyAStaleOneAndAGapAreRefused) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  m.Report(lease, 1, 0.5);
  m.Report(lease, 2, 0.5);
  ReportCommand report = m.ReportOf(lease, 3, 0.5);
  report.call = {2, DigestOf(77)};
  EXPECT_EQ(CodeOf(m.Run(report).status()), "SEQUENCE_REUSED");
  EXPECT_EQ(m.Run(report).status().code(), StatusCode::kInvalidArgument);
  report.call = {1, DigestOf(1)};
  EXPECT_EQ(CodeOf(m.Run(report).status()), "STALE_SEQUENCE");
  EXPECT_EQ(m.Run(report).status().code(), StatusCode::kFailedPrecondition);
  report.call = {4, DigestOf(4)};
  EXPECT_EQ(CodeOf(m.Run(report).status()), "SEQUENCE_GAP");
  report.call = {0, DigestOf(0)};
  EXPECT_EQ(CodeOf(m.Run(report).status()), "SEQUENCE_INVALID");
}

TEST(Contract12, ASuggestRepeatedGetsTheSameTrialAndTokenAlsoAfterARestart) {
  Machine m(SimpleSpec());
  const SuggestCommand first = m.SuggestFor("w");
  const auto given = m.Call(first);
  SuggestCommand again = first;
  again.tokens = {m.NewToken()};
  m.Restart();
  const auto repeated = m.Call(again);
  const auto& a = std::get<std::vector<Assigned>>(std::get<SuggestReply>(*given)).front();
  const auto& b = std::get<std::vector<Assigned>>(std::get<SuggestReply>(*repeated)).front();
  EXPECT_EQ(a.trial->id, b.trial->id);
  EXPECT_EQ(a.token, b.token);
  EXPECT_EQ(b.lease, first.lease);
  EXPECT_EQ(m.state.study.trials.size(), 1u);
  again.call.digest = DigestOf(99);
  EXPECT_EQ(CodeOf(m.Call(again).status()), "SEQUENCE_REUSED");
}

// A repeat is a sign of life: the worker is told a full lease, so it has one.
TEST(Contract12, ASuggestRepeatedRenewsTheLeaseThatItAnswers) {
  Machine m(SimpleSpec());
  const SuggestCommand first = m.SuggestFor("w");
  ASSERT_TRUE(m.Call(first).ok());
  m.Advance(50);
  const auto repeated = m.Run(first);
  ASSERT_TRUE(repeated.ok());
  EXPECT_TRUE(repeated->events.empty());
  m.Advance(20);
  ASSERT_TRUE(m.Run(TickCommand{}).ok());
  EXPECT_EQ(m.StateOf(1), TrialState::kRunning);
  m.Advance(41);
  ASSERT_TRUE(m.Run(TickCommand{}).ok());
  EXPECT_EQ(m.StateOf(1), TrialState::kQueued);
  const auto returned = m.Run(first);  // Nobody else has it yet.
  ASSERT_TRUE(returned.ok());
  EXPECT_EQ(m.StateOf(1), TrialState::kRunning);
}

TEST(Contract12, AWaitIsNotRecordedAndItsNumberIsDecidedAnewOrLeftOut) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  ASSERT_TRUE(m.Run(SetStateCommand{StudyState::kPaused}).ok());
  const size_t records = m.log.size();
  SuggestCommand poll = m.SuggestFor("w");
  EXPECT_EQ(poll.call.sequence, 2);
  for (int night = 0; night < 100; ++night) {
    const auto waits = m.Run(poll);
    ASSERT_TRUE(waits.ok());
    EXPECT_TRUE(std::holds_alternative<Wait>(std::get<SuggestReply>(*waits->reply)));
    if (night % 2 == 1) ++poll.call.sequence;  // A caller that counts it.
  }
  EXPECT_EQ(m.log.size(), records);
  EXPECT_EQ(m.SuggestFor("w").call.sequence, 2);
  ASSERT_TRUE(m.Run(SetStateCommand{StudyState::kActive}).ok());
  const auto given = m.Call(poll);
  ASSERT_TRUE(given.ok());
  EXPECT_TRUE(std::holds_alternative<std::vector<Assigned>>(std::get<SuggestReply>(*given)));
  EXPECT_EQ(m.SuggestFor("w").call.sequence, poll.call.sequence + 1);
  --poll.call.sequence;  // A late copy of a Wait.
  EXPECT_EQ(CodeOf(m.Run(poll).status()), "STALE_SEQUENCE");
  poll.call.sequence = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(CodeOf(m.Run(poll).status()), "SEQUENCE_INVALID");
  m.Report(lease, 1, 0.5);  // Attempts have no waits, and no gaps.
  ReportCommand gap = m.ReportOf(lease, 2, 0.5);
  ++gap.call.sequence;
  EXPECT_EQ(CodeOf(m.Run(gap).status()), "SEQUENCE_GAP");
}

TEST(Contract12, CheckpointAndReleaseShareTheSequenceWithReports) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  m.Report(lease, 1, 0.5);
  RegisterCheckpointCommand checkpoint{lease, {1, DigestOf(50)}, {1, "c", "", 9, 0}};
  EXPECT_EQ(CodeOf(m.Run(checkpoint).status()), "SEQUENCE_REUSED");
  checkpoint.call.sequence = 2;
  EXPECT_TRUE(m.Run(checkpoint).ok());
  EXPECT_TRUE(m.Run(checkpoint)->events.empty());
  const ReleaseCommand release{lease, {3, DigestOf(51)}, "bye"};
  EXPECT_TRUE(m.Run(release).ok());
  EXPECT_TRUE(m.Run(release)->events.empty());
  EXPECT_EQ(m.At(1).checkpoints.size(), 1u);
}

TEST(Contract12, CompleteIsIdempotentByState) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  m.Report(lease, 1, 0.5);
  CompleteCommand complete = m.CompleteOf(lease);
  EXPECT_TRUE(m.Run(complete).ok());
  complete.call = {9, DigestOf(3)};  // The executor's, after the program's own.
  complete.outcome = FailedOutcome{"exit code 1"};
  const auto again = m.Run(complete);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->events.empty());
  EXPECT_EQ(std::get<CompleteReply>(*again->reply).trial->state, TrialState::kCompleted);
}

TEST(Contract12, CompleteWithNextDoesBothHalvesAndEachOnlyOnce) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  m.Report(lease, 1, 0.5);
  CompleteCommand complete = m.CompleteOf(lease);
  complete.next = m.SuggestFor("w");
  for (int delivery = 0; delivery < 2; ++delivery) {
    const auto reply = m.Call(complete);
    ASSERT_TRUE(reply.ok());
    const auto& completed = std::get<CompleteReply>(*reply);
    EXPECT_EQ(completed.trial->state, TrialState::kCompleted);
    ASSERT_TRUE(completed.next);
    EXPECT_EQ(std::get<std::vector<Assigned>>(*completed.next).front().trial->id, 2);
  }
  EXPECT_EQ(m.state.study.trials.size(), 2u);
}

TEST(Contract12, CompleteWithARefusedNextHasDoneNothing) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  m.Report(lease, 1, 0.5);
  CompleteCommand complete = m.CompleteOf(lease);
  complete.next = m.SuggestFor("w");
  complete.next->call.sequence = 0;
  EXPECT_EQ(CodeOf(m.Call(complete).status()), "SEQUENCE_INVALID");
  EXPECT_EQ(m.StateOf(1), TrialState::kRunning);
}

TEST(Contract12, RequestIdsMakeEnqueueAndRetryHappenOnce) {
  Machine m(SimpleSpec());
  for (int delivery = 0; delivery < 2; ++delivery) {
    const auto reply = m.Call(EnqueueCommand{AtX(0.25), "id"});
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(std::get<EnqueueReply>(*reply).trial->id, 1);
  }
  EXPECT_EQ(CodeOf(m.Call(EnqueueCommand{AtX(0.5), "id"}).status()), "REQUEST_ID_REUSED");
  const LeaseRef lease = m.Take("w");
  CompleteCommand failed = m.CompleteOf(lease);
  failed.outcome = FailedOutcome{"exit code 1"};
  ASSERT_TRUE(m.Call(failed).ok());
  for (int delivery = 0; delivery < 2; ++delivery) {
    const auto reply = m.Call(RetryCommand{{}, "retry"});
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(std::get<RetryReply>(*reply).queued, std::vector<TrialId>{1});
  }
  EXPECT_EQ(m.state.queue.size(), 1u);
}

TEST(Contract12, ARetryThatFoundNoneDoesNotQueueOnItsRepeatWhatFailedSince) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  const auto none = m.Call(RetryCommand{{}, "retry"});
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(std::get<RetryReply>(*none).queued.empty());
  CompleteCommand failed = m.CompleteOf(lease);
  failed.outcome = FailedOutcome{"exit code 1"};
  ASSERT_TRUE(m.Call(failed).ok());
  const auto repeat = m.Call(RetryCommand{{}, "retry"});
  ASSERT_TRUE(repeat.ok());
  EXPECT_TRUE(std::get<RetryReply>(*repeat).queued.empty());
  EXPECT_EQ(m.StateOf(1), TrialState::kFailed);
  EXPECT_EQ(CodeOf(m.Call(RetryCommand{{1}, "retry"}).status()), "REQUEST_ID_REUSED");
}

TEST(Contract12, ARequestIdOfAnotherKindOfRequestIsRefused) {
  Machine m(SimpleSpec());
  ASSERT_TRUE(m.Call(EnqueueCommand{AtX(0.25), "enqueue"}).ok());
  CompleteCommand failed = m.CompleteOf(m.Take("w"));
  failed.outcome = FailedOutcome{"exit code 1"};
  ASSERT_TRUE(m.Call(failed).ok());
  ASSERT_TRUE(m.Call(EnqueueCommand{AtX(0.5), "other"}).ok());
  EXPECT_EQ(CodeOf(m.Call(RetryCommand{{}, "enqueue"}).status()), "REQUEST_ID_REUSED");
  EXPECT_EQ(CodeOf(m.Call(RetryCommand{{1}, "create"}).status()), "REQUEST_ID_REUSED");
  ASSERT_TRUE(m.Call(RetryCommand{{1}, "retry"}).ok());
  EXPECT_EQ(CodeOf(m.Call(RetryCommand{{1, 2}, "retry"}).status()), "REQUEST_ID_REUSED");
  EXPECT_EQ(CodeOf(m.Call(EnqueueCommand{AtX(0.25), "retry"}).status()), "REQUEST_ID_REUSED");
  EXPECT_EQ(CodeOf(m.Call(ResumeCommand{SimpleSpec(), "retry"}).status()), "REQUEST_ID_REUSED");
  EXPECT_EQ(m.StateOf(1), TrialState::kQueued);
}

TEST(Contract12, AttachTellsTheNextNumbersOfAttemptAndWorker) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("w");
  m.Report(lease, 4, 0.5);
  const auto by_lease = m.Call(AttachCommand{lease, "", Capabilities{true, false, false, {}}, 10});
  ASSERT_TRUE(by_lease.ok());
  const auto& reply = std::get<AttachReply>(*by_lease);
  ASSERT_EQ(reply.held.size(), 1u);
  EXPECT_EQ(reply.held[0].next_sequence, 2);
  EXPECT_EQ(reply.held[0].last_step, 4);
  EXPECT_EQ(reply.next_worker_sequence, 2);
  EXPECT_TRUE(m.At(1).attempts[0].capabilities.stop);
  EXPECT_EQ(m.At(1).total_steps, 10);
  const auto by_worker = m.Call(AttachCommand{std::nullopt, "w", std::nullopt, std::nullopt});
  EXPECT_EQ(std::get<AttachReply>(*by_worker).held.size(), 1u);
  const auto stranger = m.Call(AttachCommand{std::nullopt, "v", std::nullopt, std::nullopt});
  EXPECT_TRUE(std::get<AttachReply>(*stranger).held.empty());
  EXPECT_EQ(std::get<AttachReply>(*stranger).next_worker_sequence, 1);
}

}  // namespace
}  // namespace jizi::tuner::testing
