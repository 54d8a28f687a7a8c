#pragma once
// local_executor.h - the Executor of this machine: a job's ranks as processes of the supervisor.
// Output: rank 0 writes stdout.log and stderr.log in the job's folder, rank k stdout.k.log and
// stderr.k.log, each capped (output_file.h). The end of one rank ends all: a failure at once
// (SIGTERM, grace, SIGKILL), a success after `grace` for what has not ended by itself.
// Several ranks get torchrun's variables and a free MASTER_PORT; when the port turns out to be
// taken
// ("Address already in use" within a minute) the job is started again with another, three times at
// most, which nobody outside sees.
// Fails: Create: as CheckLocal. Start: what the supervisor says.
// Threads: one of its own reads all output.   Cost: two pipes and two files a rank.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner-service/workers/executor.h"
#include "tuner-service/workers/supervisor.h"

namespace jizi::tuner {

struct LocalExecutorOptions {
  int slots = 1;
  int ranks = 1;
  int gpus_per_slot = 0;                            // 0: CUDA_VISIBLE_DEVICES is left alone.
  std::optional<std::vector<std::string>> gpu_ids;  // To hand out; unset: 0, 1, 2, ...
  size_t output_cap_bytes = 8u << 20;
  std::chrono::duration<double> grace{10};
};

// Whether the slots can be what they are to be. Fails: InvalidArgument BAD_RESOURCES, TOO_FEW_GPUS.
Status CheckLocal(const LocalExecutorOptions& options);

class LocalExecutor final : public Executor {
 public:
  static StatusOr<std::unique_ptr<LocalExecutor>> Create(LocalExecutorOptions options,
                                                         Supervisor& supervisor);
  ~LocalExecutor() override;  // Its jobs must be gone.
  StatusOr<std::unique_ptr<Job>> Start(const JobSpec& spec, JobEvents events) override;

  class Core;  // Shared with jobs and callbacks, which may end later.

 private:
  explicit LocalExecutor(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace jizi::tuner
