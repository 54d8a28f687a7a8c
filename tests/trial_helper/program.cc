// A training program for tests, in a process of its own.
//   program train STEPS            every step is reported and its answer awaited
//   program ranks STEPS SOCKET     several ranks: rank 0 broadcasts over the socket to rank 1
//   program print STEPS            prints through C's and C++'s buffers and never empties them
//   program terminate              reports until it is told to stop, then saves a checkpoint
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include "trial-helper/jizi_trial_helper.h"

namespace {

void WriteAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = write(fd, data, size);
    if (n <= 0) throw std::runtime_error("the other rank is gone");
    data += n;
    size -= static_cast<size_t>(n);
  }
}

void ReadAll(int fd, char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = read(fd, data, size);
    if (n <= 0) throw std::runtime_error("the other rank is gone");
    data += n;
    size -= static_cast<size_t>(n);
  }
}

void SayStep(const char* what, int64_t step) {
  std::printf("%s %lld\n", what, static_cast<long long>(step));
  std::fflush(stdout);
}

int Train(int64_t steps) {
  jizi::HelperOptions options;
  options.report_wait_s = 0.5;
  jizi::JiziTrialHelper helper = jizi::JiziTrialHelper::FromEnvironment(options);
  while (auto trial = helper.NextTrial()) {
    for (int64_t step = trial->StartStep() + 1; step <= steps; ++step) {
      SayStep("reported", step);
      if (trial->Report(step, {{"val", static_cast<double>(step)}}).should_stop()) break;
      if (step % 7 == 0) {
        const bool saved = trial->Checkpoint(
            step, [](const std::string& path) { std::ofstream(path) << "weights"; });
        if (saved) SayStep("saved", step);
      }
    }
    SayStep("ended", trial->id());
  }
  return 0;
}

int Ranks(int64_t steps, int socket) {
  const char* name = std::getenv("RANK");
  const bool first = name != nullptr && std::string(name) == "0";
  jizi::HelperOptions options;
  options.report_wait_s = 30;
  options.next_trial_wait_s = 30;
  options.changeable = {"lr"};
  options.broadcast = [&](std::string& bytes) {
    size_t size = bytes.size();
    if (first) {
      WriteAll(socket, reinterpret_cast<const char*>(&size), sizeof(size));
      WriteAll(socket, bytes.data(), size);
    } else {
      ReadAll(socket, reinterpret_cast<char*>(&size), sizeof(size));
      bytes.resize(size);
      ReadAll(socket, bytes.data(), size);
    }
  };
  jizi::JiziTrialHelper helper = jizi::JiziTrialHelper::FromEnvironment(options);
  while (auto trial = helper.NextTrial()) {
    std::printf("trial %lld %s\n", static_cast<long long>(trial->id()),
                trial->ParamsJson().c_str());
    for (int64_t step = 1; step <= steps; ++step) {
      const auto result = trial->Report(step, {{"val", static_cast<double>(step)}});
      for (const auto& [changed, value] : result.changes()) {
        std::printf("step %lld: %s = %s, now %g\n", static_cast<long long>(step), changed.c_str(),
                    value.c_str(), trial->Get<double>(changed, -1));
      }
      if (step == 2) {
        const bool saved = trial->Checkpoint(
            step, [](const std::string& path) { std::ofstream(path) << "weights"; });
        std::printf("saved %d\n", saved ? 1 : 0);
      }
      if (result.should_stop()) {
        std::printf("stopped at %lld: %s\n", static_cast<long long>(step), result.why().c_str());
        break;
      }
    }
  }
  std::fflush(stdout);
  return 0;
}

// Its trial fails, or never works, as the name says; the program itself ends well.
int Unfinished(const std::string& how) {
  jizi::HelperOptions options;
  options.flush_wait_s = 0.1;
  jizi::JiziTrialHelper helper = jizi::JiziTrialHelper::FromEnvironment(options);
  while (auto trial = helper.NextTrial()) {
    if (how == "fail") trial->Fail("no data");
    if (how == "infeasible") trial->Infeasible("too large");
    if (how == "throw") {
      try {
        const auto moved = std::move(trial);
        throw std::runtime_error("out of memory");
      } catch (const std::runtime_error&) {
      }
    }
  }
  std::atexit([] { std::printf("handlers ran\n"); });
  std::printf("left\n");
  return 0;
}

// Every trial is as short as can be: no one who looks now and then sees them all.
int Print(int64_t steps) {
  jizi::JiziTrialHelper helper = jizi::JiziTrialHelper::FromEnvironment();
  while (auto trial = helper.NextTrial()) {
    const auto id = static_cast<long long>(trial->id());
    std::printf("trial %lld begins, ", id);
    for (int64_t step = 1; step <= steps; ++step) trial->Report(step, {{"val", 1}});
    std::printf("ends\n");
    std::clog << "on stderr " << id << "\n";
    std::cout << "through cout " << id << "\n";
  }
  std::printf("and that was all\n");
  return 0;
}

int Terminate() {
  jizi::JiziTrialHelper helper = jizi::JiziTrialHelper::FromEnvironment();
  while (auto trial = helper.NextTrial()) {
    for (int64_t step = 1;; ++step) {
      const auto result = trial->Report(step, {{"val", 1}});
      SayStep("reported", step);
      if (result.should_stop()) {
        trial->Checkpoint(step, [](const std::string& path) { std::ofstream(path) << "weights"; });
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  SayStep("left", 0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "train" && argc == 3) return Train(std::atoll(argv[2]));
  if (mode == "ranks" && argc == 4) return Ranks(std::atoll(argv[2]), std::atoi(argv[3]));
  if (mode == "unfinished" && argc == 3) return Unfinished(argv[2]);
  if (mode == "print" && argc == 3) return Print(std::atoll(argv[2]));
  if (mode == "terminate") return Terminate();
  return 2;
}
