// What every Executor promises (executor.h), and what the local one adds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <mutex>
#include <optional>
#include <set>

#include "tests/workers/temp_folder.h"
#include "tuner-service/workers/local_executor.h"
#include "tuner-service/workers/random_hex.h"

namespace jizi::tuner {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class ExecutorTest : public testing::Test {
 protected:
  const std::string mark_ = "JIZI_TEST_MARK=" + RandomHex64();
  TempFolder folder_;
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<LocalExecutor> executor_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
  size_t enough_ = 1u << 30;  // Lines after which the listener has enough for now.
  std::optional<JobEnd> end_;

  void Make(LocalExecutorOptions options = {}) {
    if (!supervisor_) {
      auto supervisor = Supervisor::Fork(folder_ / "lock", 20s);
      ASSERT_TRUE(supervisor.ok()) << supervisor.status();
      supervisor_ = *std::move(supervisor);
    }
    auto executor = LocalExecutor::Create(std::move(options), *supervisor_);
    ASSERT_TRUE(executor.ok()) << executor.status();
    executor_ = *std::move(executor);
  }
  void TearDown() override {
    executor_.reset();
    EXPECT_TRUE(Eventually([&] { return CountWith(mark_) == 0; })) << "a process is left";
  }

  StatusOr<std::unique_ptr<Job>> Start(const std::string& script, int slot = 0) {
    end_.reset();
    JobSpec spec;
    spec.slot = slot;
    spec.folder = folder_.path();
    spec.argv = {"/bin/sh", "-c", script};
    spec.environment = {{"PATH", getenv("PATH")},
                        {"JIZI_TEST_MARK", mark_.substr(mark_.find('=') + 1)}};
    JobEvents events;
    events.on_line = [this](std::string line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(std::move(line));
      return lines_.size() % enough_ != 0;
    };
    events.on_end = [this](JobEnd end) {
      const std::lock_guard lock(mutex_);
      EXPECT_FALSE(end_.has_value());
      end_ = std::move(end);
    };
    return executor_->Start(spec, std::move(events));
  }
  JobEnd Wait() {
    EXPECT_TRUE(Eventually([this] {
      const std::lock_guard lock(mutex_);
      return end_.has_value();
    }));
    const std::lock_guard lock(mutex_);
    return end_.value_or(JobEnd{});
  }
  JobEnd Run(const std::string& script, int slot = 0) {
    auto job = Start(script, slot);
    EXPECT_TRUE(job.ok()) << job.status();
    return Wait();
  }
  std::string Out(const std::string& name = "stdout.log") const { return ReadAll(folder_ / name); }
};

TEST_F(ExecutorTest, KeepsOutputLinesExitCodeAndTheTailOfStderr) {
  Make();
  const JobEnd end = Run("echo hello; echo jizi a=1; seq 100 >&2; printf 'jizi b=2'; exit 3");
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_FALSE(end.succeeded());
  EXPECT_THAT(end.error_tail, testing::StartsWith("81\n"));
  EXPECT_THAT(end.error_tail, testing::EndsWith("99\n100"));
  EXPECT_EQ(Out(), "hello\njizi a=1\njizi b=2");
  EXPECT_THAT(lines_, testing::ElementsAre("jizi a=1", "jizi b=2"));
  EXPECT_EQ(Run("kill -9 $$").signal, SIGKILL);
}

TEST_F(ExecutorTest, GigabytesCostBoundedDisk) {
  LocalExecutorOptions options;
  options.output_cap_bytes = 64 << 10;
  Make(options);
  EXPECT_TRUE(Run("yes 0123456789abcdef | head -c 100000000; echo; echo last").succeeded());
  EXPECT_LE(Out().size(), (64u << 10) + 200);
  EXPECT_THAT(Out(), testing::EndsWith("last\n"));
  EXPECT_THAT(Out(), HasSubstr("bytes of output dropped here"));
}

TEST_F(ExecutorTest, AListenerThatHasEnoughHoldsTheProgramAndLosesNothing) {
  Make();
  enough_ = 1000;
  constexpr size_t kLines = 200'000;
  auto job = Start("seq -f 'jizi a=%.0f' " + std::to_string(kLines) + "; touch printed");
  ASSERT_TRUE(job.ok());
  size_t told = 0;
  const auto settled = [&] {  // Nothing more comes by itself.
    const std::lock_guard lock(mutex_);
    return std::exchange(told, lines_.size()) == lines_.size() && told > 0;
  };
  ASSERT_TRUE(Eventually(settled));
  EXPECT_LT(told, 20'000U);  // 64 KiB of the chunk, and no more than that.
  EXPECT_FALSE(std::filesystem::exists(folder_ / "printed"));
  ASSERT_TRUE(Eventually([&] {
    (*job)->ReadOn();
    const std::lock_guard lock(mutex_);
    return end_.has_value();
  }));
  ASSERT_EQ(lines_.size(), kLines);
  EXPECT_EQ(lines_.back(), "jizi a=200000");
}

TEST_F(ExecutorTest, AHeldProgramIsReadOnOnceItIsTold) {
  Make();
  enough_ = 1;
  // It ends only after it has written more than a pipe takes.
  auto job = Start(
      "trap 'seq -f \"jizi b=%.0f\" 100000; exit 6' TERM; echo jizi up=1; "
      "while :; do sleep 0.02; done");
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(Eventually([this] {
    const std::lock_guard lock(mutex_);
    return !lines_.empty();
  }));
  (*job)->End(60s);
  EXPECT_EQ(Wait().exit_code, 6);
  EXPECT_EQ(lines_.back(), "jizi b=100000");
}

TEST_F(ExecutorTest, AProgramMayCloseItsStreams) {
  Make();
  EXPECT_EQ(Run("exec >&- 2>&-; sleep 0.1; exit 4").exit_code, 4);
}

TEST_F(ExecutorTest, AnEscapedWriterDoesNotHoldTheEndUp) {
  Make();
  EXPECT_TRUE(
      Run("(env -i setsid /bin/sh -c 'while :; do echo x; done' &) ; sleep 0.1").succeeded());
}

TEST_F(ExecutorTest, EndGivesGraceAndDiscardTellsNothing) {
  Make();
  auto job = Start("trap 'exit 5' TERM; echo jizi up=1; while :; do sleep 0.02; done");
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(Eventually([this] {
    const std::lock_guard lock(mutex_);
    return !lines_.empty();
  }));
  (*job)->End(60s);
  EXPECT_EQ(Wait().exit_code, 5);
  job = Start("trap '' TERM; while :; do sleep 0.02; done");
  ASSERT_TRUE(job.ok());
  job->reset();
  EXPECT_EQ(CountWith(mark_), 0);
  EXPECT_FALSE(end_.has_value());
}

TEST_F(ExecutorTest, SwitchesFilesForAWarmProcess) {
  Make();
  std::filesystem::create_directory(folder_ / "next");
  auto job = Start("echo first; while [ ! -e go ]; do sleep 0.01; done; echo second");
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(Eventually([this] { return Out() == "first\n"; }));
  (*job)->SwitchFolder(folder_ / "next");
  ASSERT_TRUE(Eventually([this] { return std::filesystem::exists(folder_ / "next/stdout.log"); }));
  std::ofstream(folder_ / "go") << "";
  EXPECT_TRUE(Wait().succeeded());
  EXPECT_EQ(Out(), "first\n");
  EXPECT_EQ(Out("next/stdout.log"), "second\n");
}

TEST_F(ExecutorTest, SaysWhatCannotBeStarted) {
  Make();
  JobSpec spec;
  spec.folder = folder_.path();
  spec.argv = {"--lr=0.1"};
  const auto job = executor_->Start(spec, {});
  EXPECT_THAT(std::string(job.status().message()), HasSubstr("--lr=0.1"));
}

TEST_F(ExecutorTest, EachSlotItsOwnGpus) {
  LocalExecutorOptions options;
  options.slots = 2;
  options.gpus_per_slot = 2;
  Make(options);
  Run("echo $CUDA_VISIBLE_DEVICES", 1);
  EXPECT_EQ(Out(), "2,3\n");
  options.gpu_ids = std::vector<std::string>{"GPU-a", "GPU-b", "GPU-c", "GPU-d"};
  Make(options);
  Run("echo $CUDA_VISIBLE_DEVICES", 0);
  EXPECT_EQ(Out(), "2,3\nGPU-a,GPU-b\n");
  options.gpu_ids->pop_back();
  EXPECT_EQ(DetailOf(LocalExecutor::Create(options, *supervisor_).status()).code, "TOO_FEW_GPUS");
}

TEST_F(ExecutorTest, NoDescriptorsAreTheHostsFault) {
  Make();
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 3;
  setrlimit(RLIMIT_NOFILE, &none);
  const auto refused = Start("true");
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(refused.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(DetailOf(refused.status()).code, "HOST_FAULT");
  EXPECT_THAT(DetailOf(refused.status()).mend, HasSubstr("ulimit -n"));
  EXPECT_TRUE(Run("true").succeeded());
}

TEST_F(ExecutorTest, AKilledSupervisorIsNoEndOfTheProgramsOwn) {
  Make();
  auto job = Start("echo jizi up=1; sleep 1000");
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(Eventually([this] {
    const std::lock_guard lock(mutex_);
    return !lines_.empty();
  }));
  kill(atoi(ReadAll(folder_ / "lock").c_str()), SIGKILL);
  EXPECT_EQ(DetailOf(Wait().lost).code, "SUPERVISOR_GONE");
  EXPECT_EQ(Start("true").status().code(), StatusCode::kUnavailable);
}

class Contract20 : public ExecutorTest {
 protected:
  // Short: where a rank outlives the others, and the grace is waited for.
  void MakeTwo(std::chrono::duration<double> grace = 20s) {
    LocalExecutorOptions options;
    options.ranks = 2;
    options.grace = grace;
    Make(options);
  }
};

TEST_F(Contract20, RanksGetTorchrunsVariables) {
  MakeTwo();
  ASSERT_TRUE(Run("echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR; "
                  "echo $MASTER_PORT > port.$RANK")
                  .succeeded());
  EXPECT_EQ(Out("stdout.log"), "0/2 0/2 0 127.0.0.1\n");
  EXPECT_EQ(Out("stdout.1.log"), "1/2 1/2 0 127.0.0.1\n");
  EXPECT_EQ(Out("port.0"), Out("port.1"));
  EXPECT_GT(atoi(Out("port.0").c_str()), 1023);
}

TEST_F(Contract20, TheEndOfOneRankEndsAll) {
  MakeTwo();
  const JobEnd failed = Run("[ $RANK = 0 ] && sleep 1000; echo broken >&2; exit 3");
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_EQ(failed.rank, 1);
  EXPECT_EQ(failed.error_tail, "broken");
  EXPECT_TRUE(Run("[ $RANK = 0 ] && sleep 0.05; exit 0").succeeded());
  MakeTwo(0.2s);
  EXPECT_TRUE(Run("[ $RANK = 1 ] && sleep 1000; exit 0").succeeded());  // After the grace.
}

TEST_F(Contract20, OnlyRankZeroReports) {
  MakeTwo();
  Run("echo jizi rank=$RANK");
  EXPECT_THAT(lines_, testing::ElementsAre("jizi rank=0"));
}

TEST_F(Contract20, AClashOfMasterPortIsRetriedUnseen) {
  MakeTwo(0.2s);
  const JobEnd end =
      Run("echo $MASTER_PORT >> ports.$RANK; [ $RANK = 1 ] && sleep 1000; "
          "[ $(wc -l < ports.0) -lt 3 ] && { echo 'bind: Address already in use' >&2; exit 1; }; "
          "exit 0");
  EXPECT_TRUE(end.succeeded());
  const std::string ports = Out("ports.0");
  EXPECT_EQ(std::count(ports.begin(), ports.end(), '\n'), 3);
  const JobEnd hopeless = Run("echo 'Address already in use' >&2; exit 1");
  EXPECT_EQ(hopeless.exit_code, 1);  // After three more tries.
}

}  // namespace
}  // namespace jizi::tuner
