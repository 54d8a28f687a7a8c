#pragma once
// executor.h - the seam for ways to run one trial's processes: on this machine (local_executor.h),
// later through Slurm. An executor knows nothing of studies, leases or the service.
// Fails: Start: InvalidArgument with the reason when the program cannot be started; Unavailable
// when this executor can start nothing any more.
// Threads: every method from any; events come on a thread of the executor's and must be short.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace jizi::tuner {

struct JobSpec {
  int slot = 0;  // 0 to slots - 1; one job at a time in each. Decides which GPUs it gets.
  std::string
      folder;  // The trial's, which exists: output goes there, and the program starts in it.
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // All but what differs by rank and by slot.
  // Of output_marks.h; empty: this process takes one trial only.
  std::string output_mark;
};

struct JobEnd {
  int exit_code = -1;  // Of the rank that ended the job: the first that failed, else rank 0.
  int signal = 0;
  int rank = 0;
  // Not OK: the executor lost it, by no fault of the program's, and can start nothing any more.
  Status lost;
  std::string error_tail;  // The last lines that this rank wrote to stderr: 20, 4 KiB at most.

  bool succeeded() const { return exit_code == 0 && signal == 0; }
};

struct JobEvents {
  // A whole line of rank 0's stdout that starts with "jizi ", without its end; at most 64 KiB.
  // False: enough for now. That stdout is then not read until Job::ReadOn, so that the program
  // waits in its write and nothing is lost; some 64 KiB of lines that were read with this one still
  // come. Once the job is being ended it is read on whatever was answered, and what is in the pipe
  // when a rank has ended is told as well.
  std::function<bool(std::string line)> on_line;
  // A whole line of rank 0's stderr that starts with "jizi: ": what a helper has to say.
  std::function<void(std::string line)> on_said;
  // The folder (made, if it was not there) where a stream goes on after the mark of this trial;
  // empty: it stays where it is. Such a stream follows its marks alone from then on.
  std::function<std::string(int64_t trial)> folder_of;
  // Once, after all processes are gone, all lines told and the output files closed.
  std::function<void(JobEnd)> on_end;
};

class Job {
 public:
  virtual ~Job() = default;  // Kills; no event once this has returned.
  // There is room for lines again.
  virtual void ReadOn() = 0;
  // Output goes to this folder's files from here on: a warm process has taken the next trial. Of
  // streams that bear no marks only.
  virtual void SwitchFolder(const std::string& folder) = 0;
  // SIGTERM, and SIGKILL after `grace`. Again with less grace shortens it.
  virtual void End(std::chrono::duration<double> grace) = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual StatusOr<std::unique_ptr<Job>> Start(const JobSpec& spec, JobEvents events) = 0;
};

}  // namespace jizi::tuner
