// Workers against a real service: how a sweep runs, and how it is stopped.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cmath>
#include <mutex>
#include <thread>

#include "tests/workers/service_testing.h"
#include "tests/workers/told_executor.h"
#include "tuner-service/workers/slot.h"

namespace jizi::tuner {
namespace {

using testing::HasSubstr;

TEST_F(WorkerTest, ASweepRunsToItsEndInSlots) {
  CreateStudy(5);
  RunAll(
      Options("echo \"args $@\"; echo jizi step=1 accuracy=0.5 total_steps=2\n"
              "echo 'jizi {\"step\": 2, \"accuracy\": 0.75, \"loss\": NaN}'",
              2));
  EXPECT_EQ(Count(v1::TRIAL_STATE_COMPLETED), 5);
  const v1::Trial trial = Trial(3);
  ASSERT_EQ(trial.measurements_size(), 2);
  EXPECT_EQ(trial.measurements(1).metrics().at("accuracy"), 0.75);
  EXPECT_TRUE(std::isnan(trial.measurements(1).metrics().at("loss")));
  EXPECT_EQ(trial.total_steps(), 2);
  EXPECT_THAT(File(3, "stdout.log"), HasSubstr("args --lr=0."));
  EXPECT_THAT(File(3, "params.json"), HasSubstr("{\"lr\": 0."));
}

TEST_F(WorkerTest, TheProgramGetsTheContractsEnvironment) {
  CreateStudy(1, false);
  WorkerOptions options = Options("env; pwd");
  options.launch.threads = 3;
  RunAll(options);
  const std::string text = "\n" + File(1, "stdout.log");
  const std::string folder = folder_ / "trials/000001";
  for (const std::string& entry :
       {std::string("JIZI_ENDPOINT=") + address_, std::string("JIZI_STUDY=study"),
        std::string("JIZI_WORKER=worker/"), std::string("JIZI_TRIAL=1\n"),
        std::string("JIZI_ATTEMPT=1\n"), std::string("JIZI_PARAMS={\"lr\": 0."),
        "JIZI_CHECKPOINT_DIR=" + folder + "/checkpoints\n",
        "JIZI_OUTBOX=" + folder_.path() + "/trials/outbox/worker_",
        std::string("JIZI_ONE_TRIAL=1\n"), std::string("OMP_NUM_THREADS=3\n"), folder + "\n"}) {
    EXPECT_THAT(text, HasSubstr("\n" + entry));
  }
  const size_t lease = text.find("\nJIZI_LEASE=");
  ASSERT_NE(lease, std::string::npos);
  EXPECT_EQ(text.find('\n', lease + 1) - lease, strlen("\nJIZI_LEASE=") + 32);
  EXPECT_THAT(text, testing::Not(HasSubstr("\nWORLD_SIZE=")));
}

TEST_F(WorkerTest, FailuresCarryTheirReason) {
  CreateStudy(3);
  RunAll(Options("echo 'it broke' >&2\nexit 3"));
  EXPECT_EQ(Count(v1::TRIAL_STATE_FAILED), 3);
  EXPECT_THAT(Trial(1).end_why(), testing::StartsWith("exit code 3: it broke\nit broke"));
}

TEST_F(WorkerTest, AMissingProgramFailsEachTrialWithItsReason) {
  CreateStudy(3);
  WorkerOptions options = Options("");
  options.launch.command = {"--lr=0.1"};
  RunAll(options);
  EXPECT_EQ(Count(v1::TRIAL_STATE_FAILED), 3);
  EXPECT_THAT(Trial(2).end_why(), HasSubstr("'--lr=0.1'"));
}

TEST_F(WorkerTest, AReasonThatIsNoUtf8StillReachesTheService) {
  CreateStudy(2);
  WorkerOptions options = Options("");
  options.launch.command = {"/no/such/caf\xE9"};
  RunAll(options);
  EXPECT_EQ(Count(v1::TRIAL_STATE_FAILED), 2);
  EXPECT_THAT(Trial(2).end_why(), HasSubstr("/no/such/caf?"));
}

TEST_F(WorkerTest, TheTimeLimitEndsAnAttemptAndSaysSo) {
  CreateStudy(1);
  WorkerOptions options = Options("trap '' TERM; while :; do sleep 0.05; done");
  options.launch.time_limit = 0.3s;
  options.launch.grace = 0.1s;
  RunAll(options);
  EXPECT_EQ(Count(v1::TRIAL_STATE_FAILED), 1);
  EXPECT_THAT(Trial(1).end_why(), HasSubstr("time limit of 0.3 s"));
}

TEST_F(WorkerTest, StopSignalsFromTheCallersThread) {
  CreateStudy(1);
  const WorkerOptions options = Options("");
  ToldExecutor executor;
  Slot slot(options, *client_, executor, {.index = 0, .worker = "worker/told/0"});
  std::thread thread([&] { EXPECT_TRUE(slot.Run().ok()); });
  EXPECT_TRUE(Eventually([&] { return executor.started.load(); }));
  Close();  // Whatever Run is waiting for.
  slot.Stop(Worker::StopMode::kGently);
  slot.Stop(Worker::StopMode::kKill);
  {
    const std::lock_guard lock(executor.told.mutex);
    EXPECT_EQ(executor.told.graces.back(), 0);  // Told when Stop has returned.
  }
  JobEnd end;
  end.signal = SIGKILL;
  executor.told.events.on_end(end);
  thread.join();
}

TEST_F(WorkerTest, NoMetricIsFailedAndANanIsInfeasible) {
  CreateStudy(2);
  RunAll(Options("[ $JIZI_TRIAL = 1 ] || echo jizi accuracy=nan"));
  EXPECT_EQ(Trial(1).state(), v1::TRIAL_STATE_FAILED);
  EXPECT_EQ(Trial(2).state(), v1::TRIAL_STATE_INFEASIBLE);
}

TEST_F(WorkerTest, StopGentlyReleasesWhatIsUnfinished) {
  CreateStudy(2);
  auto worker =
      Start(Options("trap 'exit 0' TERM; echo jizi accuracy=0.1; "
                    "while :; do sleep 0.02; done",
                    2));
  ASSERT_TRUE(Eventually([&] {
    int reported = 0;
    for (const v1::Trial& trial : Trials()) reported += trial.measurement_count() > 0 ? 1 : 0;
    return reported == 2;
  }));
  worker->Stop(Worker::StopMode::kGently);
  ASSERT_TRUE(worker->WaitFor(60s));
  EXPECT_TRUE(worker->Wait().ok());
  EXPECT_EQ(Count(v1::TRIAL_STATE_QUEUED), 2);
  EXPECT_EQ(CountWith(mark_), 0);
}

TEST_F(WorkerTest, StopKillDoesNotWaitForGrace) {
  CreateStudy(1);
  WorkerOptions options =
      Options("trap '' TERM; echo jizi accuracy=0; while :; do sleep 0.02; done");
  options.launch.grace = 1000s;
  auto worker = Start(options);
  ASSERT_TRUE(Eventually([&] { return !Trials().empty() && Trial(1).measurement_count() == 1; }));
  worker->Stop(Worker::StopMode::kGently);
  EXPECT_FALSE(worker->WaitFor(100ms));
  worker->Stop(Worker::StopMode::kKill);
  ASSERT_TRUE(worker->WaitFor(60s));
  EXPECT_EQ(Count(v1::TRIAL_STATE_QUEUED), 1);
}

TEST_F(WorkerTest, AStoppedStudyEndsAPrintingProgram) {
  CreateStudy(1);
  auto worker =
      Start(Options("trap 'exit 9' TERM; while :; do echo jizi accuracy=0.1; sleep 0.1; done"));
  ASSERT_TRUE(Eventually([&] { return !Trials().empty() && Trial(1).measurement_count() > 0; }));
  v1::SetStudyStateRequest stop;
  stop.set_study("study");
  stop.set_state(v1::STUDY_STATE_STOPPED);
  Must(&Stub::SetStudyState, stop);
  ASSERT_TRUE(worker->WaitFor(60s));
  EXPECT_TRUE(worker->Wait().ok()) << worker->Wait();
  EXPECT_EQ(Trial(1).state(), v1::TRIAL_STATE_STOPPED);  // Whatever its exit code.
}

TEST_F(WorkerTest, Contract25ValuesNeverMeetAShell) {
  CreateStudy(1, false);
  v1::EnqueueTrialRequest enqueue;
  enqueue.set_study("study");
  enqueue.set_request_id(RandomHex64());
  (*enqueue.mutable_params())["lr"].set_float_value(0.5);
  Must(&Stub::EnqueueTrial, enqueue);
  WorkerOptions options = Options("printf '%s|' \"$@\"");
  options.launch.command.push_back("$(touch " + folder_.path() + "/owned); a\nb");
  RunAll(options);
  EXPECT_EQ(File(1, "stdout.log"), "--lr=0.5|$(touch " + folder_.path() + "/owned); a\nb|");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "owned"));
}

}  // namespace
}  // namespace jizi::tuner
