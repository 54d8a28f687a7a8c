#pragma once
// attempt_environment.h - the environment that a trial's program is started in (docs/design.md, "A
// trial's contract with its program"), but for what an executor adds by rank and slot.
// It is the worker's own, without variables of an outer Jizi or torchrun, then OMP_NUM_THREADS,
// PYTHONUNBUFFERED (printed reports must not wait in a buffer) and PYTHONPATH (the sweep's folder
// last, because the program starts in its trial's), then the sweep's `env`, then JIZI_*.
// Threads: reads `environ`, which nobody may change meanwhile.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jizi/v1/tune_service.pb.h"
#include "tuner-service/workers/launch.h"
#include "tuner-service/workers/worker.h"

namespace jizi::tuner {

struct AttemptPlace {
  std::string worker;
  std::string folder;      // Of the trial, absolute.
  std::string outbox;      // Absolute.
  std::string warm_start;  // Absolute path of the checkpoint; empty: none.
  bool one_trial = true;
  std::string output_mark;  // For output_marks.h; empty: none.
};

std::map<std::string, std::string> AttemptEnvironment(const WorkerOptions& options,
                                                      const v1::Assignment& assignment,
                                                      const AttemptPlace& place);

// Which GPUs a worker may hand out to its slots: those that the sweep file names, else those of
// CUDA_VISIBLE_DEVICES of the sweep's `env` or of the worker's own environment, up to the first
// "-1" as CUDA reads it. Unset: nobody says.
std::optional<std::vector<std::string>> GpuIds(const Launch& launch);

// The trial's parameters as one JSON object, names sorted: JIZI_PARAMS.
std::string ParamsJson(const v1::Trial& trial);

}  // namespace jizi::tuner
