#pragma once
// session.h - one attempt of a trial, as its program's side of the wire keeps it: what waits to be
// sent, the one call in flight, the lease, the outbox, and what the service has said.
//   Report, AddCheckpoint, Complete --> queue --> sealed requests (numbered) --> one call in flight
//                                                        '--> outbox file, while the service is
//                                                        away
// A sealed request that was sent is never changed and is sent again until it is answered
// (docs/contracts.md, 12); one that was never sent may still get another number.
// A checkpoint goes after the reports before it, but later reports may overtake it while the
// service is away: the outbox holds reports only.
// Fails: nothing is thrown; refusals are said on stderr, and a lost lease shows in Take().
// Threads: the caller's, one at a time, and two of its own: one decides, writes the files and never
// waits for a call; one makes the calls. A process that forked must not touch it in the child.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "proto/client.h"
#include "trial-helper/environment.h"
#include "trial-helper/outbox.h"

namespace jizi::helper {

using SteadyTime = std::chrono::steady_clock::time_point;

// What the service has said and nobody has taken yet.
struct Told {
  bool stop = false;
  bool pause = false;
  Params set;
  std::optional<int64_t> roll_back_to;
  std::string why;
  bool lost = false;  // The lease: what is measured from here on counts nowhere.
};

class Session {
 public:
  struct Options {
    v1::Lease lease;
    std::string worker;
    v1::Capabilities capabilities;
    // From Attach; without it (the service was away) the session attaches by itself.
    std::optional<int64_t> next_sequence;
    double lease_s = 60;
  };

  // client and outbox must outlive it.
  Session(Client& client, Outbox& outbox, Options options);
  ~Session();  // Ends at once: what was not sent is in the outbox.
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Returns the report's number, from 1.
  int64_t Report(v1::Measurement measurement, std::optional<int64_t> total_steps);
  void AddCheckpoint(v1::Checkpoint checkpoint);

  // Waits until the report is answered, at most so long. Where an earlier wait was in vain and
  // nothing was answered since, it does not wait: an outage costs one wait, not one a step.
  void WaitForAnswer(int64_t report, std::chrono::duration<double> at_most);
  Told Take();

  // Everything answered? Waits at most until the deadline.
  bool Flush(SteadyTime deadline);
  // Completes the attempt after all that waits; sequence and lease are filled in. False if the
  // service did not answer by the deadline, or refused this very call: then the worker completes
  // it, by the program's exit code. True also where the lease is lost: nobody waits for its end.
  bool Complete(v1::CompleteRequest request, SteadyTime deadline);

 private:
  struct ReportItem {
    v1::Measurement measurement;
    std::optional<int64_t> total_steps;
  };
  using Item = std::variant<ReportItem, v1::Checkpoint, v1::CompleteRequest>;
  struct Sealed {
    std::variant<v1::ReportRequest, v1::RegisterCheckpointRequest, v1::CompleteRequest> request;
    int64_t reports = 0;  // Measurements in it.
    bool on_disk = false;
    bool sent = false;
    int refusals = 0;  // Internal errors so far.
  };

  void Run();
  void RunCalls();
  // The steps of Run, all on its thread.
  bool MustSpool() const REQUIRES(mutex_);
  bool HasUnsaved() const;
  void Spool();
  void Send();
  bool SealNext();
  bool SealReports();
  void SendAttach();
  void SendRenewal();
  SteadyTime NextWake() const REQUIRES(mutex_);
  SteadyTime RenewalDue() const;

  template <typename Request, typename Response>
  using Method = grpc::Status (v1::TuneService::Stub::*)(grpc::ClientContext*, const Request&,
                                                         Response*);
  template <typename Request, typename Response>
  void Start(Method<Request, Response> method, Request request,
             std::function<void(const StatusOr<Response>&)> then);

  void OnReport(const StatusOr<v1::ReportResponse>& response);
  void OnCheckpoint(const StatusOr<v1::RegisterCheckpointResponse>& response);
  void OnComplete(const StatusOr<v1::CompleteResponse>& response);
  void OnAttach(const StatusOr<v1::AttachResponse>& response);
  void OnRenewal(const StatusOr<v1::RenewResponse>& response);
  void OnError(const Status& status);
  void Answered(double lease_s);
  void Heard(double lease_s);
  void Away(const Status& status);
  void PopFront();
  void Settle(int64_t items, int64_t reports);
  void Renumber(int64_t next);
  void RewriteOutbox();
  void ForgetUnsent(int64_t roll_back_to);
  void Lose(const Status& status);
  void Hear(const v1::Directive& directive);
  void Say(const std::string& line);
  void SayOnce(const std::string& code, const std::string& line);

  Client& client_;
  const Options options_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Item> queue_ GUARDED_BY(mutex_);
  std::vector<std::function<void()>> done_ GUARDED_BY(mutex_);  // Of calls, for Run's thread.
  std::deque<std::function<void()>> calls_ GUARDED_BY(mutex_);  // For the calls' thread.
  int unfinished_ GUARDED_BY(mutex_) = 0;                       // Of these.
  grpc::ClientContext* context_ GUARDED_BY(mutex_) = nullptr;   // Of the call in flight.
  size_t queued_reports_ GUARDED_BY(mutex_) = 0;
  int64_t reports_ GUARDED_BY(mutex_) = 0;
  int64_t reports_settled_ GUARDED_BY(mutex_) = 0;
  int64_t pending_ GUARDED_BY(mutex_) = 0;  // Items not yet answered.
  bool given_up_waiting_ GUARDED_BY(mutex_) = false;
  bool completed_ GUARDED_BY(mutex_) = false;
  bool complete_refused_ GUARDED_BY(mutex_) = false;
  bool closing_ GUARDED_BY(mutex_) = false;
  Told told_ GUARDED_BY(mutex_);

  // Of Run's thread alone.
  Outbox& outbox_;
  std::deque<Sealed> sealed_;
  int64_t next_sequence_ = 1;
  bool attached_ = false;
  bool in_flight_ = false;
  bool renewing_ = false;
  bool away_ = false;
  bool lost_ = false;
  int64_t sealed_bytes_ = 0;
  bool overflow_said_ = false;
  bool outbox_broken_ = false;
  SteadyTime sent_at_;
  SteadyTime retry_at_;
  SteadyTime heard_at_;
  std::chrono::duration<double> backoff_{0};
  std::chrono::duration<double> lease_;
  int lines_said_ = 0;
  std::set<std::string> codes_said_;

  std::thread thread_;
  std::thread calls_thread_;
};

// One line on stderr, for the person who runs the program.
void SayLine(const std::string& line);

// The service is away (proto/client.h), or refuses for a reason that a person can still put right
// while the training goes on: the token, the release.
bool MayComeBack(const Status& status);

}  // namespace jizi::helper
