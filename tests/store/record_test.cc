// Records as bytes: whatever bytes come, an error and never a crash; what does not fit its state is
// not applied.

#include "tuner-service/store/record.h"

#include <gtest/gtest.h>

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
  const auto refused = [&](Event event) {
    const LogRecord record{1, state.log_position + 1, state.last_event, {std::move(event)}};
    const Status status = CheckFits(state, record);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
  };
  refused(StudyCreated{});
  refused(TrialCreated{99, 0, {}, ""});
  refused(TrialAssigned{99, 1, "w", {}, Seconds(1), {}});
  refused(TrialAssigned{1, 2, "w", {}, Seconds(1), {}});  // Completed.
  refused(AttemptReclaimed{1, 1});
  refused(AttemptAttached{1, 7, {}, {}});
  refused(MeasurementsReported{0, {}, {}});
  refused(CheckpointRegistered{-1, {}});
  refused(TrialTold{6, Stop{}});
  refused(DirectiveDelivered{1'000'000, 1});
  refused(AttemptEnded{1, 1, AttemptEnd::kFailed, "", TrialState::kFailed, {}});
  refused(TrialRequeued{1, "", ""});
  refused(AttributesSet{77, {}, {}});
  LogRecord gap{1, state.log_position + 2, state.last_event, {StudyDeleted{}}};
  EXPECT_FALSE(CheckFits(state, gap).ok());
  EXPECT_FALSE(CheckFits(StudyData(), {1, 1, {}, {StudyDeleted{}}}).ok());
  --gap.position;
  EXPECT_TRUE(CheckFits(state, gap).ok());
}

}  // namespace
}  // namespace jizi::tuner
