#pragma once
// worker.h - N slots that lease trials from a service and run them: the same inside `jizi run` and
// `jizi worker`. It speaks to the service over the wire only (contracts 17 to 23). Its Executor is
// the seam for other ways to run a trial (Slurm). Threads: Start, Stop, Wait from any thread.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "proto/client.h"
#include "tuner-service/workers/launch.h"
#include "tuner-service/workers/supervisor.h"

namespace jizi::tuner {

struct WorkerOptions {
  ClientOptions service;
  std::string study;
  Launch launch;
  int slots = 1;
  std::string folder;  // Of this study alone (trials are numbered within it). Trials' folders are
                       // made here: <folder>/<trial id, 6 digits>/ with stdout.log, stderr.log,
                       // checkpoints/; and outbox/.
  size_t output_cap_bytes =
      8u << 20;  // Per output file: head and tail are kept, the middle is dropped and said so.
  std::string prefix = "worker";  // Names are <prefix>/<16 random hex digits>/<slot>. `jizi run`
                                  // passes "run" (recovery.h).
  double lease_s = 60;            // Asked of the service for each attempt.
  std::chrono::duration<double> give_up{
      600};  // How long an ended trial waits for a service that is away.
  std::function<void(const std::string&)>
      note;  // One line for a person, now and then; from any thread. Empty: dropped.
};

// Whether this machine can give so many slots what they need, before anything is made for them.
// Fails: InvalidArgument TOO_FEW_GPUS, BAD_RESOURCES.
Status CheckSlots(const Launch& launch, int slots);

class Worker {
 public:
  enum class StopMode {
    kGently,  // SIGTERM, grace, SIGKILL; what did not finish is released and queued again.
    kKill,    // SIGKILL; released.
  };

  static StatusOr<std::unique_ptr<Worker>> Start(WorkerOptions options, Supervisor& supervisor);
  virtual ~Worker() = default;  // Stops (kKill).

  virtual void Stop(StopMode mode) = 0;  // Signals at once, from the caller's thread; returns.
  // OK once the study is finished or the worker was stopped, and no process is left. Unavailable:
  // the service stayed away; SUPERVISOR_GONE: the supervisor was killed, and the trials that it ran
  // are queued again; HOST_FAULT: this machine could not start a trial (no space, no descriptors),
  // which is queued again; those that ran went on to their end.
  virtual Status Wait() = 0;
  // False at the deadline.
  virtual bool WaitFor(std::chrono::milliseconds timeout) = 0;
};

}  // namespace jizi::tuner
