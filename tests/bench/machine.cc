#include "tests/bench/machine.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace jizi::bench {

Folder::Folder() {
  const char* parent = std::getenv("TMPDIR");
  path_ = std::string(parent != nullptr ? parent : "/tmp") + "/service_load.XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) {
    std::perror("service_load: mkdtemp");
    std::exit(1);
  }
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

FsyncTimes MeasureFsync(const std::string& file, int count) {
  const int descriptor = open(file.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  if (descriptor < 0) return {};
  const std::vector<char> block(4096, 'x');
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto from = std::chrono::steady_clock::now();
    if (write(descriptor, block.data(), block.size()) != static_cast<ssize_t>(block.size()) ||
        fsync(descriptor) != 0) {
      break;
    }
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - from).count());
  }
  close(descriptor);
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[times.size() * 99 / 100]};
}

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t DatabaseBytes(const std::string& file) {
  int64_t bytes = 0;
  for (const char* suffix : {"", "-wal"}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file + suffix, error);
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

}  // namespace jizi::bench
