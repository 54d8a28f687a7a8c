#include "tuner-service/workers/worker.h"

#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "tuner-service/workers/attempt_environment.h"
#include "tuner-service/workers/local_executor.h"
#include "tuner-service/workers/random_hex.h"
#include "tuner-service/workers/slot.h"

namespace jizi::tuner {
namespace {

using std::chrono::steady_clock;

class SlotWorker final : public Worker {
 public:
  SlotWorker(WorkerOptions options, std::unique_ptr<Client> client,
             std::unique_ptr<Executor> executor)
      : options_(std::move(options)),
        client_(std::move(client)),
        executor_(std::move(executor)),
        left_(options_.slots) {
    const std::string name = options_.prefix + "/" + RandomHex64() + "/";
    for (int i = 0; i < options_.slots; ++i) {
      slots_.push_back(
          std::make_unique<Slot>(options_, *client_, *executor_,
                                 Slot::Place{.index = i, .worker = name + std::to_string(i)}));
    }
    for (const std::unique_ptr<Slot>& slot : slots_) {
      threads_.emplace_back([this, raw = slot.get()] { Finish(raw->Run()); });
    }
  }

  ~SlotWorker() override {
    Stop(StopMode::kKill);
    for (std::thread& thread : threads_) thread.join();
  }

  void Stop(StopMode mode) override {
    for (const std::unique_ptr<Slot>& slot : slots_) slot->Stop(mode);
  }

  Status Wait() override {
    MutexLock lock(mutex_);
    while (left_ > 0) changed_.Wait(mutex_);
    return status_;
  }

  bool WaitFor(std::chrono::milliseconds timeout) override {
    const auto deadline = steady_clock::now() + timeout;
    MutexLock lock(mutex_);
    while (left_ > 0) {
      if (!changed_.WaitUntil(mutex_, deadline)) break;
    }
    return left_ == 0;
  }

 private:
  // What ended one slot (no supervisor, no space) would fail every trial that the others start;
  // those that they run lose nothing by it.
  void Finish(const Status& status) {
    if (!status.ok()) {
      for (const std::unique_ptr<Slot>& slot : slots_) slot->TakeNoMore();
    }
    MutexLock lock(mutex_);
    if (status_.ok()) status_ = status;
    --left_;
    changed_.NotifyAll();
  }

  const WorkerOptions options_;
  const std::unique_ptr<Client> client_;
  const std::unique_ptr<Executor> executor_;
  std::vector<std::unique_ptr<Slot>> slots_;

  Mutex mutex_;
  CondVar changed_;
  int left_ GUARDED_BY(mutex_);
  Status status_ GUARDED_BY(mutex_);  // The first that was not OK.

  std::vector<std::thread> threads_;
};

LocalExecutorOptions LocalOf(const WorkerOptions& options) {
  return {.slots = options.slots,
          .ranks = options.launch.ranks,
          .gpus_per_slot = options.launch.gpus_per_trial,
          .gpu_ids = GpuIds(options.launch),
          .output_cap_bytes = options.output_cap_bytes,
          .grace = options.launch.grace};
}

}  // namespace

Status CheckSlots(const Launch& launch, int slots) {
  WorkerOptions options;
  options.launch = launch;
  options.slots = slots;
  return CheckLocal(LocalOf(options));
}

StatusOr<std::unique_ptr<Worker>> Worker::Start(WorkerOptions options, Supervisor& supervisor) {
  std::error_code failed;
  options.folder = std::filesystem::absolute(options.folder, failed).lexically_normal().string();
  while (options.folder.size() > 1 && options.folder.ends_with("/")) options.folder.pop_back();
  std::filesystem::create_directories(options.folder, failed);
  if (failed) {
    return Error(StatusCode::kInvalidArgument,
                 "cannot make the folder " + options.folder + ": " + failed.message(),
                 {"FOLDER_NOT_WRITABLE", options.folder, "choose a folder that can be written"});
  }
  std::unique_ptr<Client> client = TRY(Client::Connect(options.service));
  std::unique_ptr<Executor> executor = TRY(LocalExecutor::Create(LocalOf(options), supervisor));
  return std::unique_ptr<Worker>(
      new SlotWorker(std::move(options), std::move(client), std::move(executor)));
}

}  // namespace jizi::tuner
