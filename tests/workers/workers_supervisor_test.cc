// Contract 17: whatever a program does, no process of it is left.

#include <signal.h>
#include <sys/stat.h>

#include <thread>

#include "tests/workers/supervisor_testing.h"

namespace jizi::tuner {
namespace {

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

}  // namespace
}  // namespace jizi::tuner
