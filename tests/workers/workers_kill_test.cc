// Contract 17: whoever is killed or stopped, no process is left.

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "tests/workers/supervisor_testing.h"
#include "tuner-service/workers/process_record.h"
#include "tuner-service/workers/recovery.h"

namespace jizi::tuner {
namespace {

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
                      "(env -i setsid /bin/sh -c 'echo hidden $$; exec /bin/sleep 1000' &)\n"
                      "echo leader $$; sleep 1000"),
                nullptr);
      if (!started.ok()) _exit(1);
      for (;;) pause();
    }
    for (const char* name : {"plain", "double", "hidden", "leader"}) PidOf(name);
    owner.supervisor = atoi(ReadAll(folder_ / "lock").c_str());
    return owner;
  }
  void ExpectNothingLeft() {
    EXPECT_TRUE(Eventually([&] { return CountWith(mark_) == 0; }));
    for (const char* name : {"plain", "double", "hidden", "leader"}) {
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

// The leader has its parent-death signal; what it has left only the next owner ends: by its
// environment, and by the record what has shed that.
TEST_F(Contract17Kill, NineOfBoth) {
  const Owner owner = ForkOwner();
  const int hidden = PidOf("hidden");
  ASSERT_TRUE(Eventually([&] {
    return ReadAll(folder_ / "lock").find("\n" + std::to_string(hidden) + " ") != std::string::npos;
  }));
  // The owner must not see the end of its supervisor, so it has to stand still first.
  kill(owner.pid, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(owner.pid, &status, WUNTRACED), owner.pid);
  ASSERT_TRUE(WIFSTOPPED(status));
  kill(owner.supervisor, SIGKILL);
  kill(owner.pid, SIGKILL);
  waitpid(owner.pid, nullptr, 0);
  const int leader = PidOf("leader");
  EXPECT_TRUE(Eventually([&] { return !IsAlive(leader); }));
  EXPECT_TRUE(IsAlive(hidden));
  auto next = Fork();  // The lock died with its holder.
  EXPECT_FALSE(IsAlive(hidden));
  const auto ended = EndProcessesWith({mark_}, 60s);  // What was not yet recorded.
  ASSERT_TRUE(ended.ok()) << ended.status();
  ExpectNothingLeft();
}

TEST_F(Contract17Kill, ARecordOfAnotherBootOrProcessEndsNobody) {
  const std::string own = std::to_string(getpid());
  const auto info = ProcessOf(getpid());
  ASSERT_TRUE(info.has_value());
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  const auto started = std::to_string(ProcessOf(child)->started);
  const std::string number = std::to_string(child);
  std::ofstream(folder_ / "lock") << own << "\nboot another ns\n"
                                  << number << " " << started << "\n";
  EXPECT_EQ(*EndRecordedProcesses(folder_ / "lock", 1s), 0);
  {
    const int lock = open((folder_ / "lock").c_str(), O_RDWR | O_TRUNC | O_CLOEXEC);
    ProcessInfo other = *ProcessOf(child);
    ++other.started;  // Its pid was used again.
    ProcessRecord(lock).Write({other});
    EXPECT_EQ(*EndRecordedProcesses(folder_ / "lock", 1s), 0);
    EXPECT_TRUE(IsAlive(child));
    ProcessRecord(lock).Write({*ProcessOf(child)});
    close(lock);
  }
  EXPECT_EQ(*EndRecordedProcesses(folder_ / "lock", 10s), 1);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST_F(Contract17Kill, AStoppedSupervisorIsContinued) {
  ForkOptions options;
  options.look_every = 20ms;
  auto supervisor = Fork(options);
  Ended ended;
  const auto id = Start(*supervisor, Shell("echo up $$; sleep 1000"), ended.Sink());
  ASSERT_TRUE(id.ok());
  PidOf("up");
  kill(atoi(ReadAll(folder_ / "lock").c_str()), SIGSTOP);
  supervisor->End(*id, 60s);
  ASSERT_TRUE(ended.Wait());
  EXPECT_FALSE(ended.end->lost);
}

// A tracer holds it, so that SIGCONT does nothing.
TEST_F(Contract17Kill, OneThatStaysStoppedIsKilled) {
  ForkOptions options;
  options.look_every = 10ms;
  auto supervisor = Fork(options);
  Ended ended;
  ASSERT_TRUE(Start(*supervisor, Shell("echo up $$; sleep 1000"), ended.Sink()).ok());
  PidOf("up");
  const int pid = atoi(ReadAll(folder_ / "lock").c_str());
  if (ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) != 0) GTEST_SKIP() << "nobody may trace here";
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr), 0);
  ASSERT_TRUE(ended.Wait());
  EXPECT_TRUE(ended.end->lost);
  EXPECT_EQ(DetailOf(Start(*supervisor, Shell("true"), nullptr).status()).code, "SUPERVISOR_GONE");
}

TEST_F(Contract17Kill, ANewOwnerContinuesAStoppedSupervisor) {
  const Owner owner = ForkOwner();
  kill(owner.supervisor, SIGSTOP);
  kill(owner.pid, SIGKILL);
  waitpid(owner.pid, nullptr, 0);
  auto next = Fork();
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
