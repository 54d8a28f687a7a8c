// Workers against a real service: server, engine and store as shipped, over a Unix socket.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

#include "tests/workers/temp_folder.h"
#include "tuner-service/engine/engine.h"
#include "tuner-service/rpc/server.h"
#include "tuner-service/workers/random_hex.h"
#include "tuner-service/workers/recovery.h"
#include "tuner-service/workers/slot.h"
#include "tuner-service/workers/trial_folder.h"
#include "tuner-service/workers/worker.h"

namespace jizi::tuner {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Stub = v1::TuneService::Stub;

// Forked before gRPC starts a thread, for all tests of the program.
class SupervisorOfAll : public testing::Environment {
 public:
  void SetUp() override {
    auto forked = Supervisor::Fork(folder_ / "lock", 20s);
    ASSERT_TRUE(forked.ok()) << forked.status();
    supervisor = *std::move(forked);
    forked = Supervisor::Fork(victims_lock(), 20s);
    ASSERT_TRUE(forked.ok()) << forked.status();
    victim = *std::move(forked);
  }
  void TearDown() override {
    supervisor.reset();
    victim.reset();
  }
  std::string victims_lock() const { return folder_ / "victim"; }
  std::unique_ptr<Supervisor> supervisor;
  std::unique_ptr<Supervisor> victim;  // One test kills it.

 private:
  TempFolder folder_;
};
SupervisorOfAll* const kAll =
    static_cast<SupervisorOfAll*>(testing::AddGlobalTestEnvironment(new SupervisorOfAll));

class WorkerTest : public testing::Test {
 protected:
  const std::string mark_ = "JIZI_TEST_MARK=" + RandomHex64();
  TempFolder folder_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
  std::string address_;

