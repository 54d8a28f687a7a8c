// Contract 17: whatever a program does and whoever is killed, no process is left.

#include "tuner-service/workers/supervisor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "tests/workers/temp_folder.h"
#include "tuner-service/workers/random_hex.h"
#include "tuner-service/workers/recovery.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

class Contract17 : public testing::Test {
 protected:
  // Every process of this test carries it, unless it sheds its environment.
  const std::string mark_ = "JIZI_TEST_MARK=" + RandomHex64();
  TempFolder folder_;

  void TearDown() override {
    EXPECT_TRUE(Eventually([&] { return CountWith(mark_) == 0; })) << "a process is left";
  }

  std::unique_ptr<Supervisor> Fork(const ForkOptions& options = {}) {
    auto supervisor = Supervisor::Fork(folder_ / "lock", 20s, options);
    EXPECT_TRUE(supervisor.ok()) << supervisor.status();
    return *std::move(supervisor);
  }

  ProcessSpec Spec(std::vector<std::string> argv) const {
    ProcessSpec spec;
    spec.argv = std::move(argv);
    spec.environment = {{"PATH", getenv("PATH")},
                        {mark_.substr(0, mark_.find('=')), mark_.substr(mark_.find('=') + 1)}};
    spec.folder = folder_.path();
    return spec;
  }
  ProcessSpec Shell(const std::string& text) const { return Spec({"/bin/sh", "-c", text}); }

