#pragma once
// mutex.h - std::mutex and std::condition_variable with clang's thread-safety annotations.
// Debian's absl::Mutex gives false races under TSAN, and std::mutex alone cannot be checked by
// -Wthread-safety.

#include <chrono>
#include <condition_variable>
#include <mutex>

#if __has_include("absl/base/thread_annotations.h")
// absl's headers define GUARDED_BY too, once: they have their say before ours.
#include "absl/base/thread_annotations.h"
#undef GUARDED_BY
#endif

#if defined(__clang__)
#define JIZI_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define JIZI_THREAD_ANNOTATION(x)
#endif
#define GUARDED_BY(x) JIZI_THREAD_ANNOTATION(guarded_by(x))
#define REQUIRES(...) JIZI_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) JIZI_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace jizi {

class JIZI_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void Lock() JIZI_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void Unlock() JIZI_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class JIZI_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) JIZI_THREAD_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() JIZI_THREAD_ANNOTATION(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Wakes may be spurious: callers loop over their condition.
class CondVar {
 public:
  void Wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // False once the deadline has passed.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool in_time = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace jizi
