#include "tuner-service/workers/process_record.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

namespace jizi::tuner {
namespace {

using std::chrono::steady_clock;

constexpr size_t kMostRecorded = 10'000;
constexpr std::chrono::milliseconds kPause{5};

// Pids and start times mean something within it alone.
std::string PlaceOfPids() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char name[64] = {};
  [[maybe_unused]] const ssize_t got = readlink("/proc/self/ns/pid", name, sizeof name - 1);
  return "boot " + boot + " " + name;
}

using Record = std::set<std::pair<pid_t, unsigned long long>>;

Record ReadRecord(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::istringstream lines(text.substr(0, text.rfind('\n') + 1));  // npos + 1 is 0.
  std::string line;
  Record record;
  std::getline(lines, line);
  if (!std::getline(lines, line) || line != PlaceOfPids()) return record;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    pid_t pid = 0;
    unsigned long long started = 0;
    if (words >> pid >> started && pid > 1) record.emplace(pid, started);
  }
  return record;
}

}  // namespace

ProcessRecord::ProcessRecord(int lock)
    : lock_(lock), head_(std::to_string(getpid()) + "\n" + PlaceOfPids() + "\n") {}

void ProcessRecord::Write(const std::vector<ProcessInfo>& seen) {
  std::string text = head_;
  size_t count = 0;
  for (const ProcessInfo& info : seen) {
    if (info.state == 'Z' || ++count > kMostRecorded) continue;
    text += std::to_string(info.pid) + " " + std::to_string(info.started) + "\n";
  }
  if (text == written_) return;
  const bool whole =
      pwrite(lock_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
      ftruncate(lock_, static_cast<off_t>(text.size())) == 0;
  written_ = whole ? text : "";
}

StatusOr<int> EndRecordedProcesses(const std::string& lock_file,
                                   std::chrono::milliseconds deadline) {
  const Record record = ReadRecord(lock_file);
  const auto until = steady_clock::now() + deadline;
  std::set<pid_t> ended;
  Record left = record;
  while (!left.empty()) {
    Record still;
    for (const auto& [pid, started] : left) {
      const auto info = ProcessOf(pid);
      if (!info || info->started != started || info->state == 'Z' || !IsOurs(pid)) continue;
      for (const ProcessInfo& child : DescendantsOf(pid)) still.emplace(child.pid, child.started);
      still.emplace(pid, started);
      ended.insert(pid);
      kill(pid, SIGKILL);
    }
    left = std::move(still);
    if (left.empty()) break;
    if (steady_clock::now() >= until) {
      const std::string pid = std::to_string(left.begin()->first);
      return Error(StatusCode::kUnavailable, "process " + pid + " of a former run does not die",
                   {"PROCESS_LEFT", pid, "end it by hand, then try again"});
    }
    std::this_thread::sleep_for(kPause);
  }
  return static_cast<int>(ended.size());
}

}  // namespace jizi::tuner
