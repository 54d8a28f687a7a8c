#pragma once
// note_box.h - lines for a person from any thread, until the one that prints takes them.
// Threads: any.   Bound: the first 1,000 until they are taken; the rest is dropped.

#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace jizi::tuner {

class NoteBox {
 public:
  void Add(const std::string& note) EXCLUDES(mutex_) {
    // Every slot would say it of a study that was deleted; as the run's error it is said once.
    if (note.find(": there is no study named ") != std::string::npos) return;
    const MutexLock lock(mutex_);
    if (notes_.size() < kMost) notes_.push_back(note);
  }
  std::vector<std::string> Take() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::exchange(notes_, {});
  }

 private:
  static constexpr size_t kMost = 1000;
  Mutex mutex_;
  std::vector<std::string> notes_ GUARDED_BY(mutex_);
};

}  // namespace jizi::tuner