  // Starts with its output into the file `out`.
  StatusOr<Supervisor::ProcessId> Start(Supervisor& supervisor, ProcessSpec spec,
                                        std::function<void(ProcessEnd)> on_end) const {
    const int out =
        open((folder_ / "out").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    spec.stdout_fd = spec.stderr_fd = out;
    auto started = supervisor.Start(spec, std::move(on_end));
    close(out);
    return started;
  }

  std::string Out() const { return ReadAll(folder_ / "out"); }
  // Waits for a line "name <pid>" in the output.
  int PidOf(const std::string& name) const {
    int pid = 0;
    EXPECT_TRUE(Eventually([&] {
      const std::string text = Out();
      const size_t at = text.find(name + " ");
      if (at == std::string::npos || text.find('\n', at) == std::string::npos) return false;
      pid = atoi(text.c_str() + at + name.size() + 1);
      return pid > 0;
    })) << name;
    return pid;
  }
};

struct Ended {
  std::mutex mutex;
  std::optional<ProcessEnd> end;
  std::atomic<int> count = 0;
  std::function<void(ProcessEnd)> Sink() {
    return [this](ProcessEnd told) {
      const std::lock_guard lock(mutex);
      end = told;
      ++count;
    };
  }
  bool Wait() {
    return Eventually([this] { return count > 0; });
  }
};

TEST_F(Contract17, TellsExitCodeAndSignalOnce) {
  auto supervisor = Fork();
  Ended exited, killed;
  ASSERT_TRUE(Start(*supervisor, Shell("exit 3"), exited.Sink()).ok());
  ASSERT_TRUE(Start(*supervisor, Shell("kill -9 $$"), killed.Sink()).ok());
  ASSERT_TRUE(exited.Wait() && killed.Wait());
  EXPECT_EQ(exited.end->exit_code, 3);
  EXPECT_EQ(exited.end->signal, 0);
  EXPECT_EQ(killed.end->signal, SIGKILL);
  supervisor.reset();
  EXPECT_EQ(exited.count, 1);
}

TEST_F(Contract17, SaysWhichProgramDoesNotExist) {
  auto supervisor = Fork();
  const auto started = Start(*supervisor, Spec({"--lr=0.1"}), nullptr);
  ASSERT_FALSE(started.ok());
  EXPECT_NE(started.status().message().find("--lr=0.1"), std::string::npos) << started.status();
  EXPECT_NE(started.status().message().find("No such file"), std::string::npos);
  EXPECT_NE(DetailOf(started.status()).mend.find("no program"), std::string::npos);
  EXPECT_FALSE(Start(*supervisor, Spec({folder_.path()}), nullptr).ok());  // A folder.
  ProcessSpec nowhere = Shell("true");
  nowhere.folder = folder_ / "missing";
  EXPECT_EQ(DetailOf(Start(*supervisor, nowhere, nullptr).status()).code, "HOST_FAULT");
}

TEST_F(Contract17, InheritsNoDescriptorAndReadsNothing) {
  auto supervisor = Fork();
  Ended ended;
  ASSERT_TRUE(Start(*supervisor, Shell("cat; ls /proc/self/fd | tr '\\n' ' '"), ended.Sink()).ok());
  ASSERT_TRUE(ended.Wait());
  EXPECT_EQ(Out(), "0 1 2 3 ");  // 3 is the one that ls reads the folder with.
}

TEST_F(Contract17, ProgramsGetTheMaskThatTheyWouldHaveHad) {
  const mode_t own = umask(077);
  ForkOptions options;
  options.program_umask = 023;
  Ended given, inherited;
  auto supervisor = Fork(options);
  ASSERT_TRUE(Start(*supervisor, Shell("umask"), given.Sink()).ok());
  ASSERT_TRUE(given.Wait());
  EXPECT_EQ(Out(), "0023\n");
  supervisor = nullptr;
  umask(027);
  supervisor = Fork();
  umask(own);
  ASSERT_TRUE(Start(*supervisor, Shell("umask"), inherited.Sink()).ok());
  ASSERT_TRUE(inherited.Wait());
  EXPECT_EQ(Out(), "0023\n0027\n");
}

TEST_F(Contract17, WhatStartsTooLateIsEnded) {
  ForkOptions options;
  options.start_deadline = 50ms;
  auto supervisor = Fork(options);
  const int pid = atoi(ReadAll(folder_ / "lock").c_str());
  kill(pid, SIGSTOP);
  Ended late;
  const auto started = Start(*supervisor, Shell("trap '' TERM; sleep 1000"), late.Sink());
  EXPECT_EQ(DetailOf(started.status()).code, "SUPERVISOR_SILENT");
  kill(pid, SIGCONT);
  // Behind it in turn: once this one has ended, the late one was started.
  Ended next;
  ASSERT_TRUE(Eventually([&] { return Start(*supervisor, Shell("true"), next.Sink()).ok(); }));
  ASSERT_TRUE(next.Wait());
  EXPECT_TRUE(Eventually([&] { return CountWith(mark_) == 0; }));
  EXPECT_EQ(late.count, 0);
}

TEST_F(Contract17, AStartIsAnsweredWhenTheSupervisorDies) {
  auto supervisor = Fork();
  const int pid = atoi(ReadAll(folder_ / "lock").c_str());
  kill(pid, SIGSTOP);  // The request waits unread.
  std::thread killer([pid] {
    std::this_thread::sleep_for(50ms);
    kill(pid, SIGKILL);
  });
  EXPECT_EQ(DetailOf(Start(*supervisor, Shell("true"), nullptr).status()).code, "SUPERVISOR_GONE");
  killer.join();
}

TEST_F(Contract17, LeadsASessionOfItsOwn) {
  auto supervisor = Fork();
  Ended ended;
  const auto id = Start(*supervisor, Shell("echo self $$; sleep 1000"), ended.Sink());
  ASSERT_TRUE(id.ok());
  const int pid = PidOf("self");
  EXPECT_EQ(getsid(pid), pid);
  supervisor->End(*id, 0s);
  ASSERT_TRUE(ended.Wait());
  EXPECT_FALSE(IsAlive(pid));
}

TEST_F(Contract17, TermFirstAndKillAfterGrace) {
  auto supervisor = Fork();
  Ended polite, stubborn;
  const auto a = Start(
      *supervisor, Shell("trap 'echo saved; exit 7' TERM; echo a $$; while :; do sleep 0.05; done"),
      polite.Sink());
  const auto b = Start(*supervisor, Shell("trap '' TERM; echo b $$; while :; do sleep 0.05; done"),
                       stubborn.Sink());
  ASSERT_TRUE(a.ok() && b.ok());
  PidOf("a");
  PidOf("b");
  supervisor->End(*a, 60s);
  supervisor->End(*b, 100ms);
  ASSERT_TRUE(polite.Wait() && stubborn.Wait());
  EXPECT_EQ(polite.end->exit_code, 7);
  EXPECT_NE(Out().find("saved"), std::string::npos);
  EXPECT_EQ(stubborn.end->signal, SIGKILL);
}

TEST_F(Contract17, AStoppedProcessIsEndedToo) {
  auto supervisor = Fork();
  Ended ended;
  const auto id = Start(*supervisor, Shell("echo self $$; sleep 1000"), ended.Sink());
  ASSERT_TRUE(id.ok());
  kill(PidOf("self"), SIGSTOP);
  supervisor->End(*id, 60s);
  ASSERT_TRUE(ended.Wait());
}

TEST_F(Contract17, LeftBehindChildrenEndWithTheirLeader) {
  auto supervisor = Fork();
  Ended ended;
  // In the group, in a session of its own, and a double fork that ignores SIGTERM.
  ASSERT_TRUE(Start(*supervisor,
                    Shell("sleep 1000 & echo plain $!\n"
                          "setsid sh -c 'echo session $$; exec sleep 1000' &\n"
                          "(setsid sh -c 'trap \"\" TERM; echo double $$; sleep 1000' & ) \n"
                          "while [ $(wc -l < " +
                          folder_.path() + "/out) -lt 3 ]; do sleep 0.01; done"),
                    ended.Sink())
                  .ok());
  ASSERT_TRUE(ended.Wait());
  EXPECT_EQ(ended.end->exit_code, 0);
  for (const char* name : {"plain", "session", "double"})
    EXPECT_FALSE(IsAlive(PidOf(name))) << name;
}

TEST_F(Contract17, TheGroupKeepsItsGraceWhenTheLeaderGoesFirst) {
  auto supervisor = Fork();
  Ended ended;
  const auto id = Start(*supervisor,
                        Shell("sh -c 'trap \"sleep 0.3; echo saved; exit\" TERM; echo inner $$; "
                              "while :; do sleep 0.02; done' & wait"),
                        ended.Sink());
  ASSERT_TRUE(id.ok());
  PidOf("inner");
  supervisor->End(*id, 60s);
  ASSERT_TRUE(ended.Wait());
  EXPECT_NE(Out().find("saved"), std::string::npos);
}

TEST_F(Contract17, EndingTheSupervisorEndsWhatShedEverything) {
  auto supervisor = Fork();
  Ended other;
  ASSERT_TRUE(Start(*supervisor, Shell("sleep 1000"), other.Sink()).ok());
  ASSERT_TRUE(Start(*supervisor,
                    Shell("(env -i setsid /bin/sh -c 'echo hidden $$; exec /bin/sleep 1000' &)\n"
                          "while [ ! -s out ]; do sleep 0.01; done"),
                    nullptr)
                  .ok());
  const int hidden = PidOf("hidden");
  supervisor.reset();
  EXPECT_FALSE(IsAlive(hidden));
  EXPECT_EQ(other.count, 1);
}

TEST_F(Contract17, AForkBombEnds) {
  auto supervisor = Fork();
  ASSERT_TRUE(Start(*supervisor,
                    Shell("trap '' TERM; f() { [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & }; "
                          "sleep 1000; }; echo bomb $$; f 5"),
                    nullptr)
                  .ok());
  PidOf("bomb");
  supervisor.reset();
  EXPECT_EQ(CountWith(mark_), 0);
}

// An owner of its own process, as `jizi run` is, that can be killed.
struct Owner {
  pid_t pid = 0;
  int supervisor = 0;
};

class Contract17Kill : public Contract17 {
 protected:
  Owner ForkOwner() {
    Owner owner;
    owner.pid = fork();
    if (owner.pid == 0) {
      auto supervisor = Supervisor::Fork(folder_ / "lock", 20s);
      if (!supervisor.ok()) _exit(1);
      const auto started =
          Start(**supervisor,
                Shell("trap '' TERM; sleep 1000 & echo plain $!\n"
                      "(setsid sh -c 'trap \"\" TERM; echo double $$; sleep 1000' &)\n"
                      "echo leader $$; sleep 1000"),
                nullptr);
      if (!started.ok()) _exit(1);
      for (;;) pause();
    }
    for (const char* name : {"plain", "double", "leader"}) PidOf(name);
    owner.supervisor = atoi(ReadAll(folder_ / "lock").c_str());
    return owner;
  }
  void ExpectNothingLeft() {
    EXPECT_TRUE(Eventually([&] { return CountWith(mark_) == 0; }));
    for (const char* name : {"plain", "double", "leader"}) {
      const int pid = PidOf(name);
      EXPECT_TRUE(Eventually([&] { return !IsAlive(pid); })) << name;
    }
  }
};

TEST_F(Contract17Kill, NineOfTheParent) {
  const Owner owner = ForkOwner();
  kill(owner.pid, SIGKILL);
  waitpid(owner.pid, nullptr, 0);
  ExpectNothingLeft();
  EXPECT_TRUE(Eventually([&] { return !IsAlive(owner.supervisor); }));
}

TEST_F(Contract17Kill, NineOfTheSupervisorLeavesNothingAndIsTold) {
  auto supervisor = Fork();
  Ended ended;
  ASSERT_TRUE(Start(*supervisor,
                    Shell("(setsid sh -c 'trap \"\" TERM; echo double $$; sleep 1000' &)\n"
                          "(env -i setsid /bin/sh -c 'echo hidden $$; exec /bin/sleep 1000' &)\n"
                          "echo leader $$; sleep 1000"),
                    ended.Sink())
                  .ok());
  const int pids[] = {PidOf("double"), PidOf("hidden"), PidOf("leader")};
  kill(atoi(ReadAll(folder_ / "lock").c_str()), SIGKILL);
  ASSERT_TRUE(ended.Wait());
  EXPECT_EQ(ended.end->signal, SIGKILL);
  EXPECT_TRUE(ended.end->lost);
  for (const int pid : pids) EXPECT_TRUE(Eventually([&] { return !IsAlive(pid); }));
  EXPECT_EQ(DetailOf(Start(*supervisor, Shell("true"), nullptr).status()).code, "SUPERVISOR_GONE");
}

// The leader has its parent-death signal; what it has left nobody ends but the next owner.
TEST_F(Contract17Kill, NineOfBoth) {
  const Owner owner = ForkOwner();
  kill(owner.pid,
       SIGSTOP);  // It must not see the end of its supervisor, so it has to stand still first.
  int status = 0;
  ASSERT_EQ(waitpid(owner.pid, &status, WUNTRACED), owner.pid);
  ASSERT_TRUE(WIFSTOPPED(status));
  kill(owner.supervisor, SIGKILL);
  kill(owner.pid, SIGKILL);
  waitpid(owner.pid, nullptr, 0);
  auto next = Fork();  // The lock died with its holder.
  const int leader = PidOf("leader");
  EXPECT_TRUE(Eventually([&] { return !IsAlive(leader); }));
  EXPECT_TRUE(IsAlive(PidOf("double")));
  const auto ended = EndProcessesWith({mark_}, 60s);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_GE(*ended, 2);
  ExpectNothingLeft();
}

TEST_F(Contract17Kill, ANewOwnerWaitsForTheOldOnesProcesses) {
  for (int round = 0; round < 3; ++round) {
    std::filesystem::remove(folder_ / "out");
    const Owner owner = ForkOwner();
    const int leader = PidOf("leader"), doubled = PidOf("double");
    kill(owner.pid, SIGKILL);
    waitpid(owner.pid, nullptr, 0);
    auto next = Fork();  // At once: within the 10 ms that the old one needs.
    EXPECT_FALSE(IsAlive(leader));
    EXPECT_FALSE(IsAlive(doubled));
  }
}

TEST_F(Contract17Kill, AWaitForTheLockCanBeStopped) {
  auto first = Fork();
  ForkOptions options;
  int asked = 0;
  options.stop = [&] { return ++asked == 3; };
  const auto second = Supervisor::Fork(folder_ / "lock", 1000s, options);
  EXPECT_EQ(second.status().code(), StatusCode::kCancelled);
  EXPECT_EQ(DetailOf(second.status()).code, "STOPPED");
}

TEST_F(Contract17Kill, TheLockNamesItsHolder) {
  auto first = Fork();
  const auto second = Supervisor::Fork(folder_ / "lock", 30ms);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(DetailOf(second.status()).code, "SUPERVISOR_BUSY");
  const int pid = atoi(ReadAll(folder_ / "lock").c_str());
  EXPECT_NE(second.status().message().find(std::to_string(pid)), std::string::npos);
}

}  // namespace
}  // namespace jizi::tuner
