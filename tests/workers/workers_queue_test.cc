#include "tuner-service/workers/printed_queue.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace jizi::tuner {
namespace {

v1::Measurement At(int64_t step, const std::string& metric = "a", double value = 1) {
  v1::Measurement measurement;
  measurement.set_step(step);
  (*measurement.mutable_metrics())[metric] = value;
  return measurement;
}

// A measurement of about this size on the wire.
v1::Measurement Large(int64_t step, int metrics) {
  v1::Measurement measurement;
  measurement.set_step(step);
  for (int i = 0; i < metrics; ++i) {
    (*measurement.mutable_metrics())[std::string(250, 'm') + std::to_string(i)] = 1;
  }
  return measurement;
}

size_t BytesOf(const std::deque<v1::Measurement>& batch) {
  size_t bytes = 0;
  for (const v1::Measurement& measurement : batch) bytes += measurement.ByteSizeLong();
  return bytes;
}

TEST(PrintedQueueTest, ABatchHasAThousandMeasurementsAtMost) {
  PrintedQueue queue;
  for (int i = 0; i < 2500; ++i) queue.Add(At(i));
  EXPECT_EQ(queue.size(), 2500);
  std::vector<size_t> sizes;
  int64_t next = 0;
  while (!queue.empty()) {
    for (const v1::Measurement& measurement : queue.Batch()) {
      EXPECT_EQ(measurement.step(), next++);
    }
    sizes.push_back(queue.Batch().size());
    queue.Answered();
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{1000, 1000, 500}));
  EXPECT_EQ(queue.bytes(), 0U);
  EXPECT_EQ(queue.dropped(), 0);
}

TEST(PrintedQueueTest, ABatchHasAMebibyteAtMost) {
  PrintedQueue queue;
  for (int i = 0; i < 30; ++i) queue.Add(Large(i, 1000));  // 270 kB each.
  queue.Add(At(30));
  int batches = 0;
  int64_t sent = 0;
  while (!queue.empty()) {
    const auto& batch = queue.Batch();
    EXPECT_LE(BytesOf(batch), PrintedQueue::kBatchBytes);
    EXPECT_GE(batch.size(), 1U);
    sent += static_cast<int64_t>(batch.size());
    ++batches;
    queue.Answered();
  }
  EXPECT_EQ(sent, 31);
  EXPECT_GE(batches, 8);
  // One that is larger than that goes alone.
  queue.Add(Large(31, 5000));
  queue.Add(At(32));
  EXPECT_EQ(queue.Batch().size(), 1U);
}

TEST(PrintedQueueTest, SaysWhenThereAreEnough) {
  PrintedQueue queue;
  int count = 0;
  for (; !queue.Enough(); ++count) queue.Add(At(count));
  EXPECT_GE(queue.bytes(), PrintedQueue::kEnoughBytes);
  EXPECT_LT(queue.bytes(), PrintedQueue::kEnoughBytes + 4096);
  while (!queue.empty()) {
    static_cast<void>(queue.Batch());
    queue.Answered();
  }
  EXPECT_FALSE(queue.Enough());
}

TEST(PrintedQueueTest, MemoryIsBoundedAndTheLastOfEachMetricIsKept) {
  PrintedQueue queue;
  queue.Add(At(0, "accuracy", 0.25));  // Early, and never again.
  queue.Add(At(0, "loss", 9));
  queue.Add(At(1, "loss", 8));
  constexpr int kSteps = 200;
  for (int i = 2; i < kSteps; ++i) {
    queue.Add(Large(i, 1000));
    EXPECT_LE(queue.bytes(), PrintedQueue::kMostBytes);
  }
  queue.Add(At(kSteps, "loss", 7));
  EXPECT_GT(queue.dropped(), 0);
  std::vector<v1::Measurement> sent;
  while (!queue.empty()) {
    for (const v1::Measurement& measurement : queue.Batch()) sent.push_back(measurement);
    queue.Answered();
  }
  EXPECT_EQ(sent.back().step(), kSteps);
  ASSERT_TRUE(sent.front().metrics().contains("accuracy"));
  EXPECT_EQ(sent.front().metrics().at("accuracy"), 0.25);
  for (size_t i = 1; i < sent.size(); ++i) EXPECT_LT(sent[i - 1].step(), sent[i].step());
}

TEST(PrintedQueueTest, WhatIsNotAnsweredStaysTheSame) {
  PrintedQueue queue;
  for (int i = 0; i < 3; ++i) queue.Add(At(i));
  const size_t before = queue.Batch().size();
  for (int i = 3; i < 300'000; ++i) queue.Add(At(i));  // Beyond the bound.
  EXPECT_GT(queue.dropped(), 0);
  EXPECT_EQ(before, 3U);
  ASSERT_EQ(queue.Batch().size(), 3U);
  EXPECT_EQ(queue.Batch().back().step(), 2);
}

TEST(PrintedQueueTest, HalvingFindsTheGuiltyOneAndKeepsTheOthers) {
  PrintedQueue queue;
  for (int i = 0; i < 3000; ++i) queue.Add(At(i));
  const std::set<int64_t> guilty = {0, 37, 38, 1999, 2999};
  std::vector<int64_t> taken, left_out;
  int calls = 0;
  while (!queue.empty() && ++calls < 1000) {
    const auto& batch = queue.Batch();
    const bool refused = std::any_of(batch.begin(), batch.end(), [&](const v1::Measurement& m) {
      return guilty.contains(m.step());
    });
    if (refused && batch.size() > 1) {
      queue.Halve();
      continue;
    }
    for (const v1::Measurement& m : batch) (refused ? left_out : taken).push_back(m.step());
    queue.Answered();
  }
  EXPECT_EQ(left_out, (std::vector<int64_t>{0, 37, 38, 1999, 2999}));
  EXPECT_EQ(taken.size(), 2995U);
  EXPECT_TRUE(std::is_sorted(taken.begin(), taken.end()));
  EXPECT_LT(calls, 200);
}

}  // namespace
}  // namespace jizi::tuner
