#include "tuner-service/engine/watch.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace jizi::tuner {
namespace {

class ClosingSubscription final : public Engine::Subscription {
 public:
  explicit ClosingSubscription(std::shared_ptr<Watcher> watcher) : watcher_(std::move(watcher)) {}
  ~ClosingSubscription() override { watcher_->Close(); }

 private:
  std::shared_ptr<Watcher> watcher_;
};

}  // namespace

Watcher::Watcher(Sink sink) : sink_(std::move(sink)) {}

bool Watcher::Deliver(const StudyChange& change) {
  const MutexLock lock(mutex_);
  if (!sink_) return false;
  sink_(change);
  return true;
}

bool Watcher::closed() {
  const MutexLock lock(mutex_);
  return !sink_;
}

void Watcher::Close() {
  const MutexLock lock(mutex_);
  sink_ = nullptr;
}

// A quiet study delivers nothing, and its watchers may come and go for months.
void WatchList::Add(std::shared_ptr<Watcher> watcher, const StudyChange& present) {
  watcher->Deliver(present);
  watchers_.push_back(std::move(watcher));
  ForgetClosed();
}

void WatchList::Deliver(const StudyChange& change) {
  for (const auto& each : watchers_) each->Deliver(change);
  ForgetClosed();
}

void WatchList::ForgetClosed() {
  const size_t closed =
      std::erase_if(watchers_, [](const std::shared_ptr<Watcher>& each) { return each->closed(); });
  count_.fetch_sub(static_cast<int>(closed), std::memory_order_relaxed);
}

std::unique_ptr<Engine::Subscription> MakeSubscription(std::shared_ptr<Watcher> watcher) {
  return std::make_unique<ClosingSubscription>(std::move(watcher));
}

std::vector<TrialId> ChangedTrials(const std::vector<Event>& events) {
  std::vector<TrialId> changed;
  for (const Event& event : events) {
    std::visit(
        [&](const auto& each) {
          // An answer that was recorded changes nothing that a watcher sees.
          if constexpr (requires { each.trial; } &&
                        !std::is_same_v<std::decay_t<decltype(each)>, CallAnswered>) {
            if (each.trial != 0) changed.push_back(each.trial);
          }
        },
        event);
  }
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  return changed;
}

}  // namespace jizi::tuner
