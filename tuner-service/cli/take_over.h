#pragma once
// take_over.h - what a new owner of a file does about a `jizi run` on it that was killed, before it
// hands out a trial (docs/contracts.md, 17): `run` and `serve` alike.
// Fails: Unavailable SUPERVISOR_BUSY, or what RecoverRun says; Cancelled where `stop` said so.
// Threads: any; `stop` is called from the caller's.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "tuner-service/cli/local_service.h"
#include "tuner-service/cli/owner.h"

namespace jizi::tuner {

inline constexpr std::chrono::milliseconds kSupervisorWait{60'000};  // It ends programs meanwhile.

// For an owner that forks no supervisor itself: waits until none of the former run is left.
Status WaitForSupervisor(const std::string& database, const std::function<bool()>& stop);

// Ends the programs that are left, sends what is in their outboxes, and queues their trials again.
// Returns how many. `address` is the service's; no worker of this owner has started yet.
StatusOr<int> RecoverStudies(const std::string& database, const std::string& address,
                             const std::function<bool()>& stop);

// A file of our own and its service, after what a killed owner left was ended and queued again
// (`recovered` trials). Not announced yet. Members in the order of their making.
struct OwnedService {
  std::unique_ptr<OwnerLock> lock;
  std::unique_ptr<LocalService> service;
  int recovered = 0;
};
StatusOr<OwnedService> OwnFile(const std::string& database, const LocalService::Options& options,
                               const std::function<bool()>& stop);

}  // namespace jizi::tuner
