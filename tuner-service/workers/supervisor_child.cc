#include "tuner-service/workers/supervisor_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tuner-service/workers/process_record.h"
#include "tuner-service/workers/process_tree.h"
#include "tuner-service/workers/supervisor_wire.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kScan{20};         // Between looks at what a job has left behind.
constexpr milliseconds kOrphanScan{200};  // Between looks for orphans to bury.
constexpr milliseconds kRecord{1000};     // Between looks at what there is, for the record.
constexpr int kRecordShare = 100;         // And no more than one part in so many of the time.
constexpr int kMaxStopPasses = 20;        // A fork bomb is halted first, then killed.

struct ChildJob {
  pid_t leader = 0;
  std::string entry;                                // JIZI_PROCESS=...
  std::optional<siginfo_t> end;                     // Of the leader.
  std::optional<steady_clock::time_point> kill_at;  // Set by kEnd.
};

void MoveTo(int from, int to) {
  if (from != to) dup2(from, to);
}

struct Parent {
  pid_t pid = 0;
  int failure = -1;  // A pipe: what failed (errno, then the step), or nothing.
  mode_t program_umask = 077;
};

// Between fork and exec.
[[noreturn]] void Become(const WireMessage& start, std::vector<std::string> environment,
                         const Parent& parent) {
  const auto give_up = [&](int32_t step) {
    const int32_t told[2] = {errno, step};
    [[maybe_unused]] const ssize_t written = write(parent.failure, told, sizeof told);
    _exit(127);
  };
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent.pid) _exit(127);  // It died before the line above.
  umask(parent.program_umask);
  for (int signal_number = 1; signal_number < NSIG; ++signal_number) {
    signal(signal_number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0) give_up(1);
  MoveTo(nothing, STDIN_FILENO);
  if (start.descriptors.size() == 2) {
    MoveTo(start.descriptors[0], STDOUT_FILENO);
    MoveTo(start.descriptors[1], STDERR_FILENO);
  }
  if (chdir(start.text.c_str()) != 0) give_up(2);
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  std::vector<char*> argv, variables;
  for (const std::string& word : start.argv) argv.push_back(const_cast<char*>(word.c_str()));
  for (std::string& variable : environment) variables.push_back(variable.data());
  argv.push_back(nullptr);
  variables.push_back(nullptr);
  environ = variables.data();  // execvp searches the PATH that the program is given.
  execvp(argv[0], argv.data());
  give_up(3);
  _exit(127);
}

class Loop {
 public:
  explicit Loop(const SupervisorSetup& setup)
      : socket_(setup.socket),
        tag_(setup.tag),
        program_umask_(setup.program_umask),
        self_(getpid()),
        record_(setup.lock) {}

