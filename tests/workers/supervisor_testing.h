#pragma once
// supervisor_testing.h - what the tests of the supervisor share: programs that it starts, and their
// ends.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "tests/workers/temp_folder.h"
#include "tuner-service/workers/random_hex.h"
#include "tuner-service/workers/supervisor.h"

namespace jizi::tuner {

using namespace std::chrono_literals;

class Contract17 : public testing::Test {
 protected:
  // Every process of this test carries it, unless it sheds its environment.
  const std::string mark_ = "JIZI_TEST_MARK=" + RandomHex64();
  TempFolder folder_;

  void TearDown() override {
    EXPECT_TRUE(Eventually([&] { return CountWith(mark_) == 0; })) << "a process is left";
  }

  std::unique_ptr<Supervisor> Fork(const ForkOptions& options = {}) {
    auto supervisor = Supervisor::Fork(folder_ / "lock", 20s, options);
    EXPECT_TRUE(supervisor.ok()) << supervisor.status();
    return *std::move(supervisor);
  }

  ProcessSpec Spec(std::vector<std::string> argv) const {
    ProcessSpec spec;
    spec.argv = std::move(argv);
    spec.environment = {{"PATH", getenv("PATH")},
                        {mark_.substr(0, mark_.find('=')), mark_.substr(mark_.find('=') + 1)}};
    spec.folder = folder_.path();
    return spec;
  }
  ProcessSpec Shell(const std::string& text) const { return Spec({"/bin/sh", "-c", text}); }

  // Starts with its output into the file `out`.
  StatusOr<Supervisor::ProcessId> Start(Supervisor& supervisor, ProcessSpec spec,
                                        std::function<void(ProcessEnd)> on_end) const {
    const int out =
        open((folder_ / "out").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    spec.stdout_fd = spec.stderr_fd = out;
    auto started = supervisor.Start(spec, std::move(on_end));
    close(out);
    return started;
  }

  std::string Out() const { return ReadAll(folder_ / "out"); }
  // Waits for a line "name <pid>" in the output.
  int PidOf(const std::string& name) const {
    int pid = 0;
    EXPECT_TRUE(Eventually([&] {
      const std::string text = Out();
      const size_t at = text.find(name + " ");
      if (at == std::string::npos || text.find('\n', at) == std::string::npos) return false;
      pid = atoi(text.c_str() + at + name.size() + 1);
      return pid > 0;
    })) << name;
    return pid;
  }
};

struct Ended {
  std::mutex mutex;
  std::optional<ProcessEnd> end;
  std::atomic<int> count = 0;
  std::function<void(ProcessEnd)> Sink() {
    return [this](ProcessEnd told) {
      const std::lock_guard lock(mutex);
      end = told;
      ++count;
    };
  }
  bool Wait() {
    return Eventually([this] { return count > 0; });
  }
};

}  // namespace jizi::tuner
