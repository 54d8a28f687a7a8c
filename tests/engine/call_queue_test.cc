#include "tuner-service/engine/call_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace jizi::tuner {
namespace {

using Queue = CallQueue<std::unique_ptr<int>>;
constexpr size_t kNoLimit = SIZE_MAX;
using std::chrono::hours;
using std::chrono::steady_clock;

std::unique_ptr<int> Item(int value) {
  return std::make_unique<int>(value);
}

TEST(CallQueueTest, TakesEverythingInOrder) {
  Queue queue(10, kNoLimit);
  for (int i = 0; i < 3; ++i) {
    auto item = Item(i);
    EXPECT_EQ(queue.Push(item, 1), Queue::Pushed::kYes);
    EXPECT_EQ(item, nullptr);
  }
  const auto taken = queue.Take(steady_clock::now() + hours(1));
  ASSERT_EQ(taken.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*taken[static_cast<size_t>(i)], i);
}

TEST(CallQueueTest, IsFullAtTheLimitAndLeavesTheItem) {
  Queue queue(1, kNoLimit);
  auto first = Item(1);
  auto second = Item(2);
  EXPECT_EQ(queue.Push(first, 1), Queue::Pushed::kYes);
  EXPECT_EQ(queue.Push(second, 1), Queue::Pushed::kFull);
  EXPECT_NE(second, nullptr);
  queue.PushOwn(Item(3));  // The engine's own are let in.
  EXPECT_EQ(queue.Take(steady_clock::now()).size(), 2u);
  EXPECT_EQ(queue.Push(second, 1), Queue::Pushed::kYes);
}

TEST(CallQueueTest, IsFullOfBytesAtTheirLimitAndTakesAnItemAlone) {
  Queue queue(10, 100);
  auto large = Item(1);
  auto small = Item(2);
  EXPECT_EQ(queue.Push(large, 1000), Queue::Pushed::kYes);
  EXPECT_EQ(queue.Push(small, 1), Queue::Pushed::kTooManyBytes);
  EXPECT_NE(small, nullptr);
  EXPECT_EQ(queue.Take(steady_clock::now()).size(), 1u);
  EXPECT_EQ(queue.Push(small, 60), Queue::Pushed::kYes);
  auto more = Item(3);
  EXPECT_EQ(queue.Push(more, 41), Queue::Pushed::kTooManyBytes);
  EXPECT_EQ(queue.Push(more, 40), Queue::Pushed::kYes);
}

TEST(CallQueueTest, ClosedRefusesAndKeepsWhatWaits) {
  Queue queue(10, kNoLimit);
  auto item = Item(1);
  EXPECT_EQ(queue.Push(item, 1), Queue::Pushed::kYes);
  queue.Close();
  auto late = Item(2);
  EXPECT_EQ(queue.Push(late, 1), Queue::Pushed::kClosed);
  EXPECT_NE(late, nullptr);
  EXPECT_EQ(queue.Take(steady_clock::now() + hours(1)).size(), 1u);
}

TEST(CallQueueTest, WakeEndsAWait) {
  Queue queue(10, kNoLimit);
  std::thread waker([&] { queue.Wake(); });
  EXPECT_TRUE(queue.Take(steady_clock::now() + hours(1)).empty());
  waker.join();
  queue.Wake();
  queue.AwaitWake(steady_clock::now() + hours(1));  // A wake before the wait counts.
  EXPECT_TRUE(queue.Take(steady_clock::now()).empty());
}

TEST(CallQueueTest, AwaitWakeLeavesTheItems) {
  Queue queue(10, kNoLimit);
  auto item = Item(1);
  EXPECT_EQ(queue.Push(item, 1), Queue::Pushed::kYes);
  queue.AwaitWake(steady_clock::now());
  EXPECT_EQ(queue.Take(steady_clock::now()).size(), 1u);
}

TEST(CallQueueTest, ManyThreadsLoseNothing) {
  Queue queue(1'000'000, kNoLimit);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        auto item = Item(i);
        EXPECT_EQ(queue.Push(item, 1), Queue::Pushed::kYes);
      }
    });
  }
  size_t taken = 0;
  const auto until = steady_clock::now() + std::chrono::seconds(30);
  while (taken < 4000 && steady_clock::now() < until) taken += queue.Take(until).size();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 4000u);
}

}  // namespace
}  // namespace jizi::tuner
