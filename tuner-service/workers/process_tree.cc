#include "tuner-service/workers/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace jizi::tuner {
namespace {

constexpr size_t kMaxEnvironment = 8u
                                   << 20;  // The kernel's limit for argv and environment is 6 MiB.

std::string ReadFile(const std::string& path, size_t most) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char chunk[16384];
  ssize_t got;
  while (text.size() < most && (got = read(file, chunk, sizeof chunk)) > 0) {
    text.append(chunk, static_cast<size_t>(got));
  }
  close(file);
  return text;
}

// The fields 3 to 6, and 22.
constexpr char kStat[] =
    " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu";

bool ReadProcess(pid_t pid, ProcessInfo& info) {
  const std::string stat = ReadFile("/proc/" + std::to_string(pid) + "/stat", 4096);
  // The name, in parentheses, may hold anything; what follows the last ')' is plain.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return false;
  info.pid = pid;
  const size_t name_begin = stat.find('(') + 1;
  info.name = stat.substr(name_begin, name_end - name_begin);
  return sscanf(stat.c_str() + name_end + 1, kStat, &info.state, &info.parent, &info.group,
                &info.session, &info.started) == 5;
}

}  // namespace

std::vector<ProcessInfo> AllProcesses() {
  std::vector<ProcessInfo> all;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return all;
  while (const dirent* entry = readdir(proc)) {
    if (isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    ProcessInfo info;
    if (ReadProcess(static_cast<pid_t>(strtol(entry->d_name, nullptr, 10)), info)) {
      all.push_back(info);
    }
  }
  closedir(proc);
  return all;
}

std::optional<ProcessInfo> ProcessOf(pid_t pid) {
  ProcessInfo info;
  return ReadProcess(pid, info) ? std::optional(info) : std::nullopt;
}

std::vector<ProcessInfo> DescendantsOf(pid_t ancestor) {
  std::multimap<pid_t, ProcessInfo> by_parent;
  for (const ProcessInfo& info : AllProcesses()) by_parent.emplace(info.parent, info);
  std::vector<ProcessInfo> found;
  std::vector<pid_t> open = {ancestor};
  while (!open.empty()) {
    const auto [begin, end] = by_parent.equal_range(open.back());
    open.pop_back();
    for (auto child = begin; child != end; ++child) {
      found.push_back(child->second);
      open.push_back(child->second.pid);
    }
    by_parent.erase(begin, end);  // A pid used again during the scan must not make a circle.
  }
  return found;
}

bool EnvironmentHolds(pid_t pid, const std::string& entry) {
  const std::string text = ReadFile("/proc/" + std::to_string(pid) + "/environ", kMaxEnvironment);
  for (size_t at = 0; (at = text.find(entry, at)) != std::string::npos; ++at) {
    const size_t end = at + entry.size();
    if ((at == 0 || text[at - 1] == '\0') && (end == text.size() || text[end] == '\0')) return true;
  }
  return false;
}

bool IsOurs(pid_t pid) {
  struct stat info;
  return stat(("/proc/" + std::to_string(pid)).c_str(), &info) == 0 && info.st_uid == getuid();
}

}  // namespace jizi::tuner
