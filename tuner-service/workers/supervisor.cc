#include "tuner-service/workers/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "tuner-service/workers/host_fault.h"
#include "tuner-service/workers/process_record.h"
#include "tuner-service/workers/process_tree.h"
#include "tuner-service/workers/random_hex.h"
#include "tuner-service/workers/recovery.h"
#include "tuner-service/workers/supervisor_child.h"
#include "tuner-service/workers/supervisor_wire.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLockPoll{5};
constexpr milliseconds kLookAtHolder{500};
constexpr milliseconds kCleanUp{10'000};    // After a supervisor that was killed.
constexpr milliseconds kLastWords{10'000};  // For what a supervisor does once its owner lets go.

Status SystemError(const std::string& what, int error) {
  return Error(StatusCode::kInternal, what + ": " + strerror(error),
               {"SYSTEM_CALL_FAILED", "", ""});
}

// The pid on a lock's first line.
std::string HolderOf(int lock) {
  char text[32] = {};
  [[maybe_unused]] const ssize_t got = pread(lock, text, sizeof text - 1, 0);
  const std::string line = text;
  return line.substr(0, line.find('\n'));
}

bool IsStopped(const ProcessInfo& info) {
  return info.state == 'T' || info.state == 't';
}

// The descriptor, locked.
StatusOr<int> TakeLock(const std::string& path, milliseconds wait,
                       const std::function<bool()>& stop) {
  const int lock = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) {
    return Error(StatusCode::kInvalidArgument,
                 "cannot open the lock " + path + ": " + strerror(errno),
                 {"LOCK_NOT_WRITABLE", path, "choose a folder that can be written"});
  }
  const auto deadline = steady_clock::now() + wait;
  auto next_look = steady_clock::now();
  while (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (steady_clock::now() >= next_look) {
      ContinueSupervisor(path);
      next_look = steady_clock::now() + kLookAtHolder;
    }
    if (stop && stop()) {
      close(lock);
      return Error(StatusCode::kCancelled, "stopped while waiting for " + path,
                   {"STOPPED", path, "start it again to go on"});
    }
    if (steady_clock::now() >= deadline) {
      const std::string pid = HolderOf(lock);
      close(lock);
      return Error(StatusCode::kUnavailable,
                   "another supervisor (pid " + pid + ") still holds " + path,
                   {"SUPERVISOR_BUSY", path,
                    "wait until its run has ended; if that hangs, kill -9 this pid"});
    }
    std::this_thread::sleep_for(kLockPoll);
  }
  return lock;
}

class ForkedSupervisor final : public Supervisor {
 public:
  struct Child {
    int socket = -1;
    pid_t pid = 0;
    std::string tag;
  };

  ForkedSupervisor(Child child, const ForkOptions& options)
      : socket_(child.socket),
        pid_(child.pid),
        tag_(std::move(child.tag)),
        start_deadline_(options.start_deadline),
        look_every_(options.look_every),
        reader_([this] { Read(); }) {}

  ~ForkedSupervisor() override {
    closing_ = true;
    shutdown(socket_, SHUT_WR);  // The end of file that it waits for.
    reader_.join();
    close(socket_);
  }

  StatusOr<ProcessId> Start(const ProcessSpec& spec,
                            std::function<void(ProcessEnd)> on_end) override {
    if (spec.argv.empty() || spec.argv[0].empty()) {
      return Error(StatusCode::kInvalidArgument, "the command is empty",
                   {"COMMAND_EMPTY", "command", "name a program"});
    }
    WireMessage message;
    message.kind = WireKind::kStart;
    message.text = spec.folder;
    message.argv = spec.argv;
    for (const auto& [name, value] : spec.environment) {
      message.environment.push_back(name + "=" + value);
    }
    message.descriptors = {spec.stdout_fd, spec.stderr_fd};
    ProcessId id;
    {
      MutexLock lock(mutex_);
      if (gone_) return SupervisorGone();
      id = next_id_++;
      processes_[id].on_end = std::move(on_end);
      processes_[id].program = spec.argv[0];
    }
    message.id = id;
    if (!Send(message)) return SupervisorGone();
    const StatusOr<ProcessId> started = WaitForStart(id);
    // It may still come to it: nobody would end that process, nor know of it.
    if (DetailOf(started.status()).code == kSilent) End(id, std::chrono::seconds(0));
    return started;
  }

  void End(ProcessId process, std::chrono::duration<double> grace) override {
    WireMessage message;
    message.kind = WireKind::kEnd;
    message.id = process;
    message.value = std::chrono::duration_cast<milliseconds>(grace).count();
    Send(message);  // If it is gone, so are its processes.
  }

 private:
  static constexpr char kSilent[] = "SUPERVISOR_SILENT";

  struct Process {
    int pid = 0;
    std::optional<Status> refused;
    std::function<void(ProcessEnd)> on_end;
    std::string program;
  };

  StatusOr<ProcessId> WaitForStart(ProcessId id) {
    const auto deadline = steady_clock::now() + start_deadline_;
    MutexLock lock(mutex_);
    for (;;) {
      const auto found = processes_.find(id);
      if (found == processes_.end()) {
        if (gone_) return SupervisorGone();  // Perhaps without having started it.
        return id;                           // Started, and ended already.
      }
      if (found->second.refused) {
        const Status refused = *found->second.refused;
        processes_.erase(found);
        return refused;
      }
      if (found->second.pid != 0) return id;
      if (steady_clock::now() >= deadline) {
        const std::string program = std::move(found->second.program);
        processes_.erase(found);
        return Error(StatusCode::kUnavailable,
                     "the supervisor of this worker has not answered for " +
                         std::to_string(start_deadline_.count() / 1000) + " s",
                     {kSilent, program, "start the worker again"});
      }
      changed_.WaitUntil(mutex_, deadline);
    }
  }

  bool Send(const WireMessage& message) {
    MutexLock lock(send_mutex_);
    return SendWire(socket_, message);
  }

  // Until there is something to read. A supervisor that a program has stopped would neither start
  // nor end anything, and no time limit would hold. One that hangs must not keep its owner.
  void WaitForMessage() {
    milliseconds closing{0};
    for (int stopped = 0;;) {
      pollfd wait = {socket_, POLLIN, 0};
      if (poll(&wait, 1, static_cast<int>(look_every_.count())) > 0) return;
      if (closing_) closing += look_every_;
      if (closing >= kLastWords) kill(pid_, SIGKILL);
      const std::optional<ProcessInfo> info = ProcessOf(pid_);  // Ours: no other has its number.
      stopped = info && IsStopped(*info) ? stopped + 1 : 0;
      if (stopped > 0) kill(pid_, stopped < kMaxStopped ? SIGCONT : SIGKILL);
    }
  }

  void Read() {
    for (;;) {
      WaitForMessage();
      const std::optional<WireMessage> message = ReceiveWire(socket_);
      if (!message) break;
      std::function<void(ProcessEnd)> on_end;
      {
        MutexLock lock(mutex_);
        const auto found = processes_.find(message->id);
        if (found == processes_.end()) continue;
        if (message->kind == WireKind::kStarted) {
          found->second.pid = static_cast<int>(message->value);
        } else if (message->kind == WireKind::kRefused) {
          found->second.refused = Refusal(*message, found->second.program);
        } else if (message->kind == WireKind::kFinished) {
          on_end = std::move(found->second.on_end);
          processes_.erase(found);
        }
        changed_.NotifyAll();
      }
      if (on_end) {
        on_end({.exit_code = static_cast<int>(message->value),
                .signal = static_cast<int>(message->signal)});
      }
    }
    AfterItsEnd();
  }

  static Status Refusal(const WireMessage& message, const std::string& program) {
    const auto error = static_cast<int>(message.value);
    // What the folder or a new process fails for is the machine's; of exec only some of it.
    if (IsHostFault(error) || message.text != kExecStep) {
      return HostFault(message.text + " failed: " + strerror(error), program, MendOfHost(error));
    }
    std::string mend = "check the program's path and its mode";
    if (program.starts_with("-")) {
      mend = "'" + program + "' is no program: put one before the parameters in `command`";
    }
    return Error(StatusCode::kInvalidArgument,
                 message.text + " '" + program + "' failed: " + strerror(error),
                 {"PROGRAM_NOT_STARTED", program, mend});
  }

  void AfterItsEnd() {
    int state = 0;
    const bool waited = waitpid(pid_, &state, 0) == pid_;
    // It was killed: its leaders died with it by their parent-death signal, the rest came to us.
    if (waited && !(WIFEXITED(state) && WEXITSTATUS(state) == 0)) EndOrphans();
    std::map<ProcessId, Process> left;
    {
      MutexLock lock(mutex_);
      gone_ = true;
      left.swap(processes_);
      changed_.NotifyAll();
    }
    for (auto& [id, process] : left) {
      if (process.on_end && process.pid != 0) process.on_end({.signal = SIGKILL, .lost = true});
    }
  }

  void EndOrphans() {
    [[maybe_unused]] const auto ended = EndProcessesWith({kSupervisorEntry + tag_}, kCleanUp);
    const auto deadline = steady_clock::now() + kCleanUp;
    for (bool left = true; left && steady_clock::now() < deadline;) {
      left = false;
      for (const ProcessInfo& info : AllProcesses()) {
        // Adopted: a child of ours that we did not start has a session that is not ours.
        if (info.parent != getpid() || info.session == getsid(0) || info.name == kSupervisorName) {
          continue;
        }
        left = true;
        kill(info.pid, SIGKILL);
        waitpid(info.pid, nullptr, WNOHANG);
      }
      if (left) std::this_thread::sleep_for(milliseconds(2));
    }
  }

  const int socket_;
  const pid_t pid_;
  const std::string tag_;
  const milliseconds start_deadline_;
  const milliseconds look_every_;
  std::atomic<bool> closing_{false};

  Mutex send_mutex_;  // One message at a time.

  Mutex mutex_;
  CondVar changed_;
  std::map<ProcessId, Process> processes_ GUARDED_BY(mutex_);
  ProcessId next_id_ GUARDED_BY(mutex_) = 1;
  bool gone_ GUARDED_BY(mutex_) = false;

  std::thread reader_;  // Last: it uses all of the above.
};

}  // namespace

