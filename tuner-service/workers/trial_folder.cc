#include "tuner-service/workers/trial_folder.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "tuner-service/workers/host_fault.h"

namespace jizi::tuner {
namespace {

Status NotBeneath(const std::string& path, const std::string& why) {
  return Error(StatusCode::kInvalidArgument, "the path '" + path + "' " + why,
               {"PATH_NOT_BENEATH", path, "give a plain path relative to the trial's folder"});
}

// For kernels before 5.6: one component at a time.
int OpenStepwise(int folder, const std::string& path) {
  int at = dup(folder);
  size_t begin = 0;
  while (at >= 0) {
    const size_t end = path.find('/', begin);
    const std::string part = path.substr(begin, end - begin);
    if (part == "..") {
      close(at);
      errno = EXDEV;
      return -1;
    }
    const bool last = end == std::string::npos;
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
    const int next = openat(at, part.empty() ? "." : part.c_str(), flags);
    const int error = errno;
    close(at);
    errno = error;
    at = next;
    if (last) break;
    begin = end + 1;
  }
  return at;
}

// For reading; the descriptor is the caller's.
StatusOr<int> OpenBeneath(const std::string& folder, const std::string& path) {
  if (path.empty() || path.front() == '/') return NotBeneath(path, "is not relative");
  if (path.find('\0') != std::string::npos) return NotBeneath(path, "holds a zero byte");
  const int base = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (base < 0 && IsHostFault(errno)) {
    const int error = errno;
    return HostFault("cannot open the folder " + folder + ": " + strerror(error), folder,
                     MendOfHost(error));
  }
  if (base < 0) {
    return Error(StatusCode::kNotFound, "cannot open the folder " + folder + ": " + strerror(errno),
                 {"CHECKPOINT_MISSING", folder, "use a folder that every worker sees"});
  }
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  auto file = static_cast<int>(syscall(SYS_openat2, base, path.c_str(), &how, sizeof how));
  if (file < 0 && (errno == ENOSYS || errno == EPERM)) {
    const int plain = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    file = plain < 0 ? -1 : OpenStepwise(plain, path);
    const int error = errno;
    if (plain >= 0) close(plain);
    errno = error;
  }
  const int error = errno;
  close(base);
  if (file >= 0) return file;
  if (error == EXDEV || error == ELOOP) return NotBeneath(path, "leaves its folder or is a link");
  if (IsHostFault(error)) {
    return HostFault("cannot open " + folder + "/" + path + ": " + strerror(error), path,
                     MendOfHost(error));
  }
  return Error(StatusCode::kNotFound, "cannot open " + folder + "/" + path + ": " + strerror(error),
               {"CHECKPOINT_MISSING", path, "use a folder that every worker sees"});
}

}  // namespace

std::string TrialFolder(const std::string& root, int64_t trial) {
  char name[32];
  snprintf(name, sizeof name, "%06lld", static_cast<long long>(trial));
  return root + "/" + name;
}

StatusOr<std::string> MakeTrialFolder(const std::string& root, int64_t trial) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(TrialFolder(root, trial), error);
  if (!error) std::filesystem::create_directories(folder.parent_path(), error);
  // For its owner alone, whatever the umask.
  for (const auto& path : {folder, folder / "checkpoints"}) {
    if (error || mkdir(path.c_str(), 0700) == 0) continue;
    const int why = errno;
    if (why == EEXIST && std::filesystem::is_directory(path, error)) continue;
    if (!error) error = {why, std::generic_category()};
  }
  if (error) {
    return HostFault("cannot make the trial's folder " + folder.string() + ": " + error.message(),
                     folder.string(), MendOfHost(error.value()));
  }
  return folder.lexically_normal().string();
}

std::string OutboxPath(const std::string& root, const std::string& worker) {
  std::string name = worker;
  for (char& c : name) {
    if (c == '/' || c == '\0') c = '_';
  }
  return root + "/outbox/" + name;
}

StatusOr<std::string> CheckpointPath(const std::string& root, int64_t trial,
                                     const std::string& path) {
  std::error_code error;
  const std::string folder = std::filesystem::absolute(TrialFolder(root, trial), error).string();
  const StatusOr<int> file = OpenBeneath(folder, path);
  struct stat info{};
  const bool regular = file.ok() && fstat(*file, &info) == 0 && S_ISREG(info.st_mode);
  if (file.ok()) close(*file);
  if (regular) return folder + "/" + path;
  if (file.status().code() == StatusCode::kUnavailable) return file.status();
  return Error(
      StatusCode::kFailedPrecondition,
      "the checkpoint that this attempt starts from is not visible to this worker: " +
          (file.ok() ? "'" + path + "' is not a file" : std::string(file.status().message())),
      {"WARM_START_NOT_VISIBLE", path,
       "give all workers one folder that they share, or free the trial's checkpoint"});
}

}  // namespace jizi::tuner
