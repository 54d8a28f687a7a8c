#pragma once
// owner.h - who owns a database: FILE.lock, held with flock by the owner, says its pid and where it
// answers (docs/contracts.md, 16). The descriptor is close-on-exec, and taken after the supervisor
// was forked, so that no child keeps the lock alive. Fails: FailedPrecondition FILE_OWNED when
// another holds it; PermissionDenied, NotFound when the lock file cannot be made. Threads: from one
// thread.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"

namespace jizi::tuner {

struct Owner {
  int pid = 0;
  std::string address;  // "unix:/run/user/1000/jizi-x3/socket"; empty while it is starting.
};

// How long a run or a serve waits for it.
constexpr std::chrono::milliseconds kOwnerLockWait{2000};

class OwnerLock {
 public:
  // Tries until the deadline: another command holds it for moments only, a `run` or a `serve` for
  // long.
  static StatusOr<std::unique_ptr<OwnerLock>> Take(const std::string& database,
                                                   std::chrono::milliseconds wait);
  ~OwnerLock();  // Releases; the file stays, empty.
  OwnerLock(const OwnerLock&) = delete;
  OwnerLock& operator=(const OwnerLock&) = delete;

  // Where this owner answers, for others to read.
  Status Announce(const std::string& address);

  // Of the owner before, where it did not end properly: its socket's folder is left over.
  const Owner& former() const { return former_; }

 private:
  OwnerLock(int fd, Owner former) : fd_(fd), former_(std::move(former)) {}
  int fd_;
  Owner former_;
};

std::string LockFileOf(const std::string& database);

// What the lock file says now. An owner that is just starting has not written its address yet:
// waits for it until the deadline.
Owner ReadOwner(const std::string& database, std::chrono::milliseconds wait);

// "the file is owned by the `jizi` with pid 123", with the --server to use.
Status OwnedError(const std::string& database, const Owner& owner);

}  // namespace jizi::tuner
