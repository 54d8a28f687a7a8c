#pragma once
// sweep_file.h - a Weights & Biases sweep configuration (YAML), with ours under the one key
// `jizi:`. Fails: InvalidArgument with file, line, what is wrong and the mend (the nearest right
// name); all faults of the file at once. Threads: pure but for reading the file.

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"
#include "schedulers/model/study.h"
#include "tuner-service/workers/launch.h"

namespace jizi::tuner {

struct SweepNote {  // Something accepted that a person should know: an unknown key, a method that
                    // is not here yet.
  int line = 0;
  std::string text;
};

struct Sweep {
  StudySpec study;
  Launch launch;
  int workers = 1;                          // `jizi: {workers: N}`.
  std::chrono::duration<double> lease{60};  // `jizi: {lease: 60s}`: of an attempt that is silent.
  std::vector<Params> first_trials;  // `jizi: {defaults: ...}`: enqueued when the study is created.
  std::vector<SweepNote> notes;
  int command_line = 1;  // Of `command`, or of `program` where that is all there is.
  int program_line = 1;
};

// `judge` (CheckCommand) looks whether its program is there, where the file has other faults: what
// it finds is told with them. Where there are none the caller asks by itself.
StatusOr<Sweep> ReadSweepFile(const std::string& path, Status (*judge)(const Launch&) = nullptr);
// `name` stands in messages; its stem is the study's name unless the file says another, its folder
// is launch.folder.
StatusOr<Sweep> ParseSweep(const std::string& text, const std::string& name);

}  // namespace jizi::tuner
