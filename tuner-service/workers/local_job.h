#pragma once
// local_job.h - one job of the local executor: its ranks, their pipes and files, and how it ends.
// Threads: all on the executor's thread, but for what stands under its lock.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "tuner-service/workers/executor.h"
#include "tuner-service/workers/output_file.h"
#include "tuner-service/workers/supervisor.h"

namespace jizi::tuner {

// One stream of one rank: pipe -> file, and what is looked for on the way.
struct JobStream {
  int pipe = -1;
  std::string name;  // stdout.log
  std::unique_ptr<OutputFile> file;
  LineScanner lines;
  TailLines tail;
};

struct JobRank {
  JobStream streams[2];  // stdout, stderr.
  std::optional<ProcessEnd> end;
  bool told_to_end = false;  // Its end after this is our doing.
};

struct LocalJobState {
  using Time = std::chrono::steady_clock::time_point;

  JobSpec spec;
  JobEvents events;
  std::vector<JobRank> ranks;
  std::string folder;
  size_t output_cap_bytes = 0;
  int master_port = 0;
  int restarts = 0;
  Time started;
  bool adopted = false;  // By the executor's thread; what ended before waits here:
  std::vector<std::pair<int, ProcessEnd>> early_ends;
  std::optional<int> failed_rank;      // The first that failed by itself.
  std::optional<Time> straggler_time;  // When ranks that outlive a success are ended.

  Mutex mutex;
  CondVar over_changed;
  std::vector<Supervisor::ProcessId> processes GUARDED_BY(mutex);  // By rank.
  bool ending GUARDED_BY(mutex) = false;                           // End was called.
  bool silent GUARDED_BY(mutex) = false;                           // ~Job: no more events.
  bool over GUARDED_BY(mutex) = false;
};

// What the whole job's end is, once every rank has ended.
JobEnd EndOf(const LocalJobState& job);

// Did a rank fail because another program had its MASTER_PORT?
bool LooksLikePortClash(const LocalJobState& job);

// A port that is free now, on the loopback, and not in `taken`; 0 if there is none.
int FreePort(const std::vector<int>& taken);

}  // namespace jizi::tuner