  [[noreturn]] void Run() {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, nullptr);
    const int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
      pollfd waits[2] = {{socket_, POLLIN, 0}, {signals, POLLIN, 0}};
      poll(waits, 2, static_cast<int>(Pause().count()));
      if (waits[1].revents != 0) {
        signalfd_siginfo info;
        while (read(signals, &info, sizeof info) > 0) orphans_ = true;
      }
      if (waits[0].revents != 0) {
        std::optional<WireMessage> message = ReceiveWire(socket_);
        if (!message) break;
        Handle(*message);
      }
      NoteEnds();
      Advance();
      Record();
    }
    EndEverything();
    _exit(0);
  }

 private:
  milliseconds Pause() const {
    milliseconds pause = orphans_ ? kOrphanScan : milliseconds(60'000);
    const auto now = steady_clock::now();
    if (!jobs_.empty()) {
      const auto left = std::chrono::duration_cast<milliseconds>(next_record_ - now);
      pause = std::min(pause, std::max(left + milliseconds(1), milliseconds(1)));
    }
    for (const auto& [id, job] : jobs_) {
      if (job.end) {
        pause = std::min(pause, kScan);
      } else if (job.kill_at) {
        const auto left = std::chrono::duration_cast<milliseconds>(*job.kill_at - now);
        pause = std::min(pause, std::max(left + milliseconds(1), milliseconds(1)));
      }
    }
    return pause;
  }

  void Handle(const WireMessage& message) {
    if (message.kind == WireKind::kStart) Start(message);
    if (message.kind == WireKind::kEnd) End(message.id, milliseconds(message.value));
    for (const int descriptor : message.descriptors) close(descriptor);
  }

  void Start(const WireMessage& start) {
    ChildJob job;
    job.entry = kProcessEntry + tag_ + "." + std::to_string(start.id);
    std::vector<std::string> environment = start.environment;
    environment.push_back(job.entry);
    environment.push_back(kSupervisorEntry + tag_);
    int failure[2];
    if (pipe2(failure, O_CLOEXEC) != 0) {
      Refuse(start, errno, "making a pipe");
      return;
    }
    job.leader = fork();
    if (job.leader == 0) {
      Become(start, std::move(environment),
             {.pid = self_, .failure = failure[1], .program_umask = program_umask_});
    }
    const int fork_error = errno;
    close(failure[1]);
    if (job.leader < 0) {
      close(failure[0]);
      Refuse(start, fork_error, "starting a process");
      return;
    }
    int32_t told[2] = {0, 0};
    ssize_t got;
    do {
      got = read(failure[0], told, sizeof told);
    } while (got < 0 && errno == EINTR);
    close(failure[0]);
    if (got == static_cast<ssize_t>(sizeof told)) {
      waitpid(job.leader, nullptr, 0);
      Refuse(start, told[0],
             told[1] == 1   ? "opening /dev/null"
             : told[1] == 2 ? "entering the folder " + start.text
                            : kExecStep);
      return;
    }
    WireMessage answer;
    answer.kind = WireKind::kStarted;
    answer.id = start.id;
    answer.value = job.leader;
    jobs_.emplace(start.id, std::move(job));
    SendWire(socket_, answer);
  }

  void Refuse(const WireMessage& start, int error, const std::string& what) {
    WireMessage answer;
    answer.kind = WireKind::kRefused;
    answer.id = start.id;
    answer.value = error;
    answer.text = what;
    SendWire(socket_, answer);
  }

  void End(int64_t id, milliseconds grace) {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) return;
    ChildJob& job = found->second;
    const auto kill_at = steady_clock::now() + grace;
    if (!job.kill_at && grace.count() > 0) {
      kill(-job.leader, SIGTERM);
      kill(-job.leader, SIGCONT);  // A stopped process would never see it.
    }
    job.kill_at = job.kill_at ? std::min(*job.kill_at, kill_at) : kill_at;
  }

  // Leaders that have ended; they are waited for only when their job is over.
  void NoteEnds() {
    for (auto& [id, job] : jobs_) {
      if (job.end) continue;
      siginfo_t info{};
      if (waitid(P_PID, static_cast<id_t>(job.leader), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
          info.si_pid == job.leader) {
        job.end = info;
      }
    }
  }

  // What a job has left: everything of ours in its session or group, with its entry, or beneath
  // its leader.
  std::vector<pid_t> LeftOf(const ChildJob& job, const std::vector<ProcessInfo>& mine) const {
    std::set<pid_t> family = {job.leader};
    std::vector<pid_t> left;
    for (const ProcessInfo& info : mine) {  // Parents stand before their children.
      if (info.pid == job.leader) continue;
      const bool child = family.contains(info.parent);
      if (!child && info.group != job.leader && info.session != job.leader &&
          !EnvironmentHolds(info.pid, job.entry)) {
        continue;
      }
      family.insert(info.pid);
      if (info.state != 'Z') left.push_back(info.pid);
    }
    return left;
  }

  void Advance() {
    const auto now = steady_clock::now();
    const bool job_due = std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& item) {
      return item.second.end || (item.second.kill_at && *item.second.kill_at <= now);
    });
    if (!job_due && (!orphans_ || now < next_orphan_scan_)) return;
    const std::vector<ProcessInfo> mine = DescendantsOf(self_);
    for (auto item = jobs_.begin(); item != jobs_.end();) {
      ChildJob& job = item->second;
      const bool kill_now = job.kill_at ? *job.kill_at <= now : job.end.has_value();
      if (!job.end && !kill_now) {
        ++item;
        continue;
      }
      const std::vector<pid_t> left = LeftOf(job, mine);
      if (kill_now) {
        kill(-job.leader, SIGKILL);
        for (const pid_t pid : left) kill(pid, SIGKILL);
      }
      if (job.end && left.empty()) {
        Finish(item->first, job);
        item = jobs_.erase(item);
      } else {
        ++item;
      }
    }
    Bury(mine);
    next_orphan_scan_ = now + kOrphanScan;
  }

  // For the next owner, should this process and its parent be killed at once.
  void Record() {
    const auto begin = steady_clock::now();
    if (jobs_.empty() || begin < next_record_) return;
    record_.Write(DescendantsOf(self_));
    const auto end = steady_clock::now();
    next_record_ = end + std::max<steady_clock::duration>(kRecord, (end - begin) * kRecordShare);
  }

  void Finish(int64_t id, const ChildJob& job) {
    waitpid(job.leader, nullptr, 0);
    WireMessage message;
    message.kind = WireKind::kFinished;
    message.id = id;
    const bool exited = job.end->si_code == CLD_EXITED;
    message.value = exited ? job.end->si_status : -1;
    message.signal = exited ? 0 : job.end->si_status;
    SendWire(socket_, message);
  }

  // Waits for dead orphans. With no job there is nobody that a living one could belong to.
  void Bury(const std::vector<ProcessInfo>& mine) {
    std::set<pid_t> leaders;
    for (const auto& [id, job] : jobs_) leaders.insert(job.leader);
    orphans_ = false;
    for (const ProcessInfo& info : mine) {
      if (jobs_.empty() && info.state != 'Z') {
        kill(info.pid, SIGKILL);
        orphans_ = true;
      }
      if (info.parent == self_ && !leaders.contains(info.pid) && info.state == 'Z') {
        waitpid(info.pid, nullptr, WNOHANG);
      }
    }
  }

  // Halts first, until a scan finds no new process, then kills: what forks as fast as it is
  // killed would go on for ever otherwise.
  void EndEverything() {
    for (const auto& [id, job] : jobs_) kill(-job.leader, SIGKILL);
    for (milliseconds pause{1};; pause = std::min(pause * 2, kScan * 10)) {
      std::set<pid_t> halted;
      for (int pass = 0; pass < kMaxStopPasses; ++pass) {
        bool found_new = false;
        for (const ProcessInfo& info : DescendantsOf(self_)) {
          if (info.state == 'Z' || !halted.insert(info.pid).second) continue;
          kill(info.pid, SIGSTOP);
          found_new = true;
        }
        if (!found_new) break;
      }
      for (const pid_t pid : halted) kill(pid, SIGKILL);
      pid_t buried;
      do {
        buried = waitpid(-1, nullptr, WNOHANG);
      } while (buried > 0);
      if (buried < 0 && errno == ECHILD) return;  // No child: no descendant either.
      // A process in an endless system call is waited for, but not by scanning all the time.
      usleep(static_cast<useconds_t>(pause.count() * 1000));
    }
  }

  const int socket_;
  const std::string tag_;
  const mode_t program_umask_;
  const pid_t self_;
  std::map<int64_t, ChildJob> jobs_;
  bool orphans_ = false;  // A child ended that may be nobody's leader.
  steady_clock::time_point next_orphan_scan_{};
  ProcessRecord record_;
  steady_clock::time_point next_record_{};
};

// Keeps only the socket and the lock, and nothing of the parent's terminal.
void Detach(const SupervisorSetup& setup) {
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NAME, kSupervisorName);
  for (const int ignored : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGUSR1, SIGUSR2}) {
    signal(ignored, SIG_IGN);
  }
  signal(SIGCHLD, SIG_DFL);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (nothing >= 0) dup2(nothing, standard);
  }
  unsigned next = 3;
  const std::set<unsigned> kept = {static_cast<unsigned>(setup.socket),
                                   static_cast<unsigned>(setup.lock)};
  for (const unsigned keep : kept) {
    if (keep > next) close_range(next, keep - 1, 0);
    next = std::max(next, keep + 1);
  }
  close_range(next, ~0U, 0);
}

}  // namespace

void RunSupervisor(const SupervisorSetup& setup) {
  Detach(setup);
  Loop(setup).Run();
}

}  // namespace jizi::tuner
