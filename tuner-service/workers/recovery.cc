#include "tuner-service/workers/recovery.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "tuner-service/workers/outbox.h"
#include "tuner-service/workers/process_tree.h"
#include "tuner-service/workers/random_hex.h"
#include "tuner-service/workers/service_calls.h"
#include "tuner-service/workers/trial_folder.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Stub = v1::TuneService::Stub;

constexpr milliseconds kLongestScan{200};  // Between looks at a process that does not die.

Status Stopped() {
  return Error(StatusCode::kCancelled, "stopped while a former run was cleaned up",
               {"STOPPED", "", "start it again to go on"});
}

// False once it is told to stop.
bool SleepUnlessStopped(milliseconds wait, const std::function<bool()>& stop) {
  const auto until = steady_clock::now() + wait;
  while (!stop || !stop()) {
    const auto left = until - steady_clock::now();
    if (left <= left.zero()) return true;
    std::this_thread::sleep_for(std::min<steady_clock::duration>(left, milliseconds(20)));
  }
  return false;
}

class Recovery {
 public:
  Recovery(Client& client, const std::string& study, const std::string& folder,
           steady_clock::time_point deadline, const std::function<bool()>& stop)
      : client_(client), study_(study), folder_(folder), deadline_(deadline), stop_(stop) {}

  StatusOr<Recovered> Run(const std::string& prefix) {
    Recovered done;
    for (const std::string& worker : TRY(WorkersOf(prefix))) TRY(RecoverWorker(worker, done));
    return done;
  }

 private:
  template <typename Request, typename Response>
  StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                       Response*),
                          const Request& request) {
    if (stop_ && stop_()) return Stopped();
    StatusOr<Response> answer =
        CallUntil(client_, method, request, deadline_,
                  [this](milliseconds wait) { return SleepUnlessStopped(wait, stop_); });
    if (!answer.ok() && IsAway(answer.status()) && stop_ && stop_()) return Stopped();
    return answer;
  }

  StatusOr<std::set<std::string>> WorkersOf(const std::string& prefix) {
    std::set<std::string> workers;
    v1::ListTrialsRequest request;
    request.set_study(study_);
    request.set_page_size(1000);
    request.add_states(v1::TRIAL_STATE_RUNNING);
    do {
      const v1::ListTrialsResponse page = TRY(Call(&Stub::ListTrials, request));
      for (const v1::Trial& trial : page.trials()) {
        if (trial.worker().starts_with(prefix + "/")) workers.insert(trial.worker());
      }
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    return workers;
  }

  Status RecoverWorker(const std::string& worker, Recovered& done) {
    v1::AttachRequest attach;
    attach.mutable_lease()->set_study(study_);
    attach.set_worker(worker);
    std::vector<HeldAttempt> held = HeldOf(TRY(Call(&Stub::Attach, attach)));
    // By the worker's name as well: a warm process carries the lease of its first trial.
    std::vector<std::string> entries = {"JIZI_WORKER=" + worker};
    for (const HeldAttempt& attempt : held) {
      entries.push_back("JIZI_LEASE=" + HexOf(attempt.assignment.lease().token()));
    }
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - steady_clock::now());
    done.ended_processes += TRY(EndProcessesWith(entries, left, stop_));
    const auto report = [this](const v1::ReportRequest& request) {
      return Call(&Stub::Report, request);
    };
    done.delivered_reports += TRY(DeliverOutbox(OutboxPath(folder_, worker), held, report));
    for (const HeldAttempt& attempt : held) {
      v1::ReleaseRequest release;
      *release.mutable_lease() = attempt.assignment.lease();
      release.set_sequence(attempt.next_sequence);
      release.set_why("the `jizi run` that ran it was killed");
      const auto released = Call(&Stub::Release, release);
      if (released.ok()) {
        ++done.requeued_trials;
      } else if (DetailOf(released.status()).code != "LEASE_LOST") {
        return released.status();
      }
    }
    return {};
  }

  Client& client_;
  const std::string& study_;
  const std::string& folder_;
  const steady_clock::time_point deadline_;
  const std::function<bool()>& stop_;
};

}  // namespace

StatusOr<Recovered> RecoverRun(Client& client, const std::string& study, const std::string& folder,
                               const std::string& worker_prefix, milliseconds deadline,
                               const std::function<bool()>& stop) {
  return Recovery(client, study, folder, steady_clock::now() + deadline, stop).Run(worker_prefix);
}

StatusOr<int> EndProcessesWith(const std::vector<std::string>& entries, milliseconds deadline,
                               const std::function<bool()>& stop) {
  const auto until = steady_clock::now() + deadline;
  std::set<pid_t> ended;
  milliseconds pause{2};
  for (;;) {
    pid_t left = 0;
    for (const ProcessInfo& info : AllProcesses()) {
      if (info.state == 'Z' || info.pid == getpid() || !IsOurs(info.pid)) continue;
      for (const std::string& entry : entries) {
        if (!EnvironmentHolds(info.pid, entry)) continue;
        left = info.pid;
        ended.insert(info.pid);
        kill(info.pid, SIGKILL);
        break;
      }
    }
    if (left == 0) return static_cast<int>(ended.size());
    if (steady_clock::now() >= until) {
      return Error(StatusCode::kUnavailable,
                   "process " + std::to_string(left) + " of a former run does not die",
                   {"PROCESS_LEFT", std::to_string(left), "end it by hand, then try again"});
    }
    if (!SleepUnlessStopped(pause, stop)) return Stopped();
    pause = std::min(pause * 2, kLongestScan);
  }
}

}  // namespace jizi::tuner
