// Workers and programs that use the helper: who holds which trial, and when.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <mutex>

#include "tests/workers/service_testing.h"

namespace jizi::tuner {
namespace {

using testing::HasSubstr;

// A helper's part, as its calls are: takes the attempt over, and what it says at the end.
class PlayedHelper : public WorkerTest {
 protected:
  v1::Lease lease_;
  std::string worker_;
  int64_t sequence_ = 0, worker_sequence_ = 0;

  void Attach(int64_t trial) {
    v1::AttachRequest attach;
    attach.mutable_lease()->set_study("study");
    worker_ = Trial(trial).worker();
    attach.set_worker(worker_);
    const v1::AttachResponse held = Must(&Stub::Attach, attach);
    ASSERT_EQ(held.held_size(), 1);
    ASSERT_EQ(held.held(0).trial().id(), trial);
    lease_ = *attach.mutable_lease() = held.held(0).lease();
    attach.mutable_capabilities()->set_stop(true);
    const v1::AttachResponse mine = Must(&Stub::Attach, attach);
    sequence_ = mine.next_sequence(0);
    worker_sequence_ = mine.next_worker_sequence();
  }
  void Complete(bool ask_next) {
    v1::CompleteRequest complete;
    *complete.mutable_lease() = lease_;
    complete.set_sequence(sequence_);
    complete.mutable_finished();
    if (ask_next) *complete.mutable_next() = Next();
    EXPECT_EQ(Must(&Stub::Complete, complete).has_next(), ask_next);
  }
  v1::SuggestRequest Next() const {
    v1::SuggestRequest next;
    next.set_study("study");
    next.set_worker(worker_);
    next.set_sequence(worker_sequence_);
    return next;
  }
  // A program that may take trial after trial, and ends as `then` says once Go was called.
  WorkerOptions Warm(const std::string& then) {
    WorkerOptions options =
        Options("echo up; while [ ! -e " + folder_.path() + "/go ]; do sleep 0.02; done; " + then);
    options.launch.command.pop_back();
    return options;
  }
  void WaitUntilUp() {
    ASSERT_TRUE(Eventually([&] { return File(1, "stdout.log").starts_with("up\n"); }));
  }
  void Go() { std::ofstream(folder_ / "go") << ""; }
};

TEST_F(PlayedHelper, Contract19ATimeLimitIsThatOfTheTrialThatIsHeld) {
  CreateStudy(2, false);
  WorkerOptions options = Warm("exit 3");
  options.launch.time_limit = 2s;
  auto worker = Start(options);
  WaitUntilUp();
  Attach(1);
  Complete(false);
  const auto over = std::chrono::steady_clock::now() + 3s;  // Trial 1 would be beyond its limit.
  ASSERT_TRUE(Eventually([&] { return std::chrono::steady_clock::now() > over; }));
  EXPECT_GT(CountWith(mark_), 0);
  Must(&Stub::Suggest, Next());
  Attach(2);
  Go();
  ASSERT_TRUE(worker->WaitFor(90s));
  EXPECT_EQ(Trial(1).state(), v1::TRIAL_STATE_COMPLETED);
  EXPECT_EQ(Trial(2).attempts_size(), 1);
  EXPECT_THAT(Trial(2).end_why(), HasSubstr("exit code 3"));
}

TEST_F(PlayedHelper, Contract19WhatTheProgramNeverBeganIsQueuedAgain) {
  CreateStudy(2, false);
  auto worker = Start(Warm("exit 0"));
  WaitUntilUp();
  Attach(1);
  Complete(true);  // Trial 2 is this process's now; but it never learns of it.
  Go();
  ASSERT_TRUE(worker->WaitFor(90s));
  EXPECT_TRUE(worker->Wait().ok()) << worker->Wait();
  const v1::Trial second = Trial(2);
  ASSERT_EQ(second.attempts_size(), 2);
  EXPECT_EQ(second.attempts(0).end(), v1::ATTEMPT_END_RELEASED);
  EXPECT_EQ(second.state(), v1::TRIAL_STATE_COMPLETED);  // By a process of its own.
}

TEST_F(PlayedHelper, Contract23PrintedReportsAreIgnoredOnceAHelperHasAttached) {
  CreateStudy(1);
  const std::string wait = "while [ ! -e " + folder_.path() + "/go ]; do sleep 0.02; done; ";
  auto worker = Start(Options("echo up; echo jizi step=1 accuracy=0.1; " + wait +
                              "echo jizi step=2 accuracy=0.2; exit 0"));
  ASSERT_TRUE(Eventually([&] { return !Trials().empty() && Trial(1).measurement_count() == 1; }));
  Attach(1);
  Go();  // The end may come before the slot has looked.
  ASSERT_TRUE(worker->WaitFor(90s));
  EXPECT_EQ(Trial(1).state(), v1::TRIAL_STATE_COMPLETED);
  EXPECT_EQ(Trial(1).measurement_count(), 1);
}

// A real program, whose output waits in its buffers, and trials that are over before anyone looks.
class WarmProgram : public WorkerTest {
 protected:
  WorkerOptions Printing() {
    WorkerOptions options = Options("");
    options.launch.command = {std::string(std::getenv("JIZI_BUILD_DIR")) + "/trial_helper_program",
                              "print", "2"};
    return options;
  }
};

TEST_F(WarmProgram, Contract19WhatEachTrialPrintsIsInItsOwnFilesHoweverShortItWas) {
  constexpr int kTrials = 25;
  CreateStudy(kTrials, false);
  RunAll(Printing());
  EXPECT_EQ(Count(v1::TRIAL_STATE_COMPLETED), kTrials);
  for (int trial = 1; trial <= kTrials; ++trial) {
    const std::string id = std::to_string(trial);
    EXPECT_EQ(File(trial, "stdout.log"), "trial " + id + " begins, ends\nthrough cout " + id +
                                             "\n" + (trial == kTrials ? "and that was all\n" : ""));
    EXPECT_THAT(File(trial, "stderr.log"), HasSubstr("on stderr " + id + "\n"));
    EXPECT_EQ(Trial(trial).worker(), Trial(1).worker());  // One process took them all.
  }
}

TEST_F(WarmProgram, EachTrialHasAFolderOfItsOwnersAloneWithItsParameters) {
  constexpr int kTrials = 5;
  CreateStudy(kTrials, false);
  const mode_t before = umask(022);
  RunAll(Printing());
  umask(before);
  for (int trial = 1; trial <= kTrials; ++trial) {
    const std::string folder = TrialFolder(folder_ / "trials", trial);
    struct stat info{};
    ASSERT_EQ(stat(folder.c_str(), &info), 0) << folder;
    EXPECT_EQ(info.st_mode & 0777, 0700u) << folder;
    EXPECT_THAT(File(trial, "params.json"), HasSubstr("\"lr\":"));
  }
}

TEST_F(WarmProgram, AParameterThatIsNeverReadIsSaidOnce) {
  CreateStudy(3, false);
  WorkerOptions options = Printing();
  std::mutex mutex;
  std::vector<std::string> notes;
  options.note = [&](const std::string& note) {
    const std::lock_guard lock(mutex);
    notes.push_back(note);
  };
  RunAll(options);
  EXPECT_THAT(notes,
              testing::ElementsAre(
                  "the parameter lr of the sweep was never read by this program: compare the "
                  "names in Get with those in the sweep file"));
}

TEST_F(PlayedHelper, Contract19AWarmProcessTakesTheNextAndACrashFailsOnlyThat) {
  CreateStudy(2, false);
  auto worker = Start(Warm("echo second; exit 3"));
  WaitUntilUp();
  Attach(1);
  Complete(true);
  Attach(2);
  const std::string second = TrialFolder(folder_ / "trials", 2) + "/stdout.log";
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(second); }));
  Go();
  ASSERT_TRUE(worker->WaitFor(90s));
  EXPECT_TRUE(worker->Wait().ok()) << worker->Wait();
  EXPECT_EQ(Trial(1).state(), v1::TRIAL_STATE_COMPLETED);
  EXPECT_EQ(Trial(2).state(), v1::TRIAL_STATE_FAILED);
  EXPECT_EQ(File(1, "stdout.log"), "up\n");
  EXPECT_EQ(File(2, "stdout.log"), "second\n");
}

}  // namespace
}  // namespace jizi::tuner
