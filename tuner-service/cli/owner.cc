#include "tuner-service/cli/owner.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <thread>

namespace jizi::tuner {
namespace {

constexpr std::chrono::milliseconds kPoll{20};

Owner ReadFrom(int fd) {
  char text[4096];
  const ssize_t bytes = pread(fd, text, sizeof text, 0);
  Owner owner;
  if (bytes <= 0) return owner;
  std::istringstream lines(std::string(text, static_cast<size_t>(bytes)));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "pid") words >> owner.pid;
    if (key == "address") owner.address = line.substr(std::min(line.size(), key.size() + 1));
  }
  return owner;
}

Status WriteTo(int fd, const std::string& text) {
  if (ftruncate(fd, 0) != 0 ||
      pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return Error(StatusCode::kUnavailable,
                 std::string("cannot write the lock file: ") + std::strerror(errno),
                 {"LOCK_FILE", "", "is the disk full?"});
  }
  return absl::OkStatus();
}

}  // namespace

std::string LockFileOf(const std::string& database) {
  return database + ".lock";
}

StatusOr<std::unique_ptr<OwnerLock>> OwnerLock::Take(const std::string& database,
                                                     std::chrono::milliseconds wait) {
  const std::string path = LockFileOf(database);
  const auto deadline = std::chrono::steady_clock::now() + wait;
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    const int error = errno;
    const bool denied = error == EACCES || error == EROFS || error == EPERM;
    return Error(denied ? StatusCode::kPermissionDenied : StatusCode::kNotFound,
                 "cannot make the lock file " + path + ": " + std::strerror(error),
                 {"LOCK_FILE", path, "the folder must exist and be writable"});
  }
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= deadline) {
      close(fd);
      return OwnedError(database, ReadOwner(database, std::chrono::milliseconds(0)));
    }
    std::this_thread::sleep_for(kPoll);
  }
  const Owner former = ReadFrom(fd);
  auto lock = std::unique_ptr<OwnerLock>(new OwnerLock(fd, former));
  if (Status status = WriteTo(fd, "pid " + std::to_string(getpid()) + "\n"); !status.ok())
    return status;
  return lock;
}

// The file is not removed: another may have opened it already, and would then hold the lock of a
// file that nobody sees.
OwnerLock::~OwnerLock() {
  [[maybe_unused]] const int emptied = ftruncate(fd_, 0);
  close(fd_);
}

Status OwnerLock::Announce(const std::string& address) {
  return WriteTo(fd_, "pid " + std::to_string(getpid()) + "\naddress " + address + "\n");
}

Owner ReadOwner(const std::string& database, std::chrono::milliseconds wait) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  while (true) {
    Owner owner;
    if (const int fd = open(LockFileOf(database).c_str(), O_RDONLY | O_CLOEXEC); fd >= 0) {
      owner = ReadFrom(fd);
      close(fd);
    }
    if (!owner.address.empty() || std::chrono::steady_clock::now() >= deadline) return owner;
    std::this_thread::sleep_for(kPoll);
  }
}

Status OwnedError(const std::string& database, const Owner& owner) {
  const std::string who =
      owner.pid > 0 ? "the jizi with pid " + std::to_string(owner.pid) : "another jizi";
  return Error(StatusCode::kFailedPrecondition, database + " is owned by " + who,
               {"FILE_OWNED", database,
                owner.address.empty() ? "wait until it has ended, or end it"
                                      : "use --server " + owner.address + " to work with it"});
}

}  // namespace jizi::tuner
