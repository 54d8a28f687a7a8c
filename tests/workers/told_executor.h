#pragma once
// told_executor.h - jobs without processes: what they were told, and lines and ends by hand.

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "tuner-service/workers/executor.h"

namespace jizi::tuner {

class ToldExecutor : public Executor {
 public:
  struct Told {
    std::mutex mutex;
    std::vector<double> graces;
    JobEvents events;
    std::atomic<int> read_on = 0;
  };
  class ToldJob : public Job {
   public:
    explicit ToldJob(Told& told) : told_(told) {}
    void ReadOn() override { ++told_.read_on; }
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

}  // namespace jizi::tuner
