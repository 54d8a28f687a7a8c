#include <queue>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "tests/bench/load_loop.h"

namespace jizi::bench {

SteadyClock::time_point Window::Begin() {
  open_.store(true, std::memory_order_relaxed);
  return SteadyClock::now();
}

SteadyClock::time_point Window::End() {
  open_.store(false, std::memory_order_relaxed);
  return SteadyClock::now();
}

void Window::SleepFor(std::chrono::milliseconds time) const {
  std::this_thread::sleep_for(time);
}

namespace {

// Waits for the calls under way.
class Pending {
 public:
  void Add() {
    const MutexLock lock(mutex_);
    ++count_;
  }
  void Remove() {
    const MutexLock lock(mutex_);
    if (--count_ == 0) none_.NotifyAll();
  }
  void Await() {
    const MutexLock lock(mutex_);
    while (count_ > 0) none_.Wait(mutex_);  // Each call has a deadline.
  }

 private:
  Mutex mutex_;
  CondVar none_;
  int count_ GUARDED_BY(mutex_) = 0;
};

class Closed final : public Loop {
 public:
  Closed(Channels& channels, const Window& window) : window_(window) {
    for (auto& channel : channels) {
      pending_.Add();
      Issue(*channel);
    }
  }
  ~Closed() override { Stop(); }
  void Stop() override {
    stopped_.store(true);
    pending_.Await();
  }

 private:
  void Issue(Channel& channel) {
    channel.Issue([this, &channel, from = SteadyClock::now()] {
      if (window_.open() && !channel.failed()) channel.Count(from);
      if (stopped_.load() || channel.failed()) return pending_.Remove();
      Issue(channel);
    });
  }

  const Window& window_;
  std::atomic<bool> stopped_{false};
  Pending pending_;
};

class Open final : public Loop {
 public:
  Open(Channels& channels, const Window& window, double calls_per_second) : window_(window) {
    const auto gap = [&](size_t calls) {
      return std::chrono::duration_cast<SteadyClock::duration>(
          std::chrono::duration<double>(static_cast<double>(calls) / calls_per_second));
    };
    between_ = gap(channels.size());
    {
      const MutexLock lock(mutex_);
      const auto start = SteadyClock::now();
      for (size_t i = 0; i < channels.size(); ++i) due_.push({start + gap(i), channels[i].get()});
    }
    thread_ = std::thread([this] { Run(); });
  }
  ~Open() override { Stop(); }
  void Stop() override {
    {
      const MutexLock lock(mutex_);
      stopped_ = true;
      changed_.NotifyAll();
    }
    if (thread_.joinable()) thread_.join();
    pending_.Await();
  }

 private:
  struct Due {
    SteadyClock::time_point at;
    Channel* channel = nullptr;
    bool operator<(const Due& other) const { return at > other.at; }  // The earliest on top.
  };

  void Run() {
    for (;;) {
      Due due;
      {
        const MutexLock lock(mutex_);
        for (;;) {
          if (stopped_) return;
          if (due_.empty()) {
            changed_.Wait(mutex_);
          } else if (due_.top().at > SteadyClock::now()) {
            changed_.WaitUntil(mutex_, due_.top().at);
          } else {
            break;
          }
        }
        due = due_.top();
        due_.pop();
      }
      pending_.Add();
      Issue(due);
    }
  }

  void Issue(Due due) {
    due.channel->Issue([this, due] {
      Channel& channel = *due.channel;
      if (window_.open() && !channel.failed()) channel.Count(due.at);
      const Due next{due.at + between_, due.channel};
      if (!channel.failed() && next.at <= SteadyClock::now() && !stopped()) return Issue(next);
      if (!channel.failed()) Wait(next);
      pending_.Remove();
    });
  }

  void Wait(Due next) {
    const MutexLock lock(mutex_);
    due_.push(next);
    if (due_.top().channel == next.channel) changed_.NotifyAll();
  }

  bool stopped() {
    const MutexLock lock(mutex_);
    return stopped_;
  }

  const Window& window_;
  SteadyClock::duration between_{};
  Pending pending_;
  Mutex mutex_;
  CondVar changed_;
  std::priority_queue<Due> due_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Loop> ClosedLoop(Channels& channels, const Window& window) {
  return std::make_unique<Closed>(channels, window);
}

std::unique_ptr<Loop> OpenLoop(Channels& channels, const Window& window, double calls_per_second) {
  return std::make_unique<Open>(channels, window, calls_per_second);
}

}  // namespace jizi::bench
