#pragma once
// committer.h - one thread that makes records durable, all that waits in one Append (group commit),
// and only then answers, in order. Answers without a record pass through the same queue: nobody
// sees what is not on disk (docs/contracts.md, 2).
// Fails: by docs/contracts.md, 3. Busy: tried again until Options::retry has passed, nothing is
// lost. Full, or busy for longer: every queued record is lost, for what was decided later stands on
// it. A constraint: the group is written one by one, and the study of the one that clashes is lost.
// DataLoss, also of the store's own work between groups: on_fatal once, then everything is
// answered with Unavailable.
// After a loss the committer rests until the engine has called TakeLoss, loaded the lost studies
// again, and called Resume; the answers of what was lost leave after that.
// Threads: Push, TakeLoss, Resume from the engine thread; the rest from any.

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "tuner-service/store/store.h"

namespace jizi::tuner {

inline constexpr StudyId kAllStudies = 0;

struct CommitItem {
  StudyId study = kAllStudies;      // Whose state the answer shows.
  std::optional<LogRecord> record;  // Empty: only wait for what came before.
  // Called once: with OK when all of it is durable, else with the reason why it never will be. May
  // be empty.
  std::function<void(const Status& durable)> answer;
  size_t bytes = 0;  // Of the record; Push counts them.
  Status lost = {};  // Not OK: will not be written; the reason.
};

class Committer {
 public:
  struct Options {
    std::chrono::milliseconds retry{5000};
    size_t lag = 4096;                    // Items; the engine should rest above it,
    size_t lag_bytes = size_t{64} << 20;  // and above so much in their records.
    std::function<void()> wake_engine;    // There is a loss, or lagging() has become false.
    std::function<void(const Status&)> on_fatal;
  };
  Committer(Store& store, Options options);
  ~Committer();  // Stop().
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;

  void Push(std::vector<CommitItem>&& items);
  bool lagging() const {
    return waiting_.load(std::memory_order_relaxed) > options_.lag ||
           waiting_bytes_.load(std::memory_order_relaxed) > options_.lag_bytes;
  }

  struct Loss {
    Status why;
    std::set<StudyId> studies;  // Whose records were dropped.
  };
  // The loss that the committer rests for, if any. What was queued behind it is answered as lost
  // where it stands on what was lost.
  std::optional<Loss> TakeLoss();
  void Resume();

  // Writes and answers everything that waits, then ends the thread. No Push after it.
  void Stop();

  bool healthy() const { return healthy_.load(std::memory_order_relaxed); }

 private:
  void Run();
  void Commit(std::vector<CommitItem>& group);
  void Tend(const Status& tended);  // What the store said of its own work.
  Status Append(const std::vector<LogRecord>& records);
  void CommitOneByOne(std::vector<CommitItem>& group);
  void Answer(std::vector<CommitItem>& group);
  void Rest(Status why, std::set<StudyId> studies, bool every_record) EXCLUDES(mutex_);
  void Fatal(const Status& why);
  void DropWhatStandsOnTheLoss() REQUIRES(mutex_);

  Store& store_;
  const Options options_;
  std::atomic<size_t> waiting_{0};  // Queued or being written.
  std::atomic<size_t> waiting_bytes_{0};
  std::atomic<bool> healthy_{true};

  Mutex mutex_;
  CondVar changed_;
  std::vector<CommitItem> queue_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool resting_ GUARDED_BY(mutex_) = false;
  std::optional<Loss> loss_ GUARDED_BY(mutex_);
  bool every_record_lost_ GUARDED_BY(mutex_) = false;

  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace jizi::tuner
