// Workers when something around them breaks: service, study, host. (A supervisor:
// workers_gone_test.cc.)

#include <fcntl.h>
#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>
#include <atomic>

#include "tests/workers/service_testing.h"
#include "tuner-service/workers/recovery.h"

namespace jizi::tuner {
namespace {

// A file stands where the trial's folder should: as no space or no right would, for everybody.
TEST_F(WorkerTest, AFaultOfTheHostIsNoTrialsAndEndsTheWorkerOnceWhatRunsHasEnded) {
  CreateStudy(6);
  const std::string go = folder_ / "go";
  std::filesystem::create_directories(folder_ / "trials");
  std::ofstream(TrialFolder(folder_ / "trials", 2)) << "";
  auto worker =
      Start(Options("echo jizi accuracy=0.1; while [ ! -e " + go + " ]; do sleep 0.02; done", 2));
  ASSERT_TRUE(Eventually(
      [&] { return Count(v1::TRIAL_STATE_QUEUED) == 1 && Count(v1::TRIAL_STATE_RUNNING) == 1; }));
  EXPECT_FALSE(worker->WaitFor(200ms));  // One runs.
  std::ofstream(go) << "";
  ASSERT_TRUE(worker->WaitFor(60s));
  EXPECT_EQ(DetailOf(worker->Wait()).code, "HOST_FAULT") << worker->Wait();
  EXPECT_EQ(worker->Wait().code(), StatusCode::kUnavailable);
  EXPECT_NE(DetailOf(worker->Wait()).mend, "");
  EXPECT_EQ(Trial(1).state(), v1::TRIAL_STATE_COMPLETED);
  EXPECT_EQ(Trial(2).attempts(0).end(), v1::ATTEMPT_END_RELEASED);
  EXPECT_EQ(Trials().size(), 2U);
  std::filesystem::remove(TrialFolder(folder_ / "trials", 2));
  RunAll(Options("echo jizi accuracy=0.1"));
  EXPECT_EQ(Count(v1::TRIAL_STATE_COMPLETED), 6);
}

TEST_F(WorkerTest, ADeletedStudyEndsItsPrograms) {
  CreateStudy(1);
  auto worker = Start(Options("echo jizi accuracy=0.1; while :; do sleep 0.05; done"));
  ASSERT_TRUE(Eventually([&] { return !Trials().empty() && Trial(1).measurement_count() > 0; }));
  v1::DeleteStudyRequest remove;
  remove.set_study("study");
  Must(&Stub::DeleteStudy, remove);
  ASSERT_TRUE(worker->WaitFor(60s));
  EXPECT_EQ(worker->Wait().code(), StatusCode::kNotFound);
  EXPECT_EQ(CountWith(mark_), 0);
}

TEST_F(WorkerTest, TrainingGoesOnWhileTheServiceIsAway) {
  CreateStudy(1);
  auto worker = Start(Options("echo jizi step=1 accuracy=0.1; while [ ! -e " + folder_.path() +
                              "/go ]; do sleep 0.02; done; echo jizi step=2 accuracy=0.9"));
  ASSERT_TRUE(Eventually([&] { return !Trials().empty() && Trial(1).measurement_count() == 1; }));
  Close();
  std::ofstream(folder_ / "go") << "";
  ASSERT_TRUE(Eventually([&] { return CountWith(mark_) == 0; }));  // It has ended meanwhile.
  Open();
  ASSERT_TRUE(worker->WaitFor(90s));
  EXPECT_TRUE(worker->Wait().ok()) << worker->Wait();
  EXPECT_EQ(Trial(1).state(), v1::TRIAL_STATE_COMPLETED);
  EXPECT_EQ(Trial(1).measurements_size(), 2);
}

TEST_F(WorkerTest, AServiceThatStaysAwayIsAnError) {
  CreateStudy(1);
  WorkerOptions options = Options("true");
  Close();
  options.give_up = 0.3s;
  auto worker = Start(options);
  ASSERT_TRUE(worker->WaitFor(60s));
  EXPECT_EQ(worker->Wait().code(), StatusCode::kUnavailable);
}

TEST_F(WorkerTest, ADeletedStudyEndsTheWorker) {
  auto worker = Start(Options("true"));
  ASSERT_TRUE(worker->WaitFor(60s));
  EXPECT_EQ(worker->Wait().code(), StatusCode::kNotFound);
}

// What a killed `jizi run` leaves: a live attempt, a process that carries its lease, an outbox.
TEST_F(WorkerTest, RecoveryEndsLeftoversDeliversOutboxesAndRequeues) {
  CreateStudy(1);
  v1::SuggestRequest suggest;
  suggest.set_study("study");
  suggest.set_worker("run/0123456789abcdef/0");
  suggest.set_sequence(1);
  const v1::SuggestResponse answer = Must(&Stub::Suggest, suggest);
  ASSERT_EQ(answer.trials().assignments_size(), 1);
  const v1::Lease lease = answer.trials().assignments(0).lease();

  ProcessSpec spec;
  spec.argv = {"/bin/sh", "-c", "(setsid sleep 1000 &); sleep 1000"};
  spec.environment = {{"PATH", getenv("PATH")},
                      {"JIZI_LEASE", HexOf(lease.token())},
                      {"JIZI_TEST_MARK", mark_.substr(mark_.find('=') + 1)}};
  spec.folder = "/";
  spec.stdout_fd = spec.stderr_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  std::atomic<bool> ended = false;
  ASSERT_TRUE(kAll->supervisor->Start(spec, [&](ProcessEnd) { ended = true; }).ok());
  close(spec.stdout_fd);

  const std::string outbox = OutboxPath(folder_ / "trials", suggest.worker());
  std::filesystem::create_directories(folder_ / "trials/outbox");
  {
    const int file = open(outbox.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    google::protobuf::io::FileOutputStream stream(file);
    stream.SetCloseOnDelete(true);
    for (int step = 1; step <= 2; ++step) {
      v1::ReportRequest report;
      *report.mutable_lease() = lease;
      report.set_sequence(step + 4);  // A gap: what was before was never sent.
      report.add_measurements()->set_step(step);
      (*report.mutable_measurements(0)->mutable_metrics())["accuracy"] = 0.5;
      google::protobuf::util::SerializeDelimitedToZeroCopyStream(report, &stream);
    }
  }
  std::ofstream(outbox, std::ios::app) << "\x55torn";

  EXPECT_EQ(RecoverRun(*client_, "study", folder_ / "trials", "other", 30s)->requeued_trials, 0);
  EXPECT_EQ(RecoverRun(*client_, "study", folder_ / "trials", "run", 30s, [] { return true; })
                .status()
                .code(),
            StatusCode::kCancelled);
  const auto recovered = RecoverRun(*client_, "study", folder_ / "trials", "run", 30s);
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_GE(recovered->ended_processes, 1);  // The supervisor may be first with the second.
  EXPECT_EQ(recovered->delivered_reports, 2);
  EXPECT_EQ(recovered->requeued_trials, 1);
  EXPECT_EQ(CountWith(mark_), 0);
  EXPECT_TRUE(Eventually([&] { return ended.load(); }));
  EXPECT_EQ(Trial(1).state(), v1::TRIAL_STATE_QUEUED);
  EXPECT_FALSE(std::filesystem::exists(outbox));
}

}  // namespace
}  // namespace jizi::tuner
