#pragma once
// watch.h - who watches a study: subscriptions that get its durable changes on the committer
// thread. Threads: Add and Deliver on the committer thread; Expect, Unexpect and watched from any;
// a Subscription may end on any thread, but not from within its sink.

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "tuner-service/engine/engine.h"

namespace jizi::tuner {

class Watcher {
 public:
  using Sink = std::function<void(const StudyChange&)>;
  explicit Watcher(Sink sink);
  bool Deliver(const StudyChange& change) EXCLUDES(mutex_);  // False once closed.
  bool closed() EXCLUDES(mutex_);
  void Close() EXCLUDES(mutex_);  // No call of the sink after it.

 private:
  Mutex mutex_;  // Held over a call of the sink.
  Sink sink_ GUARDED_BY(mutex_);
};

class WatchList {
 public:
  void Expect() { count_.fetch_add(1, std::memory_order_relaxed); }  // An Add is on its way.
  void Unexpect() { count_.fetch_sub(1, std::memory_order_relaxed); }
  bool watched() const { return count_.load(std::memory_order_relaxed) > 0; }

  void Add(std::shared_ptr<Watcher> watcher, const StudyChange& present);
  void Deliver(const StudyChange& change);
  size_t size() const { return watchers_.size(); }  // On the committer thread.

 private:
  void ForgetClosed();

  std::atomic<int> count_{0};
  std::vector<std::shared_ptr<Watcher>> watchers_;  // Of the committer thread.
};

// Closes its watcher when it goes.
std::unique_ptr<Engine::Subscription> MakeSubscription(std::shared_ptr<Watcher> watcher);

// The trials that events changed, each once, in order.
std::vector<TrialId> ChangedTrials(const std::vector<Event>& events);

}  // namespace jizi::tuner
