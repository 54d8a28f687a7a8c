// The helper in programs of their own: killed at random points, told to end, and as two ranks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "tests/trial_helper/local_service.h"
#include "trial-helper/exit_code.h"
#include "trial-helper/outbox.h"

namespace jizi {
namespace {

using namespace std::chrono_literals;
using testing::Eventually;
using testing::LocalService;

// A program with its output; killed at the end if it still runs.
class Program {
 public:
  Program(std::vector<std::string> arguments, std::map<std::string, std::string> environment) {
    const char* build = getenv("JIZI_BUILD_DIR");
    arguments.insert(arguments.begin(),
                     std::string(build == nullptr ? "." : build) + "/trial_helper_program");
    environment["PATH"] = "/usr/bin:/bin";
    if (const char* tsan = getenv("TSAN_OPTIONS")) environment["TSAN_OPTIONS"] = tsan;
    std::vector<std::string> pairs;
    for (const auto& [name, value] : environment) pairs.push_back(name + "=" + value);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::vector<char*> envp;
    for (std::string& pair : pairs) envp.push_back(pair.data());
    envp.push_back(nullptr);
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], 1);
      execve(argv[0], argv.data(), envp.data());
      _exit(127);
    }
    close(ends[1]);
    reader_ = std::thread([this, fd = ends[0]] {
      char buffer[4096];
      for (ssize_t n = 0; (n = read(fd, buffer, sizeof(buffer))) > 0;) {
        const std::lock_guard lock(mutex_);
        output_.append(buffer, static_cast<size_t>(n));
      }
      close(fd);
    });
  }
  ~Program() {
    if (pid_ > 0) End(SIGKILL);
  }

  std::string Output() {
    const std::lock_guard lock(mutex_);
    return output_;
  }
  // Sends the signal (0: none) and waits; the exit code, or minus the signal that killed it.
  int End(int signal) {
    if (signal != 0) kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    reader_.join();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // The largest number after this word.
  int64_t Last(const std::string& word) {
    std::istringstream lines(Output());
    int64_t last = 0;
    for (std::string first; lines >> first;) {
      int64_t number = 0;
      if (lines >> number && first == word) last = number;
      lines.clear();
    }
    return last;
  }

 private:
  pid_t pid_ = -1;
  std::mutex mutex_;
  std::string output_;
  std::thread reader_;
};

// What an executor does with a program's outbox, by the rules of proto/outbox_file.h.
int64_t DeliverAsWorker(LocalService& service, const v1::Lease& lease) {
  v1::AttachRequest attach;
  *attach.mutable_lease() = lease;
  attach.set_worker("worker");
  const auto attached = service.client().Call(&v1::TuneService::Stub::Attach, attach, 30s);
  EXPECT_TRUE(attached.ok()) << ForPeople(attached.status());
  if (!attached.ok()) return 0;
  int64_t next = attached->next_sequence(0);
  for (v1::ReportRequest request : helper::ReadOutbox(service.outbox()).requests) {
    if (request.lease().token() != lease.token() || request.sequence() < next) continue;
    if (request.sequence() > next) request.set_sequence(next);  // Behind a gap: never sent.
    const auto answer = service.client().Call(&v1::TuneService::Stub::Report, request, 30s);
    EXPECT_TRUE(answer.ok()) << ForPeople(answer.status());
    ++next;
  }
  unlink(service.outbox().c_str());
  return next;
}

