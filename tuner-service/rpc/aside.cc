#include "tuner-service/rpc/aside.h"

#include <utility>

namespace jizi::tuner {

Aside::Aside(size_t limit, std::chrono::milliseconds period, Task tick)
    : limit_(limit), period_(period), tick_(std::move(tick)), thread_([this] { Run(); }) {}

Aside::~Aside() {
  Stop();
}

bool Aside::TryPost(Task task) {
  MutexLock lock(mutex_);
  if (stopped_ || tasks_.size() >= limit_) return false;
  tasks_.push_back(std::move(task));
  changed_.NotifyOne();
  return true;
}

void Aside::Post(Task task) {
  {
    MutexLock lock(mutex_);
    if (!stopped_) {
      tasks_.push_back(std::move(task));
      changed_.NotifyOne();
      return;
    }
  }
  task();
}

void Aside::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void Aside::Run() {
  auto next_tick = std::chrono::steady_clock::now() + period_;
  for (;;) {
    Task task;
    {
      MutexLock lock(mutex_);
      while (tasks_.empty() && !stopped_) {
        if (!changed_.WaitUntil(mutex_, next_tick)) break;
      }
      if (tasks_.empty() && stopped_) return;
      if (!tasks_.empty()) {
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
    }
    if (task) task();
    if (const auto now = std::chrono::steady_clock::now(); now >= next_tick) {
      tick_();
      next_tick = now + period_;
    }
  }
}

}  // namespace jizi::tuner
