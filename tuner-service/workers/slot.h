#pragma once
// slot.h - one slot of a worker: leases a trial, runs its program, says how it ended, again.
// Who owns an attempt's sequence: the slot until a helper has attached, and after the program's
// exit; the helper between (contract 12). That one is there the slot sees in its worker's live
// trials (ListTrials by worker, which renews nothing): an attached attempt has the capability to
// stop, which every helper declares. The slot looks before it sends what was printed, and every
// second until it has seen one; then the helper renews the lease. Where a process takes trial after
// trial the slot goes on looking, to switch output files and the time limit.
// Fails: Run: Unavailable when the service stayed away for `give_up`, SUPERVISOR_GONE or HOST_FAULT
// (its trial goes back: it was not the trial's fault); the service's refusal of Suggest (NotFound
// for a deleted study). What goes wrong with a trial is the trial's end. Threads: Run on a thread
// of its own; Stop from any.

#include <chrono>
#include <deque>
#include <optional>
#include <set>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "proto/client.h"
#include "tuner-service/workers/executor.h"
#include "tuner-service/workers/outbox.h"
#include "tuner-service/workers/printed_queue.h"
#include "tuner-service/workers/worker.h"

namespace jizi::tuner {

class Slot {
 public:
  struct Place {
    int index = 0;
    std::string worker;  // Its name.
  };

  Slot(const WorkerOptions& options, Client& client, Executor& executor, Place place);

  Status Run();
  // Ends the running program at once, whatever Run waits for; kKill after kGently shortens the
  // grace to nothing.
  void Stop(Worker::StopMode mode);
  // The program that runs goes on to its end, and no other is started.
  void TakeNoMore();

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Answer = std::optional<v1::SuggestResponse>;

  // The program that runs now, and the attempt that it holds.
  struct Running {
    v1::Lease first;  // Of the attempt that the program was started for.
    v1::Assignment held;
    std::string folder;
    int64_t next_sequence = 1;  // While the slot owns it.
    bool one_trial = true;
    bool attached = false;   // A helper owns the sequences.
    bool lost = false;       // The lease is somebody else's.
    bool told = false;       // Stop or Pause, and it was told by SIGTERM.
    bool over = false;       // Its trial has ended, and it has taken no other yet.
    bool stopped = false;    // The worker's Stop ended it.
    std::string over_limit;  // Why its time was over.
    Time started, next_look, next_renew, next_send;
    std::optional<Time> limit;
    std::optional<Time> empty_since;  // It holds nothing since then.
    PrintedQueue printed;
    std::optional<v1::ReportRequest> report;  // Of the batch that is not answered.
    bool away = false;                        // The service, when it was last asked.
    std::optional<int64_t> total_steps;
    int64_t last_step = -1;
    int64_t left_out = 0;  // Not what it should be, and the first of them.
    std::string first_left_out;
    int64_t dropped = 0;  // Could not be sent.
    std::unique_ptr<Job> job;
  };
  struct Verdict {
    bool release = false;
    bool finished = false;
    bool last = false;  // This worker can run nothing any more.
    std::string why;
  };

  // ---- slot.cc: the loop ----
  StatusOr<Answer> Suggest();
  v1::SuggestRequest SuggestRequest() const;
  void Count(const v1::SuggestResponse& answer);
  StatusOr<Answer> RunAttempt(const v1::Assignment& assignment);
  StatusOr<Answer> Ended(Running& running, const Verdict& verdict);
  StatusOr<Answer> CompleteHeld(HeldAttempt& attempt, const Verdict& verdict, bool ask_next);
  Verdict VerdictOf(const Running& running, const JobEnd& end) const;
  bool BackOff();  // After trials that fail as soon as they start.
  void LetGo();
  void EndStopped() REQUIRES(mutex_);

  // ---- slot_start.cc ----
  static StatusOr<std::string> WriteParams(const std::string& folder, const v1::Trial& trial);
  Status Prepare(Running& running, JobSpec& spec);
  Status StartJob(Running& running);

  // ---- slot_watch.cc: while the program runs ----
  JobEnd Watch(Running& running);
  bool LimitReached(const Running& running) const;
  void Look(Running& running);
  void LookAtEmpty(Running& running);
  void Switch(Running& running, int64_t trial);
  void Renew(Running& running);
  void Obey(Running& running, const v1::Directive& directive);
  void EndForLimit(Running& running);
  void EndDeleted(Running& running, const Status& why);
  static Time NextWake(const Running& running);

  // ---- slot_printed.cc: what the program prints ----
  bool KeepLine(std::string line);
  void KeepSaid(const std::string& line);
  void TellSaid();
  void TakeLines(Running& running);
  void TakeLine(Running& running, const std::string& line);
  std::deque<std::string> NextLines(Running& running);
  void DiscardPrinted(Running& running);
  void SendPrinted(Running& running);
  bool SendBatch(Running& running, bool patient);
  void SendRest(Running& running, int64_t next_sequence);
  v1::ReportRequest NextReport(Running& running);
  void LeaveOut(Running& running, int64_t count, const Status& why);
  void SayWhatIsMissing(const Running& running);

  template <typename Request, typename Response>
  StatusOr<Response> Call(grpc::Status (v1::TuneService::Stub::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                          const Request& request);
  bool Pause(std::chrono::duration<double> wait);  // False once the worker stops.
  std::optional<Worker::StopMode> stop_mode();
  bool TakesMore(std::chrono::duration<double> after = {});
  void Note(const std::string& text) const;

  const WorkerOptions& options_;
  Client& client_;
  Executor& executor_;
  const Place place_;
  int64_t sequence_ = 1;  // The worker's next.
  int quick_failures_ = 0;
  std::set<std::string> told_;  // What helpers said.

  Mutex mutex_;
  CondVar changed_;
  Job* job_ GUARDED_BY(mutex_) = nullptr;  // While one runs.
  bool job_stopped_ GUARDED_BY(mutex_) = false;
  std::deque<std::string> lines_ GUARDED_BY(mutex_);
  size_t line_bytes_ GUARDED_BY(mutex_) = 0;
  int64_t lost_lines_ GUARDED_BY(mutex_) = 0;
  bool lines_held_ GUARDED_BY(mutex_) = false;       // The program waits until there is room.
  bool lines_unread_ GUARDED_BY(mutex_) = false;     // They are for people only.
  std::deque<std::string> said_ GUARDED_BY(mutex_);  // By the helper; not yet told.
  std::optional<JobEnd> end_ GUARDED_BY(mutex_);
  std::optional<Worker::StopMode> stop_ GUARDED_BY(mutex_);
  bool no_more_ GUARDED_BY(mutex_) = false;
};

}  // namespace jizi::tuner
