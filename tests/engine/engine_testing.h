#pragma once
// engine_testing.h - what the engine's tests share: a clock that is moved by hand, a store that
// does as told, a scheduler that waits for a word, and calls that can be waited for. Every wait
// here has a deadline of 30 s and then fails the test. Threads: everything from any thread.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "tuner-service/engine/engine.h"

namespace jizi::tuner {

inline constexpr std::chrono::seconds kTestDeadline{30};

class FakeClock final : public Clock {
 public:
  Timestamp Now() override;
  SteadyTime SteadyNow() override;
  void OnJump(const std::function<void()>& jumped) override;

  void Advance(std::chrono::milliseconds by);
  void SetBackWall(std::chrono::milliseconds by);  // Somebody corrects the wall clock.
  int64_t looks();                                 // Calls of SteadyNow so far.

 private:
  Mutex mutex_;
  Timestamp now_ GUARDED_BY(mutex_){std::chrono::seconds(1'700'000'000)};
  SteadyTime steady_ GUARDED_BY(mutex_){std::chrono::hours(1)};
  int64_t looks_ GUARDED_BY(mutex_) = 0;
  std::function<void()> jumped_ GUARDED_BY(mutex_);
};

// Something that one thread waits at until another opens it, or counts to.
class Gate {
 public:
  void Open();
  void Shut();
  void Pass();          // Counts the arrival, then waits until open.
  bool Arrived(int n);  // Waits until n have arrived, ever; false at the deadline.
  int arrivals();

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ GUARDED_BY(mutex_) = true;
  int arrivals_ GUARDED_BY(mutex_) = 0;
};

// What happens to the engine's store: kept by the test, while the engine owns the Store.
struct StoreScript {
  explicit StoreScript(std::shared_ptr<Store> inner_store = MakeMemoryStore());
  std::shared_ptr<Store> inner;
  Gate gate;  // Each Append passes it before anything is written.

  // Asked before each Append with its number (from 0) and records: not OK is returned as it is, and
  // nothing is written.
  void OnAppend(std::function<Status(int, std::span<const LogRecord>)> judge);
  std::function<Status(int, std::span<const LogRecord>)> judge();
  Mutex mutex;
  std::function<Status(int, std::span<const LogRecord>)> judge_ GUARDED_BY(mutex);
  int appends GUARDED_BY(mutex) = 0;
  Status load GUARDED_BY(mutex);                     // Not OK: what Load says.
  std::optional<StudyId> load_of GUARDED_BY(mutex);  // Empty: of each study.
  Status idle GUARDED_BY(mutex);                     // Not OK: what Idle says.
  void SetLoad(Status status, std::optional<StudyId> of = std::nullopt);
  int Appends();
};
std::unique_ptr<Store> ScriptedStore(std::shared_ptr<StoreScript> script);

Status Busy();
Status Full();
Status Constraint();
Status Broken();
Status Damaged();

// An answer that can be waited for.
template <typename T>
class Awaited {
 public:
  Engine::Done<T> done() const {
    return [state = state_](StatusOr<T> value) {
      const MutexLock lock(state->mutex);
      ++state->answers;
      state->value = std::move(value);
      state->changed.NotifyAll();
    };
  }
  StatusOr<T> Get() const {
    const auto until = std::chrono::steady_clock::now() + kTestDeadline;
    const MutexLock lock(state_->mutex);
    while (!state_->value) {
      if (!state_->changed.WaitUntil(state_->mutex, until)) break;
    }
    if (!state_->value) return absl::DeadlineExceededError("no answer within the test's deadline");
    return *state_->value;
  }
  int answers() const {
    const MutexLock lock(state_->mutex);
    return state_->answers;
  }
  bool answered() const { return answers() > 0; }

 private:
  struct State {
    Mutex mutex;
    CondVar changed;
    std::optional<StatusOr<T>> value GUARDED_BY(mutex);
    int answers GUARDED_BY(mutex) = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Waits for a condition; false at the deadline.
bool Eventually(const std::function<bool()>& condition);

StudySpec SpecOf(const std::string& name);  // Random search over one float, one metric "loss".

Token TokenOf(uint8_t fill);
SuggestCommand SuggestOf(const std::string& worker, int64_t sequence, int count = 1);
ReportCommand ReportOf(const Assigned& assigned, int64_t sequence, int64_t step, double loss);
CompleteCommand CompleteOf(const Assigned& assigned, int64_t sequence);

// Calls that are waited for.
StatusOr<Engine::Created> Create(Engine& engine, StudySpec spec, const std::string& request_id,
                                 bool resume = false);
StatusOr<Reply> Execute(Engine& engine, const std::string& study, Command command);
StatusOr<SuggestReply> Suggest(Engine& engine, const std::string& study, SuggestCommand command);
StatusOr<StudyView> Read(Engine& engine, const std::string& study);
Awaited<Reply> Send(Engine& engine, const std::string& study, Command command);

// The one trial of an answer; an empty one (id 0 below) fails the caller's expectations.
Assigned OnlyTrial(const StatusOr<SuggestReply>& reply);
Assigned OnlyTrial(const StatusOr<Reply>& reply);

// The first Decision of a script: one trial at this lr.
Decision ProposalOf(double lr);

// Random search whose Suggest passes a gate first, and fails or says nothing where it is told to
// (as it was told when the call began).
struct SchedulerScript {
  Gate gate;
  Mutex mutex;
  std::vector<int> counts GUARDED_BY(mutex);  // As asked for.
  std::optional<StatusOr<Decision>> instead GUARDED_BY(mutex);
  void Instead(std::optional<StatusOr<Decision>> answer);
  std::vector<int> Counts();
};
std::function<StatusOr<std::unique_ptr<Scheduler>>(const StudySpec&)> ScriptedSchedulers(
    std::shared_ptr<SchedulerScript> script);

}  // namespace jizi::tuner
