#pragma once
// engine.h - clock and threads around the core: one engine thread decides for all studies, one
// committer makes durable (group commit), one pool thread runs Suggest of schedulers. Nobody sees
// in an answer what is not on disk (docs/contracts.md, 2).
// Fails: what core.h and store.h say; NotFound STUDY_NOT_FOUND; AlreadyExists STUDY_EXISTS;
// Unavailable while a store is full or lost, or the engine is shutting down; ResourceExhausted when
// more than Options::queue calls wait, or queue_bytes of them; FailedPrecondition CALL_IN_FLIGHT
// for a worker's second call. Threads: every method from any thread; none blocks but Start and
// Shutdown. Answers are called on the committer thread, refusals of a full queue, a lost store and
// a shutdown on the caller's: they must be short and never call back in. A Subscription's
// destructor blocks while its sink runs.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tuner-service/core/core.h"
#include "tuner-service/store/store.h"

namespace jizi::tuner {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Timestamp Now() = 0;  // Wall clock.
  virtual SteadyTime SteadyNow() = 0;
  // `jumped` is called whenever time moved otherwise than by passing, so that sleepers look again;
  // empty: no more calls once this returns. A real clock never jumps.
  virtual void OnJump(const std::function<void()>& /*jumped*/) {}
};
Clock& SystemClock();

// What a reader gets: a study as of a durable log position. Cheap to copy.
struct StudyView {
  StudyId id = 0;
  Study study;
  StudyState state = StudyState::kActive;
  std::string state_why;
  Timestamp created;
  int64_t log_position = 0;
};

// What a worker holds: its Running trials, in order.
struct WorkerView {
  StudyView study;
  std::vector<TrialId> held;
};

// One durable change, for WatchStudy: the study now, and the trials that the records changed.
struct StudyChange {
  StudyView view;
  std::vector<TrialId> changed;
  bool deleted = false;  // No more comes: the study was deleted, or cannot be read: see why.
  Status why;            // Not OK, only with `deleted`: it is there, but cannot be read.
};

struct EngineOptions {
  // Calls that may wait for the engine thread, and Suggests that may wait for decisions.
  size_t queue = 10'000;
  // What the former may hold together, about; a message on the wire is of up to 16 MiB.
  size_t queue_bytes = size_t{256} << 20;
  std::chrono::milliseconds commit_retry{5000};  // How long BUSY is retried.
  // How a study's scheduler is made; schedulers are checked by MakeScheduler when a study is
  // created, whatever stands here.
  std::function<StatusOr<std::unique_ptr<Scheduler>>(const StudySpec&)> make_scheduler =
      MakeScheduler;
  // False: each scheduler call begins with an empty Memo, so that suggestions come from the study
  // alone (docs/contracts.md, 13). Slower; it takes less memory, and tells whether a suggestion
  // that surprises is a Memo's fault.
  bool keep_memos = true;
  // The store cannot be written: no ticks, which would want to. Calls that want to are refused by
  // the store.
  bool read_only = false;
  // What nobody waits for, for the log: a scheduler failed (a bug of ours), or a study cannot be
  // read. Called on the engine thread, or within Start.
  std::function<void(const Status&)> on_error = nullptr;
  // The store is lost (docs/contracts.md, 3): called once; the process should end.
  std::function<void(const Status&)> on_fatal = nullptr;
};

class Engine {
 public:
  // Loads every study (renewing live leases) before it returns. One whose log is damaged
  // (LOG_DAMAGED) is left out, and every call on it says so.
  static StatusOr<std::unique_ptr<Engine>> Start(std::unique_ptr<Store> store,
                                                 EngineOptions options,
                                                 Clock& clock = SystemClock());
  virtual ~Engine() = default;  // Shutdown(0) if not done.

  template <typename T>
  using Done = std::function<void(StatusOr<T>)>;

  struct Created {
    StudyView view;
    bool created = false;
  };
  virtual void Create(StudySpec spec, std::string request_id, bool resume, Done<Created> done) = 0;
  virtual void Delete(std::string study, Done<DoneReply> done) = 0;

  // A Suggest waits here for its decision. Dropping the caller does not undo the command: its
  // repeat gets the recorded answer.
  virtual void Execute(std::string study, Command command, Done<Reply> done) = 0;

  virtual void Read(std::string study, Done<StudyView> done) = 0;
  // By the live leases, so that a worker that asks once a second costs no walk over all trials.
  virtual void ReadWorker(std::string study, std::string worker, Done<WorkerView> done) = 0;
  virtual void List(Done<std::vector<StudyView>> done) = 0;

  // Durable changes from now on, in order, and at once the present view (as a change of nothing).
  // The sink is called on the committer thread.
  class Subscription {
   public:
    virtual ~Subscription() = default;  // No call of the sink after this returns.
  };
  virtual StatusOr<std::unique_ptr<Subscription>> Watch(
      std::string study, std::function<void(const StudyChange&)> sink) = 0;

  // Refuses new commands, answers what waits (until the deadline), makes everything durable, joins
  // the threads.
  virtual void Shutdown(std::chrono::milliseconds drain) = 0;

  virtual bool healthy() const = 0;
};

}  // namespace jizi::tuner
