#include "tuner-service/cli/take_over.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "proto/client.h"
#include "tuner-service/cli/requests.h"
#include "tuner-service/cli/run_files.h"
#include "tuner-service/cli/socket_folder.h"
#include "tuner-service/cli/terminal.h"
#include "tuner-service/store/store.h"
#include "tuner-service/workers/process_record.h"
#include "tuner-service/workers/recovery.h"
#include "tuner-service/workers/supervisor.h"

namespace jizi::tuner {
namespace {

constexpr std::chrono::milliseconds kLookEvery{20};
constexpr std::chrono::milliseconds kRecovery{60'000};

}  // namespace

Status WaitForSupervisor(const std::string& database, const std::function<bool()>& stop) {
  const std::string path = SupervisorLockOf(database);
  const int lock = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (lock < 0 && errno == ENOENT) return absl::OkStatus();  // No `run` was ever here.
  if (lock < 0) {
    return Error(StatusCode::kPermissionDenied, "cannot open " + path + ": " + strerror(errno),
                 {"SUPERVISOR_LOCK", path, "make it readable and writable for you"});
  }
  const auto deadline = std::chrono::steady_clock::now() + kSupervisorWait;
  Status status;
  ContinueSupervisor(path);  // A program may have stopped it.
  while (status.ok() && flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (stop()) {
      status = Error(StatusCode::kCancelled, "stopped while waiting for the former run's programs",
                     {"STOPPED", database, "start it again to go on"});
    } else if (std::chrono::steady_clock::now() >= deadline) {
      status = Error(StatusCode::kUnavailable, "the supervisor of a former run still holds " + path,
                     {"SUPERVISOR_BUSY", path, "wait until its programs have ended, or end it"});
    } else {
      std::this_thread::sleep_for(kLookEvery);
    }
  }
  if (status.ok()) {
    if (const auto ended = EndRecordedProcesses(path, kRecovery); !ended.ok()) {
      status = ended.status();
    }
  }
  close(lock);
  return status;
}

StatusOr<int> RecoverStudies(const std::string& database, const std::string& address,
                             const std::function<bool()>& stop) {
  const auto client = TRY(Client::Connect({address, "", ""}));
  const auto studies = TRY(AllStudies(*client));
  int requeued = 0;
  for (const v1::Study& study : studies) {
    if (study.counts().running() == 0) continue;
    const std::string& name = study.spec().name();
    const Recovered recovered = TRY(RecoverRun(
        *client, name, StudyFolder(TrialsRootOf(database), name), "run", kRecovery, stop));
    requeued += recovered.requeued_trials;
  }
  return requeued;
}

StatusOr<OwnedService> OwnFile(const std::string& database, const LocalService::Options& options,
                               const std::function<bool()>& stop) {
  TRY(JudgeDatabase(database, Opening::kToWrite));  // Before anything is made beside it.
  OwnedService owned;
  owned.lock = TRY(OwnerLock::Take(database, kOwnerLockWait));
  RemoveSocketFolder(owned.lock->former().address);
  // A `jizi run` may have been killed here: its programs end before their trials are handed out.
  TRY(WaitForSupervisor(database, stop));
  owned.service = TRY(LocalService::Start(database, options));
  owned.recovered = TRY(RecoverStudies(database, owned.service->address(), stop));
  if (owned.recovered > 0) {
    PrintError("a run here did not end properly: " + std::to_string(owned.recovered) +
               " trials are queued again");
  }
  return owned;
}

}  // namespace jizi::tuner
