#pragma once
// call_queue.h - many threads push, one takes all that waits; bounded for those outside, by number
// and by bytes, not for the engine's own messages.
// Fails: Push says kFull at the limit, kTooManyBytes where this item and those that wait would hold
// more than the other one (an item alone is always taken), and kClosed after Close; the item is
// then left with the caller.
// Threads: Take and AwaitWake from one thread, everything else from any.
// Cost: O(1) a push, one wake-up for many items.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace jizi::tuner {

template <typename T>
class CallQueue {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Pushed { kYes, kFull, kTooManyBytes, kClosed };

  CallQueue(size_t limit, size_t limit_bytes) : limit_(limit), limit_bytes_(limit_bytes) {}

  Pushed Push(T& item, size_t bytes) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (closed_) return Pushed::kClosed;
    if (items_.size() >= limit_) return Pushed::kFull;
    if (bytes_ > 0 && bytes > limit_bytes_ - std::min(bytes_, limit_bytes_)) {
      return Pushed::kTooManyBytes;
    }
    bytes_ += bytes;
    items_.push_back(std::move(item));
    if (items_.size() == 1) changed_.NotifyOne();
    return Pushed::kYes;
  }

  // The engine's own messages are few (one a study, one a watcher) and may not be refused.
  void PushOwn(T item) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    items_.push_back(std::move(item));
    changed_.NotifyOne();
  }

  // Ends the present or the next Take or AwaitWake early.
  void Wake() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    woken_ = true;
    changed_.NotifyOne();
  }

  // No more calls from outside.
  void Close() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    closed_ = true;
    woken_ = true;
    changed_.NotifyOne();
  }
  bool closed() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return closed_;
  }

  // Everything that waits, in order; possibly nothing after a Wake, or once `until` has passed.
  std::vector<T> Take(Time until) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (items_.empty() && !woken_) {
      if (!changed_.WaitUntil(mutex_, until)) break;
    }
    woken_ = false;
    bytes_ = 0;
    return std::exchange(items_, {});
  }

  // Leaves the items where they are: for a consumer that may not take more just now.
  void AwaitWake(Time until) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (!woken_) {
      if (!changed_.WaitUntil(mutex_, until)) break;
    }
    woken_ = false;
  }

 private:
  const size_t limit_;
  const size_t limit_bytes_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<T> items_ GUARDED_BY(mutex_);
  size_t bytes_ GUARDED_BY(mutex_) = 0;  // Of items_.
  bool woken_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace jizi::tuner
