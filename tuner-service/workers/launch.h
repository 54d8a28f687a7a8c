#pragma once
// launch.h - how a trial's program is started: what the sweep file says beside the search space.
// Threads: values.

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "jizi/v1/types.pb.h"

namespace jizi::tuner {

struct Launch {
  std::vector<std::string> command;  // argv with macros: ${env} ${interpreter} ${program} ${args}
                                     // ${args_no_boolean_flags}
                                     // ${args_no_hyphens} ${args_json} ${args_json_file}
                                     // ${envvar:NAME}. What is not ours stays.
  std::string program;               // ${program}.
  std::string folder;  // Of the sweep file: where commands are started from (their working folder
                       // is the trial's own).
  int ranks = 1;       // Processes a trial.
  int gpus_per_trial = 0;            // Each slot its own CUDA_VISIBLE_DEVICES.
  std::vector<std::string> gpu_ids;  // To hand out; empty: those of CUDA_VISIBLE_DEVICES of `env`
                                     // or of the worker; without it 0, 1, 2, ...
  int threads = 1;                   // OMP_NUM_THREADS of a rank.
  std::optional<std::chrono::duration<double>> time_limit;  // Wall clock of a trial's attempt.
  std::chrono::duration<double> grace{10};                  // Between SIGTERM and SIGKILL.
  bool reuse_process =
      false;  // `reuse: true`: a process takes trial after trial though its flags carry parameters.
  std::map<std::string, std::string> environment;
};

// argv for one trial. `args_json_file` is where ${args_json_file} was written. Booleans as Python
// writes them (True, False). Fails: InvalidArgument for ${envvar:NAME} that is not set.
StatusOr<std::vector<std::string>> ExpandCommand(
    const Launch& launch, const google::protobuf::Map<std::string, v1::Value>& params,
    const std::string& args_json_file);

// Is there a program to start? Judges the command as written, before the first trial.
// Fails: InvalidArgument COMMAND_EMPTY, COMMAND_WITHOUT_PROGRAM (a macro of parameters stands where
// the program should), PROGRAM_NOT_FOUND, PROGRAM_NOT_EXECUTABLE, VARIABLE_NOT_SET; each names the
// word and the mend.
Status CheckCommand(const Launch& launch);

// Does the command hold a macro that carries parameters? Then a process takes one trial only
// (contract 19).
bool CarriesParameters(const Launch& launch);

}  // namespace jizi::tuner