uint64_t Seed() {
  const char* given = getenv("JIZI_TEST_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("JIZI_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

TEST(TrialHelperProcess, Contract22KillAtRandomPointsLosesNothingAcknowledged) {
  const char* given = getenv("JIZI_KILL_ROUNDS");
  const int rounds = given != nullptr ? std::atoi(given) : 6;
  std::mt19937_64 random(Seed());
  LocalService service;
  service.CreateStudy(rounds);
  for (int round = 0; round < rounds; ++round) {
    const v1::Assignment assignment = service.Suggest();
    const int64_t trial = assignment.trial().id();
    auto environment = service.EnvironmentOf(assignment);
    environment["JIZI_ONE_TRIAL"] = "1";
    Program program({"train", "1000000"}, environment);
    const auto after = static_cast<int64_t>(1 + random() % 60);
    ASSERT_TRUE(Eventually([&] { return program.Last("reported") > after; }));
    const bool away = random() % 2 == 0;
    if (away) {
      service.Stop();
      const int64_t before = program.Last("reported");
      ASSERT_TRUE(Eventually([&] { return program.Last("reported") > before + 50; }));
    }
    // Acknowledged: the service has it, or the outbox. Read before the kill.
    std::set<int64_t> kept;
    for (const v1::ReportRequest& request : helper::ReadOutbox(service.outbox()).requests) {
      for (const auto& measurement : request.measurements()) kept.insert(measurement.step());
    }
    if (!away) {
      for (const auto& [step, value] : service.ValuesOf(trial)) kept.insert(step);
    }
    EXPECT_EQ(program.End(SIGKILL), -SIGKILL);
    if (away) service.Start();
    const int64_t next = DeliverAsWorker(service, assignment.lease());
    const auto values = service.ValuesOf(trial);  // Also: none is there twice.
    for (const int64_t step : kept) EXPECT_TRUE(values.contains(step)) << "step " << step;
    for (const auto& [step, value] : values) EXPECT_EQ(value, static_cast<double>(step));
    // Without a gap: what is there is a beginning of what was reported.
    EXPECT_EQ(values.size(), static_cast<size_t>(values.rbegin()->first));
    v1::CompleteRequest complete;
    *complete.mutable_lease() = assignment.lease();
    complete.set_sequence(next);
    complete.mutable_failed()->set_why("killed");
    const auto completed = service.client().Call(&v1::TuneService::Stub::Complete, complete, 30s);
    EXPECT_TRUE(completed.ok()) << ForPeople(completed.status());
  }
}

TEST(TrialHelperProcess, SigtermLetsTheProgramSaveAndLeavesTheEndToTheWorker) {
  LocalService service;
  service.CreateStudy(3);
  const v1::Assignment assignment = service.Suggest();
  Program program({"terminate"}, service.EnvironmentOf(assignment));
  ASSERT_TRUE(Eventually([&] { return program.Last("reported") > 5; }));
  EXPECT_EQ(program.End(SIGTERM), 0);
  EXPECT_NE(program.Output().find("left"), std::string::npos);
  const v1::Trial trial = service.TrialOf(1);
  EXPECT_EQ(trial.state(), v1::TRIAL_STATE_RUNNING);
  EXPECT_EQ(trial.checkpoints_size(), 1);
  EXPECT_EQ(static_cast<int64_t>(service.ValuesOf(1).size()), program.Last("reported"));
}

TEST(TrialHelperProcess, AnEndThatTheServiceDidNotHearOfShowsInTheExitCode) {
  for (const char* how : {"fail", "infeasible", "throw", "finish"}) {
    LocalService service;
    service.CreateStudy(1);
    const v1::Assignment assignment = service.Suggest();
    auto environment = service.EnvironmentOf(assignment);
    environment["JIZI_ONE_TRIAL"] = "1";
    service.Stop();
    Program program({"unfinished", how}, environment);
    EXPECT_EQ(program.End(0), std::string(how) == "finish" ? 0 : helper::kExitNotFinished) << how;
    // All that a program does at its end is done.
    EXPECT_EQ(program.Output(), "left\nhandlers ran\n") << how;
  }
}

// ---- several ranks (docs/contracts.md, 20) ----

struct Ranks {
  Ranks(const LocalService& service, const v1::Assignment& assignment, int64_t steps) {
    int sockets[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    for (int rank = 0; rank < 2; ++rank) {
      auto environment = service.EnvironmentOf(assignment);
      environment["RANK"] = std::to_string(rank);
      environment["WORLD_SIZE"] = "2";
      fcntl(sockets[1 - rank], F_SETFD, FD_CLOEXEC);
      fcntl(sockets[rank], F_SETFD, 0);
      programs.push_back(std::make_unique<Program>(
          std::vector<std::string>{"ranks", std::to_string(steps), std::to_string(sockets[rank])},
          environment));
    }
    close(sockets[0]);
    close(sockets[1]);
  }
  std::vector<std::unique_ptr<Program>> programs;
};

TEST(TrialHelperProcess, Contract20EveryRankGetsTheSameAtTheSameStep) {
  LocalService service;
  service.CreateStudy(2);
  service.Tell([](const tuner::Measurement& m) -> std::optional<tuner::Directive> {
    if (m.step == 3) {
      tuner::Continue change;
      change.set["lr"] = 0.25;
      return change;
    }
    if (m.step == 5) return tuner::Stop{"enough"};
    return std::nullopt;
  });
  Ranks ranks(service, service.Suggest(), 10);
  EXPECT_EQ(ranks.programs[0]->End(0), 0);
  EXPECT_EQ(ranks.programs[1]->End(0), 0);
  const std::string output = ranks.programs[0]->Output();
  EXPECT_EQ(output, ranks.programs[1]->Output());
  EXPECT_NE(output.find("trial 1 "), std::string::npos) << output;
  EXPECT_NE(output.find("trial 2 "), std::string::npos) << output;
  EXPECT_NE(output.find("step 3: lr = 0.25, now 0.25"), std::string::npos) << output;
  EXPECT_NE(output.find("stopped at 5: enough"), std::string::npos) << output;
  EXPECT_NE(output.find("saved 1"), std::string::npos) << output;
  for (int64_t trial = 1; trial <= 2; ++trial) {
    EXPECT_EQ(service.TrialOf(trial).state(), v1::TRIAL_STATE_STOPPED);
    EXPECT_EQ(service.TrialOf(trial).checkpoints_size(), 1);
    EXPECT_EQ(service.ValuesOf(trial).size(), 5u);  // Rank 0's alone.
  }
}

}  // namespace
}  // namespace jizi
