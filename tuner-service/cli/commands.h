#pragma once
// commands.h - one function a command of `jizi`; main.cc gives it what the command line said.
// Each returns its exit code, having printed its result to stdout and its error to stderr.
// Threads: from the main thread; Run, Worker and Serve before any other thread exists.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner-service/cli/connect.h"
#include "tuner-service/cli/exit_code.h"
#include "tuner-service/cli/sweep_file.h"

namespace jizi::tuner {

struct RunOptions {
  std::string sweep_file;
  Target target;  // No database and no server: <sweep stem>.db in this folder.
  std::optional<int> workers;
  std::optional<uint64_t> seed;
  std::optional<int64_t> max_trials;
  std::optional<std::chrono::duration<double>> timeout;
  bool resume = false;
  bool json = false;
};
ExitCode CommandRun(const RunOptions& options);
// The same without a study of its own making: creates it or joins it, on a server.
ExitCode CommandWorker(const RunOptions& options);

struct ServeOptions {
  std::string database;
  std::string listen;
  std::string certificate_file;
  std::string key_file;
  bool insecure = false;
  std::string log_file;  // Every call; empty: failures, to stderr.
};
ExitCode CommandServe(const ServeOptions& options);

struct CheckOptions {
  std::string sweep_file;
  bool json = false;
};
ExitCode CommandCheck(const CheckOptions& options);

struct QueryOptions {
  Target target;
  std::string study;
  bool json = false;
};
ExitCode CommandStudies(const QueryOptions& options);
ExitCode CommandBest(const QueryOptions& options);
ExitCode CommandShow(const QueryOptions& options, int64_t trial);
ExitCode CommandWatch(const QueryOptions& options);

struct TrialsOptions {
  std::string sort;
  std::vector<std::string> states;
  int64_t top = 0;  // 0: all.
};
ExitCode CommandTrials(const QueryOptions& options, const TrialsOptions& trials);

enum class ExportFormat { kCsv, kJson };
ExitCode CommandExport(const QueryOptions& options, ExportFormat format);

ExitCode CommandEnqueue(const QueryOptions& options, const std::vector<std::string>& assignments);
ExitCode CommandRetry(const QueryOptions& options, const std::vector<int64_t>& trials);
enum class StudyAction { kPause, kResume, kStop };
ExitCode CommandSetState(const QueryOptions& options, StudyAction action);
ExitCode CommandDelete(const QueryOptions& options);

// A study without a run: for scripts, and for workers that come later.
struct CreateOptions {
  std::string sweep_file;
  std::optional<uint64_t> seed;
  bool resume = false;
};
// No database and no server: <sweep stem>.db in this folder, made if it is not there.
ExitCode CommandCreate(const QueryOptions& options, const CreateOptions& wanted);

// A worker that is a script (docs/contracts.md, 9). Without a target JIZI_ENDPOINT is used.
struct SuggestOptions {
  int count = 1;
  std::chrono::duration<double> lease{3600};
  std::chrono::duration<double> wait{3600};  // For a trial, while others may still come back.
  std::string worker;                        // Empty: a name of its own each time.
};
ExitCode CommandSuggest(const QueryOptions& options, const SuggestOptions& wanted);
struct ScriptTrial {
  int64_t id = 0;
  std::string lease;                 // Hex, as `suggest` prints it.
  std::vector<std::string> metrics;  // "val_accuracy=0.91"
  std::optional<int64_t> step;       // Else one after the last.
};
// kExitEnd: the trial is to stop.
ExitCode CommandReport(const QueryOptions& options, const ScriptTrial& trial);
struct CompleteOptions {
  std::optional<std::string> failed;  // Why; at most one of the two.
  std::optional<std::string> infeasible;
};
ExitCode CommandComplete(const QueryOptions& options, const ScriptTrial& trial,
                         const CompleteOptions& wanted);
ExitCode CommandRelease(const QueryOptions& options, const ScriptTrial& trial);

// JSON lines on stdin and stdout (ask_tell.h).
struct AskTellOptions {
  std::string sweep_file;
  std::string database;  // Empty: in memory, gone with the process.
  std::optional<uint64_t> seed;
};
ExitCode CommandAskTell(const AskTellOptions& options);

// What CheckCommand says, as a fault of the sweep file: "sweep.yaml:1: what; mend".
// `kind`: "warning: ", or none.
std::string CommandFault(const std::string& file, const Sweep& sweep, const Status& status,
                         const std::string& kind = "");

}  // namespace jizi::tuner
