// What programs print, on its way to a real service: nothing is lost that need not be.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "tests/workers/service_testing.h"
#include "tests/workers/told_executor.h"
#include "tuner-service/workers/slot.h"

namespace jizi::tuner {
namespace {

using testing::HasSubstr;

class PrintedTest : public WorkerTest {
 protected:
  std::mutex mutex_;
  std::string notes_;

  WorkerOptions Noting(const std::string& script) {
    WorkerOptions options = Options(script);
    options.note = [this](const std::string& note) {
      const std::lock_guard lock(mutex_);
      notes_ += note + "\n";
    };
    return options;
  }
  std::string Notes() {
    const std::lock_guard lock(mutex_);
    return notes_;
  }
};

TEST_F(PrintedTest, AProgramThatPrintsFasterThanItIsTakenLosesNothing) {
  CreateStudy(1);
  // 24 MB in a moment: more than is kept of lines.
  RunAll(
      Noting("awk 'BEGIN { for (i = 1; i <= 12000; ++i) "
             "printf \"jizi step=%d accuracy=%d.5 %2000s\\n\", i, i, \"\" }'"));
  EXPECT_EQ(Trial(1).state(), v1::TRIAL_STATE_COMPLETED) << Trial(1).end_why();
  EXPECT_EQ(Trial(1).measurement_count(), 12000);
  EXPECT_EQ(Trial(1).objective(), 12000.5);
  EXPECT_EQ(Notes(), "");
}

// The listener's side alone, as fast as it gets: a thread that prints without a program.
TEST_F(PrintedTest, TheQueueOfLinesIsBoundedAndHoldsTheProgram) {
  CreateStudy(1);
  const WorkerOptions options = Noting("");
  ToldExecutor executor;
  Slot slot(options, *client_, executor, {.index = 0, .worker = "worker/told/0"});
  std::thread thread([&] { EXPECT_TRUE(slot.Run().ok()); });
  EXPECT_TRUE(Eventually([&] { return executor.started.load(); }));
  const std::string padding(4000, ' ');
  constexpr int kLines = 10'000;  // 40 MB.
  int held = 0;
  size_t since = 0, most = 0;
  for (int i = 1; i <= kLines; ++i) {
    const int read_on = executor.told.read_on;
    const std::string line =
        "jizi step=" + std::to_string(i) + " accuracy=" + std::to_string(i) + padding;
    since += line.size();
    most = std::max(most, since);
    if (executor.told.events.on_line(line)) continue;
    ++held;
    EXPECT_TRUE(Eventually([&] { return executor.told.read_on > read_on; })) << i;
    since = 0;
  }
  EXPECT_GT(held, 0);
  JobEnd end;
  end.exit_code = 0;
  executor.told.events.on_end(end);
  thread.join();
  EXPECT_EQ(Trial(1).measurement_count(), kLines);
  EXPECT_EQ(Trial(1).objective(), kLines);
  EXPECT_EQ(Notes(), "");
}

TEST_F(PrintedTest, OneThatPrintsWithoutEndKeepsToItsTimeLimit) {
  CreateStudy(1);
  WorkerOptions options = Noting("trap 'exit 0' TERM; yes 'jizi accuracy=0.5'");
  options.launch.time_limit = 1s;
  options.launch.grace = 0.5s;
  RunAll(options);
  EXPECT_EQ(Trial(1).state(), v1::TRIAL_STATE_FAILED);
  EXPECT_THAT(Trial(1).end_why(), HasSubstr("time limit of 1 s"));
}

TEST_F(PrintedTest, OneThatPrintsWithoutEndIsStopped) {
  CreateStudy(1);
  WorkerOptions options = Noting("trap '' TERM; yes 'jizi accuracy=0.5'");
  options.launch.grace = 0.2s;
  auto worker = Start(options);
  ASSERT_TRUE(Eventually([&] { return !Trials().empty() && Trial(1).measurement_count() > 0; }));
  worker->Stop(Worker::StopMode::kGently);
  ASSERT_TRUE(worker->WaitFor(60s));
  EXPECT_TRUE(worker->Wait().ok()) << worker->Wait();
  EXPECT_EQ(Trial(1).state(), v1::TRIAL_STATE_QUEUED);
}

TEST_F(PrintedTest, WhatIsForPeopleOnlyHoldsNobodyUp) {
  CreateStudy(1);
  const std::string go = folder_ / "go";
  // What follows would fill every queue, and nobody takes it.
  auto worker = Start(Noting("while [ ! -e " + go + " ]; do sleep 0.02; done; sleep 1.5; " +
                             "yes 'jizi accuracy=0.5' | head -c 30000000; touch " + go + "2"));
  ASSERT_TRUE(Eventually([&] { return CountWith(mark_) > 0; }));
  v1::AttachRequest attach;
  attach.mutable_lease()->set_study("study");
  attach.set_worker(Trial(1).worker());
  *attach.mutable_lease() = Must(&Stub::Attach, attach).held(0).lease();
  attach.mutable_capabilities()->set_stop(true);
  Must(&Stub::Attach, attach);
  std::ofstream(go) << "";
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(go + "2"); }));
  ASSERT_TRUE(worker->WaitFor(60s));
  EXPECT_EQ(Trial(1).measurement_count(), 0);
}

TEST_F(PrintedTest, OneBadNameLosesThatValueAlone) {
  CreateStudy(1);
  RunAll(
      Noting("echo jizi step=1 accuracy=0.5; "
             "printf 'jizi step=2 accuracy=0.9 %0300d=1\\n' 7; "
             "printf 'jizi {\"step\": 3, \"a\\\\u0001b\": 3, \"accuracy\": 0.8}\\n'; "
             "echo jizi step=4 accuracy=0.7"));
  EXPECT_EQ(Trial(1).state(), v1::TRIAL_STATE_COMPLETED);
  EXPECT_EQ(Trial(1).measurement_count(), 4);
  EXPECT_EQ(Trial(1).objective(), 0.7);
  EXPECT_THAT(Notes(), HasSubstr("has 300 bytes; at most 256 fit"));
}

TEST_F(PrintedTest, TheFirstThatIsLeftOutIsToldAtOnceAndTheirNumberAtTheEnd) {
  CreateStudy(1);
  RunAll(
      Noting("echo jizi step=1 accuracy=0.7; echo jizi step=2 accuracy=high; "
             "echo jizi step=5 accuracy=0.8 note=hello; echo 'jizi {'"));
  EXPECT_EQ(Trial(1).objective(), 0.8);
  EXPECT_THAT(Notes(), testing::StartsWith("trial 1: a printed value was left out: 'accuracy' is "
                                           "'high', which is no number"));
  EXPECT_THAT(Notes(), HasSubstr("\ntrial 1: 3 printed values were left out (first: 'accuracy' is "
                                 "'high', which is no number)\n"));
}

}  // namespace
}  // namespace jizi::tuner
