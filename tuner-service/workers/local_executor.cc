#include "tuner-service/workers/local_executor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "tuner-service/workers/local_job.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kMaxRestarts = 3;
constexpr std::chrono::seconds kClashWindow{60};
constexpr std::chrono::seconds kLongestKill{30};  // A process in an endless system call is left.

}  // namespace

class LocalExecutor::Core : public std::enable_shared_from_this<Core> {
 public:
  using State = std::shared_ptr<LocalJobState>;

  Core(LocalExecutorOptions options, Supervisor& supervisor)
      : options_(std::move(options)),
        supervisor_(supervisor),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Core() { close(wake_); }

  void Run() {
    thread_ = std::thread([this] { Loop(); });
  }
  void Shutdown() {
    Post([this] { stop_ = true; });
    thread_.join();
  }

  StatusOr<State> Start(const JobSpec& spec, JobEvents events) {
    auto job = std::make_shared<LocalJobState>();
    job->spec = spec;
    job->events = std::move(events);
    job->folder = spec.folder;
    job->output_cap_bytes = options_.output_cap_bytes;
    TRY(StartRanks(job));
    Post([this, job] { Adopt(job); });
    return job;
  }

  void SwitchFolder(const State& job, const std::string& folder) {
    Post([job, folder] {
      job->folder = folder;
      OpenFiles(*job);
    });
  }

  void End(const State& job, std::chrono::duration<double> grace) {
    std::vector<Supervisor::ProcessId> processes;
    {
      MutexLock lock(job->mutex);
      job->ending = true;
      processes = job->processes;
    }
    for (const Supervisor::ProcessId process : processes) supervisor_.End(process, grace);
    Post([] {});  // The loop looks again at what it does not read.
  }

  void ReadOn(const State& job) {
    Post([job] { job->ranks[0].streams[0].held = false; });
  }

  void Discard(const State& job) {
    {
      MutexLock lock(job->mutex);
      if (job->over) return;
      job->silent = true;
    }
    End(job, std::chrono::duration<double>(0));
    const auto deadline = steady_clock::now() + kLongestKill;
    MutexLock lock(job->mutex);
    while (!job->over && job->over_changed.WaitUntil(job->mutex, deadline)) {
    }
  }

 private:
  void Post(std::function<void()> task) {
    MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
  }

  // With the slot's own GPUs.
  std::map<std::string, std::string> EnvironmentOf(const LocalJobState& job) const {
    std::map<std::string, std::string> environment = job.spec.environment;
    if (options_.gpus_per_slot == 0) return environment;
    std::string ids;
    for (int i = 0; i < options_.gpus_per_slot; ++i) {
      const int index = job.spec.slot * options_.gpus_per_slot + i;
      if (i > 0) ids += ",";
      ids += options_.gpu_ids ? (*options_.gpu_ids)[static_cast<size_t>(index)]
                              : std::to_string(index);
    }
    environment["CUDA_VISIBLE_DEVICES"] = ids;
    return environment;
  }

