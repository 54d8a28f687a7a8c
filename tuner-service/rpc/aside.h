#pragma once
// aside.h - one thread for what is too long for the committer's and gRPC's threads: pages,
// snapshots, and calls that follow a call. Fails: TryPost, when more than `limit` tasks wait.
// Threads: every method from any thread; tasks run one at a time, in order. Tasks must not throw or
// wait.

#include <chrono>
#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace jizi::tuner {

class Aside {
 public:
  using Task = std::function<void()>;

  // `tick` runs there too, about once a period.
  Aside(size_t limit, std::chrono::milliseconds period, Task tick);
  ~Aside();  // Stop().
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  [[nodiscard]] bool TryPost(Task task);
  void Post(Task task);  // Beyond any limit, for the few whose number is bounded elsewhere. After
                         // Stop it runs here and now.
  void Stop();           // After what waits. Not from a task.

 private:
  void Run();

  const size_t limit_;
  const std::chrono::milliseconds period_;
  const Task tick_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace jizi::tuner
