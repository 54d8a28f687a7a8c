#include "trial-helper/resources.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace jizi::helper {
namespace {

double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  double resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double CpuSeconds() {
  struct rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

ResourceMeter::ResourceMeter(std::chrono::duration<double> interval)
    : interval_(interval), last_(std::chrono::steady_clock::now()) {}

std::vector<std::pair<std::string, double>> ResourceMeter::Due(int64_t step) {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> passed = now - last_;
  if (last_step_ < 0) last_step_ = step;
  if (interval_.count() <= 0 || passed < interval_) return {};
  const double steps = static_cast<double>(step - last_step_);
  last_ = now;
  last_step_ = step;
  return {{"jizi/steps_per_s", steps / passed.count()},
          {"jizi/rss_bytes", ResidentBytes()},
          {"jizi/cpu_s", CpuSeconds()}};
}

}  // namespace jizi::helper