void ContinueSupervisor(const std::string& lock_file) {
  const int lock = open(lock_file.c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return;
  const auto pid = static_cast<pid_t>(atoi(HolderOf(lock).c_str()));
  close(lock);
  const std::optional<ProcessInfo> info = pid > 0 ? ProcessOf(pid) : std::nullopt;
  if (info && info->name == kSupervisorName && IsStopped(*info)) kill(pid, SIGCONT);
}

Status SupervisorGone() {
  return Error(StatusCode::kUnavailable, "the supervisor of this worker was killed",
               {"SUPERVISOR_GONE", "", "start the worker again"});
}

StatusOr<std::unique_ptr<Supervisor>> Supervisor::Fork(const std::string& lock_file,
                                                       milliseconds wait_for_lock,
                                                       const ForkOptions& options) {
  const int lock = TRY(TakeLock(lock_file, wait_for_lock, options.stop));
  // What a supervisor that was killed together with its owner has left.
  if (const auto ended = EndRecordedProcesses(lock_file, kCleanUp); !ended.ok()) {
    close(lock);
    return ended.status();
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    const Status failed = SystemError("socketpair", errno);
    close(lock);
    return failed;
  }
  std::string tag = RandomHex64();
  const mode_t own_umask = umask(077);  // The only way to read it.
  umask(own_umask);
  const mode_t program_umask = options.program_umask.value_or(own_umask);
  // Should the supervisor itself be killed, what it leaves comes to us and not to init.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t pid = fork();
  if (pid == 0) {
    RunSupervisor({.socket = ends[1], .lock = lock, .tag = tag, .program_umask = program_umask});
  }
  const int error = errno;
  const std::string number = std::to_string(pid) + "\n";
  if (pid > 0 && ftruncate(lock, 0) == 0) {
    [[maybe_unused]] const ssize_t written = pwrite(lock, number.data(), number.size(), 0);
  }
  close(lock);  // The child's copy holds it on.
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return SystemError("fork", error);
  }
  return std::make_unique<ForkedSupervisor>(
      ForkedSupervisor::Child{.socket = ends[0], .pid = pid, .tag = std::move(tag)}, options);
}

}  // namespace jizi::tuner
