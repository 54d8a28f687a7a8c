// kill_program.cc - a training program for the kill -9 tests: short steps, a value that anybody can
// recompute, checkpoints, and an alarm when two processes hold one trial at once. Knows its own end
// only from the study: 30 steps a trial.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "trial-helper/jizi_trial_helper.h"

namespace {

constexpr int64_t kSteps = 30;

// Held by the kernel for as long as this process lives, so that a survivor of kill -9 elsewhere is
// found out.
class TrialLock {
 public:
  explicit TrialLock(const std::string& folder)
      : fd_(open((folder + "/running.lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
    if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      std::ofstream(folder + "/../two_at_once", std::ios::app) << folder << "\n";
    }
  }
  ~TrialLock() { close(fd_); }
  TrialLock(const TrialLock&) = delete;
  TrialLock& operator=(const TrialLock&) = delete;

 private:
  int fd_;
};

void Run(jizi::Trial& trial) {
  const TrialLock lock(trial.Directory());
  const auto x = trial.Get<double>("x", 0.5);
  trial.PlanSteps(kSteps);
  for (int64_t step = trial.StartStep() + 1; step <= kSteps; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const double value = x * 1000 + static_cast<double>(step);
    const auto answer = trial.Report(step, {{"value", value}});
    if (step % 5 == 0) {
      trial.Checkpoint(step,
                       [&](const std::string& path) { std::ofstream(path) << value << "\n"; });
    }
    if (answer.should_stop()) return;
  }
}

}  // namespace

int main() {
  jizi::JiziTrialHelper helper = jizi::JiziTrialHelper::FromEnvironment();
  while (auto trial = helper.NextTrial()) Run(*trial);
  return 0;
}
