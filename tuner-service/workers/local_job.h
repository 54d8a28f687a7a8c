#pragma once
// local_job.h - one job of the local executor: its ranks, what distinguishes them, their pipes and
// files, and how it ends.
// Threads: all on the executor's thread, but for what stands under its lock.

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "tuner-service/workers/executor.h"
#include "tuner-service/workers/output_file.h"
#include "tuner-service/workers/output_marks.h"
#include "tuner-service/workers/supervisor.h"

namespace jizi::tuner {

// One stream of one rank: pipe -> file, and what is looked for on the way.
struct JobStream {
  int pipe = -1;
  std::string name;    // stdout.log
  std::string folder;  // Of its file.
  OutputMarks marks;
  bool marked = false;  // One has been seen.
  std::unique_ptr<OutputFile> file;
  LineScanner lines;  // Of rank 0: what it reports; in stderr, what its helper says.
  TailLines tail;
  bool held = false;  // Whoever listens has enough lines.
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
  Status lost;                         // It could not be started again.
  std::optional<int> failed_rank;      // The first that failed by itself.
  std::optional<Time> straggler_time;  // When ranks that outlive a success are ended.

  Mutex mutex;
  CondVar over_changed;
  std::vector<Supervisor::ProcessId> processes GUARDED_BY(mutex);  // By rank.
  bool ending GUARDED_BY(mutex) = false;                           // End was called.
  bool silent GUARDED_BY(mutex) = false;                           // ~Job: no more events.
  bool over GUARDED_BY(mutex) = false;
};

// torchrun's variables of one rank (contract 20); none for a job of one rank.
struct RankPlace {
  int rank = 0;
  int ranks = 1;
  int master_port = 0;
};
std::map<std::string, std::string> RankVariables(const RankPlace& place);

// A pipe for each stream of the rank; the ends to write into are the caller's.
// Fails: Unavailable HOST_FAULT.
struct RankWriters {
  int stdout_fd = -1;
  int stderr_fd = -1;
};
StatusOr<RankWriters> OpenPipes(JobRank& rank, int number, const std::string& output_mark);
void ClosePipes(JobRank& rank);

// (Again) in job.folder, but for those that follow marks.
void OpenFiles(LocalJobState& job);

// Takes output out of the pipe: into the file, the tail and, from rank 0's stdout, lines to whoever
// listens. `chunk` is room to work in, of kStreamChunk bytes.
inline constexpr size_t kStreamChunk = 64u << 10;
enum class Reading {
  kSome,  // While it runs: a few chunks, none once the listener has enough lines.
  kRest,  // Its rank has ended: what the pipe still holds.
};
void ReadStream(LocalJobState& job, JobStream& stream, std::vector<char>& chunk, Reading reading);
// Nothing more comes out of the pipe.
void FinishStream(LocalJobState& job, JobStream& stream);
bool TellLine(LocalJobState& job, std::string line);  // False: enough for now.

// What the whole job's end is, once every rank has ended.
JobEnd EndOf(const LocalJobState& job);

// Did a rank fail because another program had its MASTER_PORT?
bool LooksLikePortClash(const LocalJobState& job);

// A port that is free now, on the loopback, and not in `taken`; 0 if there is none.
int FreePort(const std::vector<int>& taken);

}  // namespace jizi::tuner