  // On the caller's thread, before the executor's knows the job; or on that, for a new port.
  Status StartRanks(const State& job) {
    job->ranks = std::vector<JobRank>(static_cast<size_t>(options_.ranks));
    job->started = steady_clock::now();
    job->failed_rank.reset();
    job->straggler_time.reset();
    if (options_.ranks > 1) TakePort(*job);
    {
      MutexLock lock(job->mutex);
      job->processes.clear();
    }
    const int generation = job->restarts;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      const Status started = StartRank(job, rank, generation);
      if (started.ok()) continue;
      std::vector<Supervisor::ProcessId> processes;
      {
        MutexLock lock(job->mutex);
        processes = job->processes;
      }
      for (const auto process : processes) supervisor_.End(process, std::chrono::seconds(0));
      for (JobRank& other : job->ranks) ClosePipes(other);
      ReleasePort(job->master_port);
      return started;
    }
    // An End that came during a restart saw the old processes only.
    if (IsEnding(*job)) End(job, options_.grace);
    return {};
  }

  Status StartRank(const State& job, int rank, int generation) {
    ProcessSpec spec;
    spec.argv = job->spec.argv;
    spec.environment = EnvironmentOf(*job);
    for (const auto& [name, value] :
         RankVariables({.rank = rank, .ranks = options_.ranks, .master_port = job->master_port}))
      spec.environment[name] = value;
    spec.folder = job->spec.folder;
    const RankWriters writers =
        TRY(OpenPipes(job->ranks[static_cast<size_t>(rank)], rank, job->spec.output_mark));
    spec.stdout_fd = writers.stdout_fd;
    spec.stderr_fd = writers.stderr_fd;
    const StatusOr<Supervisor::ProcessId> process =
        supervisor_.Start(spec, [core = weak_from_this(), job, rank, generation](ProcessEnd end) {
          const auto alive = core.lock();
          if (!alive) return;
          alive->Post([raw = alive.get(), job, rank, generation, end] {
            if (generation == job->restarts) raw->RankEnded(job, rank, end);
          });
        });
    close(writers.stdout_fd);
    close(writers.stderr_fd);
    if (!process.ok()) return process.status();
    MutexLock lock(job->mutex);
    job->processes.push_back(*process);
    return {};
  }

  void TakePort(LocalJobState& job) {
    MutexLock lock(mutex_);
    job.master_port = FreePort(ports_);
    ports_.push_back(job.master_port);
  }
  void ReleasePort(int port) {
    MutexLock lock(mutex_);
    ports_.erase(std::remove(ports_.begin(), ports_.end(), port), ports_.end());
  }

  static bool IsEnding(LocalJobState& job) {
    MutexLock lock(job.mutex);
    return job.ending;
  }

  // ---- on the executor's thread ----

  void Loop() {
    while (!stop_) {
      std::vector<pollfd> waits = {{wake_, POLLIN, 0}};
      std::vector<std::pair<State, JobStream*>> owners;
      for (const State& job : jobs_) {
        const bool ending = IsEnding(*job);
        for (JobRank& rank : job->ranks) {
          for (JobStream& stream : rank.streams) {
            // One that is told to end may want to write before it does.
            const bool held = stream.held && !ending && !rank.told_to_end;
            if (stream.pipe < 0 || held) continue;
            waits.push_back({stream.pipe, POLLIN, 0});
            owners.emplace_back(job, &stream);
          }
        }
      }
      poll(waits.data(), waits.size(), EndStragglers());
      for (size_t i = 0; i < owners.size(); ++i) {
        if (waits[i + 1].revents != 0) {
          ReadStream(*owners[i].first, *owners[i].second, chunk_, Reading::kSome);
        }
      }
      if (waits[0].revents != 0) RunTasks();
    }
  }

  void RunTasks() {
    uint64_t count;
    [[maybe_unused]] const ssize_t got = read(wake_, &count, sizeof count);
    std::deque<std::function<void()>> tasks;
    {
      MutexLock lock(mutex_);
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
  }

  void Adopt(const State& job) {
    OpenFiles(*job);
    jobs_.push_back(job);
    job->adopted = true;
    for (const auto& [rank, end] : std::exchange(job->early_ends, {})) RankEnded(job, rank, end);
  }

  void RankEnded(const State& job, int rank, ProcessEnd end) {
    if (!job->adopted) {
      job->early_ends.emplace_back(rank, end);
      return;
    }
    JobRank& state = job->ranks[static_cast<size_t>(rank)];
    for (JobStream& stream : state.streams) {
      ReadStream(*job, stream, chunk_, Reading::kRest);
      FinishStream(*job, stream);
    }
    ClosePipes(state);
    state.end = end;
    const bool failed = end.exit_code != 0 || end.signal != 0;
    const bool ending = IsEnding(*job);
    if (failed && !ending && !state.told_to_end && !job->failed_rank) job->failed_rank = rank;
    const bool all = std::all_of(job->ranks.begin(), job->ranks.end(),
                                 [](const JobRank& other) { return other.end.has_value(); });
    if (all) {
      AllEnded(job, ending);
    } else if (job->failed_rank == rank) {
      EndOthers(*job);
    } else if (!job->straggler_time) {
      job->straggler_time =
          steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(options_.grace);
    }
  }

  void EndOthers(LocalJobState& job) {
    std::vector<Supervisor::ProcessId> processes;
    {
      MutexLock lock(job.mutex);
      processes = job.processes;
    }
    for (size_t rank = 0; rank < job.ranks.size() && rank < processes.size(); ++rank) {
      if (job.ranks[rank].end) continue;
      job.ranks[rank].told_to_end = true;
      supervisor_.End(processes[rank], options_.grace);
    }
  }

  // Returns poll's timeout.
  int EndStragglers() {
    auto timeout = milliseconds(60'000);
    const auto now = steady_clock::now();
    for (const State& job : jobs_) {
      if (!job->straggler_time) continue;
      if (*job->straggler_time <= now) {
        job->straggler_time.reset();
        EndOthers(*job);
      } else {
        timeout =
            std::min(timeout, std::chrono::duration_cast<milliseconds>(*job->straggler_time - now) +
                                  milliseconds(1));
      }
    }
    return static_cast<int>(timeout.count());
  }

  void AllEnded(const State& job, bool ending) {
    ReleasePort(job->master_port);
    if (!ending && job->restarts < kMaxRestarts && LooksLikePortClash(*job) &&
        steady_clock::now() < job->started + kClashWindow) {
      ++job->restarts;
      const Status started = StartRanks(job);
      if (started.ok()) {
        OpenFiles(*job);
        return;
      }
      ++job->restarts;  // Ends of what was started of it are nobody's.
      if (started.code() == StatusCode::kUnavailable) job->lost = started;
      for (JobRank& rank : job->ranks) rank.end = ProcessEnd{};
    }
    job->ranks[0].streams[0].lines.Finish(
        [&](std::string line) { TellLine(*job, std::move(line)); });
    for (JobRank& rank : job->ranks) {
      for (JobStream& stream : rank.streams) stream.file.reset();
    }
    jobs_.erase(std::remove(jobs_.begin(), jobs_.end(), job), jobs_.end());
    bool silent;
    {
      MutexLock lock(job->mutex);
      silent = job->silent;
    }
    if (!silent && job->events.on_end) job->events.on_end(EndOf(*job));
    MutexLock lock(job->mutex);
    job->over = true;
    job->over_changed.NotifyAll();
  }

  const LocalExecutorOptions options_;
  Supervisor& supervisor_;
  const int wake_;

  Mutex mutex_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  std::vector<int> ports_ GUARDED_BY(mutex_);

  // The executor's thread's own.
  bool stop_ = false;
  std::vector<State> jobs_;
  std::vector<char> chunk_ = std::vector<char>(kStreamChunk);

  std::thread thread_;
};

namespace {

class LocalJob final : public Job {
 public:
  LocalJob(std::shared_ptr<LocalExecutor::Core> core, std::shared_ptr<LocalJobState> state)
      : core_(std::move(core)), state_(std::move(state)) {}
  ~LocalJob() override { core_->Discard(state_); }
  void ReadOn() override { core_->ReadOn(state_); }
  void SwitchFolder(const std::string& folder) override { core_->SwitchFolder(state_, folder); }
  void End(std::chrono::duration<double> grace) override { core_->End(state_, grace); }

 private:
  const std::shared_ptr<LocalExecutor::Core> core_;
  const std::shared_ptr<LocalJobState> state_;
};

}  // namespace

Status CheckLocal(const LocalExecutorOptions& options) {
  if (options.slots < 1 || options.ranks < 1 || options.gpus_per_slot < 0) {
    return Error(StatusCode::kInvalidArgument, "slots and ranks must be 1 or more",
                 {"BAD_RESOURCES", "workers", "correct `jizi: {workers, resources}`"});
  }
  const auto needed =
      static_cast<size_t>(options.slots) * static_cast<size_t>(options.gpus_per_slot);
  if (options.gpu_ids && options.gpu_ids->size() < needed) {
    return Error(StatusCode::kInvalidArgument,
                 std::to_string(options.slots) + " slots of " +
                     std::to_string(options.gpus_per_slot) + " GPUs need " +
                     std::to_string(needed) + " ids, and there are " +
                     std::to_string(options.gpu_ids->size()),
                 {"TOO_FEW_GPUS", "gpu_ids",
                  "lower --workers or `resources: {gpus: ...}`, or name more in "
                  "CUDA_VISIBLE_DEVICES"});
  }
  return {};
}

StatusOr<std::unique_ptr<LocalExecutor>> LocalExecutor::Create(LocalExecutorOptions options,
                                                               Supervisor& supervisor) {
  TRY(CheckLocal(options));
  auto core = std::make_shared<Core>(std::move(options), supervisor);
  core->Run();
  return std::unique_ptr<LocalExecutor>(new LocalExecutor(std::move(core)));
}

LocalExecutor::LocalExecutor(std::shared_ptr<Core> core) : core_(std::move(core)) {}
LocalExecutor::~LocalExecutor() {
  core_->Shutdown();
}

StatusOr<std::unique_ptr<Job>> LocalExecutor::Start(const JobSpec& spec, JobEvents events) {
  std::shared_ptr<LocalJobState> state = TRY(core_->Start(spec, std::move(events)));
  return std::make_unique<LocalJob>(core_, std::move(state));
}

}  // namespace jizi::tuner
