#include "base/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace jizi {
namespace {

struct Counter {
  Mutex mutex;
  CondVar changed;
  int count GUARDED_BY(mutex) = 0;
};

TEST(Mutex, OneThreadAtATimeIsInside) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&counter] {
      for (int j = 0; j < 1000; ++j) {
        MutexLock lock(counter.mutex);
        ++counter.count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(counter.mutex);
  EXPECT_EQ(counter.count, 4000);
}

TEST(CondVar, WaitReturnsHoldingTheMutexOnceNotified) {
  Counter counter;
  std::thread other([&counter] {
    MutexLock lock(counter.mutex);
    counter.count = 1;
    counter.changed.NotifyAll();
  });
  {
    MutexLock lock(counter.mutex);
    while (counter.count == 0) counter.changed.Wait(counter.mutex);
    EXPECT_EQ(counter.count, 1);
  }
  other.join();
}

TEST(CondVar, WaitUntilIsFalseOnceTheDeadlineHasPassedAndTheMutexIsHeldAgain) {
  Counter counter;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  {
    MutexLock lock(counter.mutex);
    while (counter.changed.WaitUntil(counter.mutex, deadline)) {
    }
    EXPECT_GE(std::chrono::steady_clock::now(), deadline);
    ++counter.count;
  }
  MutexLock lock(counter.mutex);  // Would hang, were it still held.
  EXPECT_EQ(counter.count, 1);
}

}  // namespace
}  // namespace jizi
