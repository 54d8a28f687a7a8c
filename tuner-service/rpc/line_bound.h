#pragma once
// line_bound.h - how many lines a log takes in a while: a disk that is full makes a failure of
// every call that comes meanwhile. Beyond kMostLines in kWindow only their number is told, with the
// next line that is written. Threads: any.   Cost: one lock.

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/mutex.h"

namespace jizi::tuner {

class LineBound {
 public:
  static constexpr std::chrono::seconds kWindow{10};
  static constexpr int kMostLines = 20;

  // How many were left out since the last one that was written; empty: leave this one out, too.
  std::optional<int64_t> Take(std::chrono::steady_clock::time_point now) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (written_ == 0 || now - begin_ >= kWindow) {
      begin_ = now;
      written_ = 0;
    }
    if (written_ == kMostLines) {
      ++left_out_;
      return std::nullopt;
    }
    ++written_;
    return std::exchange(left_out_, 0);
  }

 private:
  Mutex mutex_;
  std::chrono::steady_clock::time_point begin_ GUARDED_BY(mutex_);
  int written_ GUARDED_BY(mutex_) = 0;
  int64_t left_out_ GUARDED_BY(mutex_) = 0;
};

}  // namespace jizi::tuner
