// command_run.cc - `jizi run` and `jizi worker`. The order matters: the supervisor is forked while
// this process has one thread and no lock; then the file's lock, the service, what a killed owner
// left behind, and the session (docs/contracts.md, 16, 17).

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "schedulers/scheduler.h"
#include "tuner-service/cli/commands.h"
#include "tuner-service/cli/requests.h"
#include "tuner-service/cli/session.h"
#include "tuner-service/cli/sweep_file.h"
#include "tuner-service/cli/terminal.h"
#include "tuner-service/workers/recovery.h"
#include "tuner-service/workers/supervisor.h"

namespace jizi::tuner {
namespace {

constexpr std::chrono::milliseconds kLockWait{2000};  // Commands hold it for moments.
constexpr std::chrono::milliseconds kSupervisorWait{
    60'000};  // The former one gives trials their grace, then kills.
constexpr std::chrono::milliseconds kRecovery{60'000};

StatusOr<Sweep> ReadForRun(const RunOptions& options) {
  Sweep sweep = TRY(ReadSweepFile(options.sweep_file));
  if (options.workers) sweep.workers = *options.workers;
  if (options.seed) sweep.study.seed = *options.seed;
  if (options.max_trials) sweep.study.budget.run_cap = *options.max_trials;
  TRY(MakeScheduler(sweep.study));  // A method that is not here: names those that are.
  TRY(CheckCommand(sweep.launch));
  for (const SweepNote& note : sweep.notes) {
    PrintError(options.sweep_file + ":" + std::to_string(note.line) + ": note: " + note.text);
  }
  return sweep;
}

// The trials' folder beside the database (`x.db` -> `x.trials`).
StatusOr<std::string> MakeTrialsFolder(const std::filesystem::path& beside) {
  std::filesystem::path folder = beside;
  folder.replace_extension(".trials");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return Error(StatusCode::kPermissionDenied,
                 "cannot make the trials' folder " + folder.string() + ": " + error.message(),
                 {"TRIALS_FOLDER", folder.string(),
                  "make its parent writable, or choose another place with --db"});
  }
  return folder.string();
}

StatusOr<std::string> Absolute(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  if (error)
    return Error(StatusCode::kInvalidArgument, path + ": " + error.message(),
                 {"BAD_PATH", path, ""});
  return absolute.lexically_normal().string();
}

std::string Quoted(const std::string& word) {
  if (word.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=+-") ==
          std::string::npos &&
      !word.empty()) {
    return word;
  }
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

StatusOr<ExitCode> RunOnFile(const RunOptions& options) {
  const Sweep sweep = TRY(ReadForRun(options));
  const std::string by_default = std::filesystem::path(options.sweep_file).stem().string() + ".db";
  const std::string database =
      TRY(Absolute(options.target.database.empty() ? by_default : options.target.database));
  // Asked before the fork, so that the supervisor does not inherit the lock, and that nobody waits
  // for the supervisor of a run that is going on.
  TRY(OwnerLock::Take(database, kLockWait));
  const std::string folder = TRY(MakeTrialsFolder(database));
  Signals signals;
  const auto supervisor = TRY(Supervisor::Fork(database + ".supervisor", kSupervisorWait));
  signal(SIGPIPE, SIG_IGN);  // A closed `| head` must not end a training run.
  const auto lock = TRY(OwnerLock::Take(database, kLockWait));
  RemoveSocketFolder(lock->former().address);
  const auto service = TRY(LocalService::Start(database, LocalService::Access::kReadWrite));
  SessionOptions session;
  session.service.address = service->address();
  {
    const auto client = TRY(Client::Connect(session.service));
    const auto studies = TRY(AllStudies(*client));
    for (const v1::Study& study : studies) {
      if (study.counts().running() == 0) continue;
      const Recovered recovered =
          TRY(RecoverRun(*client, study.spec().name(), folder, "run", kRecovery));
      if (recovered.requeued_trials > 0 && !options.json) {
        Print("the run before did not end properly: " + std::to_string(recovered.requeued_trials) +
              " trials are queued again\n");
      }
    }
  }
  TRY(lock->Announce(service->address()));
  session.worker_prefix = "run";
  session.trials_folder = folder;
  session.database = database;
  session.how_to_go_on =
      "jizi run " + Quoted(options.sweep_file) +
      (options.target.database.empty() ? "" : " --db " + Quoted(options.target.database)) +
      " --resume";
  session.resume = options.resume;
  session.json = options.json;
  session.slots = sweep.workers;
  session.timeout = options.timeout;
  return RunSession(sweep, session, *supervisor, signals);
}

enum class Joining { kRun, kWorker };

StatusOr<ExitCode> RunOnServer(const RunOptions& options, Joining joining) {
  const Sweep sweep = TRY(ReadForRun(options));
  const std::string stem = std::filesystem::path(options.sweep_file).stem().string();
  const std::string beside = TRY(Absolute(stem));
  const std::string folder = TRY(MakeTrialsFolder(beside));
  // One lock a worker: workers of one study run side by side.
  const std::string lock_file = folder + "/worker-" + std::to_string(getpid()) + ".supervisor";
  Signals signals;
  const auto supervisor = TRY(Supervisor::Fork(lock_file, kSupervisorWait));
  signal(SIGPIPE, SIG_IGN);
  SessionOptions session;
  session.service = ServerClient(options.target);
  session.worker_prefix = "worker";
  session.trials_folder = folder;
  session.how_to_go_on = std::string("jizi ") + (joining == Joining::kWorker ? "worker " : "run ") +
                         Quoted(options.sweep_file) + " --server " + Quoted(options.target.server) +
                         (joining == Joining::kWorker ? "" : " --resume");
  session.resume = options.resume || joining == Joining::kWorker;
  session.json = options.json;
  session.slots = sweep.workers;
  session.timeout = options.timeout;
  auto code = RunSession(sweep, session, *supervisor, signals);
  unlink(lock_file.c_str());
  return code;
}

ExitCode Done(const StatusOr<ExitCode>& code) {
  if (code.ok()) return *code;
  // Faults of a sweep file come as lines that begin with its name, for editors to jump to.
  if (DetailOf(code.status()).code == "BAD_SWEEP_FILE") {
    PrintError(ForPeople(code.status()));
    return kExitUsage;
  }
  return Complain(code.status());
}

}  // namespace

ExitCode CommandRun(const RunOptions& options) {
  umask(077);
  return Done(options.target.server.empty() ? RunOnFile(options)
                                            : RunOnServer(options, Joining::kRun));
}

ExitCode CommandWorker(const RunOptions& options) {
  umask(077);
  return Done(RunOnServer(options, Joining::kWorker));
}

}  // namespace jizi::tuner
