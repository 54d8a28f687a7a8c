#pragma once
// engine_thread.h - the one thread that decides for all studies. It owns their states; others only
// send it calls. Each call ends as an item of the committer, in the order of the calls, so that its
// answer waits for what it was decided on.
// Fails: Load with what the store says; a call with its own answer.
// Threads: Load before Run; Run on the thread; Close from any. The directory has its own lock.
// Cost: O(log n) a call, and once a batch O(leases of the studies concerned) for the next deadline.

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "tuner-service/engine/call_queue.h"
#include "tuner-service/engine/committer.h"
#include "tuner-service/engine/decision_pool.h"
#include "tuner-service/engine/engine.h"
#include "tuner-service/engine/study_slot.h"

namespace jizi::tuner {

struct ExecuteCall {
  std::string study;
  Command command;
  Engine::Done<Reply> done;
};
struct CreateCall {
  StudySpec spec;
  std::string request_id;
  bool resume = false;
  Engine::Done<Engine::Created> done;
};
struct DeleteCall {
  std::string study;
  Engine::Done<DoneReply> done;
};
struct ReadCall {
  std::string study;
  Engine::Done<StudyView> done;
};
struct ReadWorkerCall {
  std::string study;
  std::string worker;
  Engine::Done<WorkerView> done;
};
struct ListCall {
  Engine::Done<std::vector<StudyView>> done;
};
struct WatchCall {
  std::string study;
  std::shared_ptr<Watcher> watcher;
};
// The deletion of a study is durable: no loss will bring it back.
struct ForgetStudy {
  StudyId study = 0;
};
using EngineCall = std::variant<ExecuteCall, CreateCall, DeleteCall, ReadCall, ReadWorkerCall,
                                ListCall, WatchCall, DecisionResult, ForgetStudy>;
using EngineQueue = CallQueue<EngineCall>;

// The names whose creation is durable: what Watch can judge without the engine thread.
class Directory {
 public:
  void Add(const std::string& name) EXCLUDES(mutex_);
  void Remove(const std::string& name) EXCLUDES(mutex_);
  bool Has(const std::string& name) const EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::unordered_set<std::string> names_ GUARDED_BY(mutex_);
};

Status StudyNotFound(const std::string& name);
Status ShuttingDown();

class EngineThread {
 public:
  EngineThread(Store& store, const EngineOptions& options, Clock& clock, EngineQueue& queue,
               Committer& committer, DecisionPool& pool, Directory& directory);

  Status Load();  // Every study of the store.
  void Run();     // Until Close, and then until everything is answered or the deadline has come.
  void Close(std::chrono::steady_clock::time_point drain_until);

 private:
  using RealTime = std::chrono::steady_clock::time_point;

  void On(ExecuteCall& call);
  void On(CreateCall& call);
  void On(DeleteCall& call);
  void On(ReadCall& call);
  void On(ReadWorkerCall& call);
  void On(ListCall& call);
  void On(WatchCall& call);
  void On(DecisionResult& result);
  void On(ForgetStudy& call);

  // Slots.
  StudySlot* Find(const std::string& name, Status& why);
  StudySlot& AddSlot(StudyData state);
  void RemoveSlot(StudySlot& slot, const Status& why);  // Its parked calls are answered with `why`.
  void MakeSchedulerOf(StudySlot& slot);
  Status LoadSlot(const StudyName& study);
  void LoadAgain(const std::string& name);
  void Recover(const Committer::Loss& loss);
  void RunOwn(StudySlot& slot, const Command& command);

  // Commands.
  StatusOr<Outcome> Run(StudySlot& slot, const Command& command);
  void Touch(StudySlot& slot);
  Status CheckInFlight(StudySlot& slot, const Command& command) const;
  void LeaveOutNextIfFull(Command& command) const;
  void Took(StudySlot& slot,
            Outcome& outcome);  // The need of an outcome: begin it at the end of the batch.
  std::optional<LogRecord> RecordOf(StudySlot& slot, std::vector<Event> events);
  void ServeParked(StudySlot& slot);
  void AnswerParked(StudySlot& slot, const StatusOr<Reply>& reply);
  void AnswerAll(StudySlot& slot, std::optional<LogRecord> record, std::vector<Waiter> waiters,
                 StatusOr<Reply> reply);
  void ResumeStudy(StudySlot& slot, CreateCall& call);

  // Items.
  void PushItem(StudyId study, std::optional<LogRecord> record,
                std::function<void(const Status&)> answer);
  template <typename T>
  void Answer(StudyId study, std::optional<LogRecord> record, Engine::Done<T> done,
              StatusOr<T> value);
  void Flush();

  // Time.
  Timestamp Now(const StudyData& state);
  void RunTicks();
  void UpdateTicks();
  void BeginDecisions();
  RealTime NextWake();
  bool Drained(bool nothing_came);
  void RefuseTheRest();

  Store& store_;
  const EngineOptions& options_;
  Clock& clock_;
  EngineQueue& queue_;
  Committer& committer_;
  DecisionPool& pool_;
  Directory& directory_;

  std::unordered_map<std::string, std::unique_ptr<StudySlot>> slots_;
  std::map<StudyId, StudySlot*> by_id_;
  // Studies that the store could not load, and why. Not among the slots; tried again at each call.
  std::map<std::string, Status> unloaded_;
  struct Known {
    std::string name;
    std::shared_ptr<WatchList> watchers;
  };
  // Every study whose deletion is not yet durable: a loss may bring one back.
  std::map<StudyId, Known> known_;
  std::set<std::pair<SteadyTime, StudyId>> ticks_;
  SteadyTime no_tick_before_ = SteadyTime::min();
  std::vector<StudyId> touched_;
  std::vector<CommitItem> items_;
  StudyId last_id_ = 0;
  int64_t last_epoch_ = 0;
  size_t parked_ = 0;  // Waiters of all studies.
  std::atomic<RealTime> drain_until_{RealTime::max()};
};

}  // namespace jizi::tuner