  void SetUp() override {
    Open();
    auto client = Client::Connect({.address = address_, .token_file = "", .ca_file = ""});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  void TearDown() override {
    Close();
    EXPECT_TRUE(Eventually([&] { return CountWith(mark_) == 0; })) << "a process is left";
  }
  void Open() {
    SqliteOptions file;
    file.path = folder_ / "studies.db";
    auto store = OpenSqliteStore(file);
    ASSERT_TRUE(store.ok()) << store.status();
    auto engine = Engine::Start(*std::move(store), {});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    ServerOptions options;
    options.listen = "unix:" + folder_.path() + "/s/socket";
    auto server = Server::Start(*engine_, options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = server_->address();
  }
  void Close() {
    if (server_) server_->Shutdown(5s);
    server_.reset();
    engine_.reset();
  }

  template <typename Request, typename Response>
  Response Must(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                const Request& request) {
    auto answer = client_->Call(method, request, 30s);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *std::move(answer) : Response();
  }

  void CreateStudy(int trials, bool with_metric = true) {
    v1::CreateStudyRequest request;
    v1::StudySpec& spec = *request.mutable_spec();
    spec.set_name("study");
    spec.set_method("random");
    spec.set_seed(1);
    spec.mutable_budget()->set_run_cap(trials);
    v1::ParameterSpec& lr = *spec.add_parameters();
    lr.set_name("lr");
    lr.mutable_numeric()->mutable_uniform()->set_min(0);
    lr.mutable_numeric()->mutable_uniform()->set_max(1);
    if (with_metric) {
      spec.add_metrics()->set_name("accuracy");
      spec.mutable_metrics(0)->set_goal(v1::GOAL_MAXIMIZE);
    }
    request.set_request_id(RandomHex64());
    Must(&Stub::CreateStudy, request);
  }
  std::vector<v1::Trial> Trials() {
    v1::ListTrialsRequest request;
    request.set_study("study");
    const v1::ListTrialsResponse page = Must(&Stub::ListTrials, request);
    return {page.trials().begin(), page.trials().end()};
  }
  v1::Trial Trial(int64_t id) {
    v1::GetTrialRequest request;
    request.set_study("study");
    request.set_trial(id);
    return Must(&Stub::GetTrial, request).trial();
  }
  int Count(v1::TrialState state) {
    int count = 0;
    for (const v1::Trial& trial : Trials()) count += trial.state() == state ? 1 : 0;
    return count;
  }

  WorkerOptions Options(const std::string& script, int slots = 1) {
    WorkerOptions options;
    options.service.address = address_;
    options.study = "study";
    options.slots = slots;
    options.folder = folder_ / "trials";
    options.launch.command = {folder_.Script("train", script), "${args}"};
    options.launch.grace = 5s;
    options.launch.environment["JIZI_TEST_MARK"] = mark_.substr(mark_.find('=') + 1);
    return options;
  }
  std::unique_ptr<Worker> Start(WorkerOptions options, Supervisor& supervisor) {
    auto worker = Worker::Start(std::move(options), supervisor);
    EXPECT_TRUE(worker.ok()) << worker.status();
    return *std::move(worker);
  }
  std::unique_ptr<Worker> Start(WorkerOptions options) {
    return Start(std::move(options), *kAll->supervisor);
  }
  void RunAll(WorkerOptions options) {
    auto worker = Start(std::move(options));
    ASSERT_TRUE(worker->WaitFor(90s));
    EXPECT_TRUE(worker->Wait().ok()) << worker->Wait();
  }
  std::string File(int64_t trial, const std::string& name) const {
    return ReadAll(TrialFolder(folder_ / "trials", trial) + "/" + name);
  }
};

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
  EXPECT_THAT(Trial(1).end_why(), HasSubstr("exit code 3\nit broke"));
}

TEST_F(WorkerTest, AMissingProgramFailsEachTrialWithItsReason) {
  CreateStudy(3);
  WorkerOptions options = Options("");
  options.launch.command = {"--lr=0.1"};
  RunAll(options);
  EXPECT_EQ(Count(v1::TRIAL_STATE_FAILED), 3);
  EXPECT_THAT(Trial(2).end_why(), HasSubstr("'--lr=0.1'"));
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

TEST_F(WorkerTest, Contract17AKilledSupervisorGivesTheTrialsBack) {
  CreateStudy(5);
  auto worker = Start(Options("echo jizi accuracy=0.1; sleep 1000", 2), *kAll->victim);
  ASSERT_TRUE(Eventually([&] {
    int reported = 0;
    for (const v1::Trial& trial : Trials()) reported += trial.measurement_count() > 0 ? 1 : 0;
    return reported == 2;
  }));
  kill(atoi(ReadAll(kAll->victims_lock()).c_str()), SIGKILL);
  ASSERT_TRUE(worker->WaitFor(60s));
  EXPECT_EQ(DetailOf(worker->Wait()).code, "SUPERVISOR_GONE") << worker->Wait();
  for (const v1::Trial& trial : Trials()) {
    EXPECT_EQ(trial.state(), v1::TRIAL_STATE_QUEUED) << trial.id() << trial.end_why();
  }
  // And one that starts nothing at all.
  worker = Start(Options("true"), *kAll->victim);
  ASSERT_TRUE(worker->WaitFor(60s));
  EXPECT_EQ(worker->Wait().code(), StatusCode::kUnavailable);
  EXPECT_EQ(Count(v1::TRIAL_STATE_FAILED), 0);
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

// Jobs without processes: what they were told, and when.
class ToldExecutor : public Executor {
 public:
  struct Told {
    std::mutex mutex;
    std::vector<double> graces;
    JobEvents events;
  };
  class ToldJob : public Job {
   public:
    explicit ToldJob(Told& told) : told_(told) {}
    void SwitchFolder(const std::string&) override {}
    void End(std::chrono::duration<double> grace) override {
      const std::lock_guard lock(told_.mutex);
      told_.graces.push_back(grace.count());
    }

   private:
    Told& told_;
  };
  StatusOr<std::unique_ptr<Job>> Start(const JobSpec&, JobEvents events) override {
    const std::lock_guard lock(told.mutex);
    told.events = std::move(events);
    started = true;
    return std::make_unique<ToldJob>(told);
  }
  Told told;
  std::atomic<bool> started = false;
};

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
