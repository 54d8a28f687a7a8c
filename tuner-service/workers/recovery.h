#pragma once
// recovery.h - what a new owner of a file does about a `jizi run` that was killed (contract 17).
// Order: Supervisor::Fork waits for the former supervisor's lock; the service starts; then, before
// any worker of this owner starts, RecoverRun for each study that was running.
// Fails: Unavailable if the service does not answer or a process does not die by the deadline;
// Cancelled if told to stop before: what is left is done by the next RecoverRun.
// Threads: any; one call at a time for a study.   Cost: one scan of /proc, three calls an attempt.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/client.h"

namespace jizi::tuner {

struct Recovered {
  int ended_processes = 0;    // Leftovers of the former run that had to be killed.
  int delivered_reports = 0;  // Sent from outboxes: nothing measured is lost.
  int requeued_trials = 0;
};

// For each live attempt of a worker whose name starts with `worker_prefix` + "/" ("run": the former
// owner's own; workers of `jizi worker` go on by themselves): ends the processes that carry its
// lease or its worker's name, sends what is left in its outbox beneath `folder` (the folder of this
// study's trials, as in WorkerOptions), and releases it, so that its trial is queued again at once.
// `stop` is asked between calls and while it waits: true gives up. Empty: never.
StatusOr<Recovered> RecoverRun(Client& client, const std::string& study, const std::string& folder,
                               const std::string& worker_prefix, std::chrono::milliseconds deadline,
                               const std::function<bool()>& stop = {});

// SIGKILL to every process of this user whose environment holds one of `entries` ("JIZI_LEASE=..",
// "JIZI_WORKER=.."), again and again until none is left. Returns how many there were.
StatusOr<int> EndProcessesWith(const std::vector<std::string>& entries,
                               std::chrono::milliseconds deadline,
                               const std::function<bool()>& stop = {});

}  // namespace jizi::tuner
