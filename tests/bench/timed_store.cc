#include "tests/bench/timed_store.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace jizi::bench {
namespace {

using namespace tuner;
using std::chrono::steady_clock;

class Timed final : public TimedStore {
 public:
  explicit Timed(std::unique_ptr<Store> store) : store_(std::move(store)) {}

  StatusOr<std::vector<StudyName>> List() override { return store_->List(); }
  StatusOr<StudyId> LastId() override { return store_->LastId(); }
  StatusOr<StudyData> Load(StudyId study) override { return store_->Load(study); }
  Status Append(std::span<const LogRecord> records) override {
    const auto from = steady_clock::now();
    Status appended = store_->Append(records);
    const auto took = steady_clock::now() - from;
    const MutexLock lock(mutex_);
    us_.push_back(1e6 * std::chrono::duration<double>(took).count());
    records_ += records.size();
    return appended;
  }
  Status Idle() override { return store_->Idle(); }
  Status AfterAnswers() override { return store_->AfterAnswers(); }
  bool MoreToDo() const override { return store_->MoreToDo(); }

  CommitTimes Take() override {
    std::vector<double> us;
    CommitTimes times;
    {
      const MutexLock lock(mutex_);
      us = std::exchange(us_, {});
      times.records = std::exchange(records_, 0);
    }
    times.commits = us.size();
    if (us.empty()) return times;
    std::sort(us.begin(), us.end());
    times.p50_us = us[us.size() / 2];
    times.p99_us = us[us.size() * 99 / 100];
    times.longest_us = us.back();
    return times;
  }

 private:
  const std::unique_ptr<Store> store_;
  Mutex mutex_;
  std::vector<double> us_ GUARDED_BY(mutex_);
  size_t records_ GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::unique_ptr<TimedStore> TimedStore::Around(std::unique_ptr<Store> store) {
  return std::make_unique<Timed>(std::move(store));
}

}  // namespace jizi::bench
