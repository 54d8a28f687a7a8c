#pragma once
// resources.h - what the program uses, once a minute, as metrics beside the program's own:
//   jizi/steps_per_s  steps a second of wall time since the last time
//   jizi/rss_bytes    resident memory now
//   jizi/cpu_s        CPU seconds of the process so far, all threads
// They travel with a report of the program, so they never make a step of their own.
// Threads: one.   Cost: one read of /proc a minute.

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace jizi::helper {

class ResourceMeter {
 public:
  explicit ResourceMeter(std::chrono::duration<double> interval);

  // Empty but for once an interval. step: of the report that they would travel with.
  std::vector<std::pair<std::string, double>> Due(int64_t step);

 private:
  std::chrono::duration<double> interval_;
  std::chrono::steady_clock::time_point last_;
  int64_t last_step_ = -1;  // None yet.
};

}  // namespace jizi::helper
