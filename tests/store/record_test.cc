// Records as bytes: whatever bytes come, an error and never a crash; what does not fit its state is
// not applied.

#include "tuner-service/store/record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/core/machine.h"
#include "tests/store/history.h"

namespace jizi::tuner {
namespace {

using testing::RichHistory;

TEST(RecordTest, EveryRecordOfARichHistoryReplaysFromItsBytes) {
  const std::vector<LogRecord> history = RichHistory(3, "a");
  Replay replay;
  for (const LogRecord& record : history) {
    const Status status = replay.Add(Encode(record));
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_TRUE(SameDurableState(replay.state(), testing::StateAfter(history)));
}

TEST(RecordTest, AWrongChecksumIsDataLoss) {
  EncodedRecord record = Encode(RichHistory(1, "a")[0]);
  RecordDecoder decoder;
  ASSERT_TRUE(decoder.Decode(record).ok());
  record.payload.back() ^= 1;
  EXPECT_EQ(decoder.Decode(record).status().code(), StatusCode::kDataLoss);
}

TEST(RecordTest, DamagedBytesWithARightChecksumAreDataLossOrSomethingThatFits) {
  const std::vector<LogRecord> history = RichHistory(1, "a");
  std::vector<EncodedRecord> encoded;
  for (const LogRecord& record : history) encoded.push_back(Encode(record));
  for (const uint64_t seed : testing::Seeds(1, 300)) {
    SCOPED_TRACE(::testing::Message() << "JIZI_TEST_SEED=" << seed);
    std::mt19937_64 random(seed);
    const size_t damaged = random() % encoded.size();
    Replay replay;
    for (size_t i = 0; i < encoded.size(); ++i) {
      EncodedRecord record = encoded[i];
      if (i == damaged) {
        for (int n = 0; n < 3; ++n) {
          record.payload[random() % record.payload.size()] = static_cast<char>(random());
        }
        record.checksum = ChecksumOf(record);
      }
      if (!replay.Add(record).ok()) break;
    }
  }
}

TEST(RecordTest, WhatDoesNotFitTheStateIsNotApplied) {
  const std::vector<LogRecord> history = RichHistory(1, "a");
  const StudyData state = testing::StateAfter(history);
  const auto fits = [&](std::vector<Event> events) {
    return CheckFits(state, {1, state.log_position + 1, state.last_event, std::move(events)}).ok();
  };
  const auto refused = [&](const Event& event) {
    const LogRecord record{1, state.log_position + 1, state.last_event, {event}};
    const Status status = CheckFits(state, record);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status << " event " << event.index();
  };
  const Token token{};
  const Seconds minute(60);
  const double kInfinity = std::numeric_limits<double>::infinity();
  refused(StudyCreated{});
  refused(StudyResumed{Budget{{}, Seconds(-1)}, {}, ""});
  refused(StudyResumed{Budget{}, RetryPolicy{-1, 0}, ""});
  refused(Decided{state.decisions, 1, 1, Next::kMore, ""});
  refused(Decided{std::numeric_limits<int64_t>::max(), 1, 1, Next::kMore, ""});
  refused(TrialCreated{99, 0, {}, ""});
  const TrialId next = static_cast<TrialId>(state.study.trials.size()) + 1;
  TrialCreated successor{next, 0, {}, ""};
  successor.proposal.successor_of = next;
  refused(successor);
  TrialCreated warm{next, 0, {}, ""};
  warm.proposal.warm_start = CheckpointRef{0, {}};
  refused(warm);
  refused(TrialAssigned{99, 1, "w", {}, Seconds(1), {}});
  refused(TrialAssigned{1, 2, "w", {}, Seconds(1), {}});  // Completed.
  const TrialId queued = state.queue.front();
  const auto attempts = static_cast<int>(state.study.Find(queued)->attempts.size());
  for (const double lease : {0.0, -1.0, 1e300, kInfinity, std::nan("")}) {
    refused(TrialAssigned{queued, attempts + 1, "w", token, Seconds(lease), {}});
  }
  EXPECT_TRUE(
      fits({TrialAssigned{queued, attempts + 1, "w", token, minute, {}},
            AttemptEnded{queued, attempts + 1, AttemptEnd::kLost, "", TrialState::kQueued, {}},
            AttemptReclaimed{queued, attempts + 1}}));
  refused(AttemptReclaimed{1, 1});
  refused(AttemptAttached{1, 7, {}, {}});
  refused(MeasurementsReported{0, {}, {}});
  refused(MeasurementsReported{1, {}, {}});  // Completed.
  refused(CheckpointRegistered{-1, {}});
  refused(TrialTold{6, Stop{}});
  refused(DirectiveDelivered{1'000'000, 1});
  refused(AttemptEnded{1, 1, AttemptEnd::kFailed, "", TrialState::kFailed, {}});
  const TrialId live = state.leases.begin()->first;
  const Attempt& attempt = state.study.Find(live)->attempts.back();
  ASSERT_EQ(state.study.Find(live)->state, TrialState::kRunning);
  refused(AttemptEnded{live, attempt.number, AttemptEnd::kRunning, "", TrialState::kQueued, {}});
  refused(AttemptEnded{live, attempt.number, AttemptEnd::kLost, "", TrialState::kRunning, {}});
  refused(AttemptReclaimed{live, attempt.number});
  EXPECT_FALSE(
      fits({AttemptEnded{live, attempt.number, AttemptEnd::kLost, "", TrialState::kQueued, {}},
            AttemptEnded{live, attempt.number, AttemptEnd::kLost, "", TrialState::kQueued, {}}}));
  refused(TrialRequeued{1, "", ""});
  refused(TrialRequeued{queued, "", ""});
  refused(TrialRequeued{live, "", ""});
  refused(AttributesSet{77, {}, {}});
  const auto given = [](std::vector<std::pair<TrialId, int>> assigned) {
    return RecordedSuggestion{std::move(assigned), {}, {}};
  };
  refused(CallAnswered{"w", 0, 0, {1, {}}, given({{next, 1}})});
  refused(CallAnswered{"w", 0, 0, {1, {}}, given({{1, 0}})});
  refused(CallAnswered{"w", 0, 0, {1, {}}, given({{1, 1'000}})});
  refused(CallAnswered{"w", 0, 0, {1, {}}, RecordedDone{}});
  refused(CallAnswered{"", 1, 1, {1, {}}, given({})});
  refused(CallAnswered{"", 1, 99, {1, {}}, RecordedDone{}});
  refused(CallAnswered{"", 1, 1, {0, {}}, RecordedDone{}});
  refused(CallAnswered{"", 1, 1, {std::numeric_limits<int64_t>::max(), {}}, RecordedDone{}});
  EXPECT_TRUE(fits({CallAnswered{"w", 0, 0, {1, {}}, given({{1, 1}})}}));
  LogRecord late{1, state.log_position + 1, Timestamp::max(), {}};
  EXPECT_FALSE(CheckFits(state, late).ok());
  LogRecord gap{1, state.log_position + 2, state.last_event, {StudyDeleted{}}};
  EXPECT_FALSE(CheckFits(state, gap).ok());
  EXPECT_FALSE(CheckFits(StudyData(), {1, 1, {}, {StudyDeleted{}}}).ok());
  --gap.position;
  EXPECT_TRUE(CheckFits(state, gap).ok());
}

TEST(RecordTest, AStudyBeginsWithACreationThatACommandCouldHaveBrought) {
  const auto fits = [](std::vector<Event> events) {
    return CheckFits(StudyData(), {1, 1, {}, std::move(events)}).ok();
  };
  StudySpec spec = testing::SimpleSpec();
  EXPECT_TRUE(fits({StudyCreated{spec, ""}}));
  EXPECT_FALSE(fits({}));  // What follows would find no study.
  EXPECT_FALSE(fits({StudyCreated{spec, ""}, StudyCreated{spec, ""}}));
  EXPECT_FALSE(fits({StudyCreated{{}, ""}}));
  for (const double quantum : {0.0, 0.5, std::nan(""), 1e300}) {
    spec.space.parameters[0].domain = NumericDomain{Uniform{0, 8, Scale::kLinear}, quantum, true};
    EXPECT_FALSE(fits({StudyCreated{spec, ""}})) << quantum;
    spec.space.parameters[0].domain = NumericDomain{Normal{}, quantum, true};
    EXPECT_FALSE(fits({StudyCreated{spec, ""}})) << quantum;
  }
}

}  // namespace
}  // namespace jizi::tuner
