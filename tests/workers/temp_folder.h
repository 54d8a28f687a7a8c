#pragma once
// temp_folder.h - what the workers' tests share: a folder that goes away, files, waiting for a
// condition, and whether a process of this test is left.

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>

#include "tuner-service/workers/process_tree.h"

namespace jizi::tuner {

class TempFolder {
 public:
  TempFolder() {
    char name[] = "/tmp/jizi-workers-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  std::string Script(const std::string& name, const std::string& text) const {
    const std::string path = *this / name;
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    chmod(path.c_str(), 0755);
    return path;
  }

 private:
  std::string path_;
};

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Polls until it holds; false after a time that is long enough for a busy machine.
inline bool Eventually(const std::function<bool()>& condition,
                       std::chrono::seconds most = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + most;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

inline bool IsAlive(int pid) {
  if (pid <= 0) return false;
  for (const ProcessInfo& info : AllProcesses()) {
    if (info.pid == pid) return info.state != 'Z';
  }
  return false;
}

// Living processes whose environment holds this entry.
inline int CountWith(const std::string& entry) {
  int count = 0;
  for (const ProcessInfo& info : AllProcesses()) {
    if (info.state != 'Z' && info.state != 'X' && EnvironmentHolds(info.pid, entry)) ++count;
  }
  return count;
}

}  // namespace jizi::tuner
