// command_run.cc - `jizi run` and `jizi worker`. The order matters: the supervisor is forked while
// this process has one thread and no lock; then the file's lock, the service, what a killed owner
// left behind, and the session (docs/contracts.md, 16, 17).

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "schedulers/scheduler.h"
#include "tuner-service/cli/commands.h"
#include "tuner-service/cli/note_box.h"
#include "tuner-service/cli/run_files.h"
#include "tuner-service/cli/session.h"
#include "tuner-service/cli/sweep_file.h"
#include "tuner-service/cli/take_over.h"
#include "tuner-service/cli/terminal.h"
#include "tuner-service/cli/text.h"
#include "tuner-service/store/store.h"
#include "tuner-service/workers/supervisor.h"

namespace jizi::tuner {
namespace {

enum class Joining { kRun, kWorker };

StatusOr<Sweep> ReadForRun(const RunOptions& options) {
  Sweep sweep = TRY(ReadSweepFile(options.sweep_file, CheckCommand));
  if (options.workers) sweep.workers = *options.workers;
  if (options.seed) sweep.study.seed = *options.seed;
  if (options.max_trials) sweep.study.budget.run_cap = *options.max_trials;
  TRY(MakeScheduler(sweep.study));  // A method that is not here: names those that are.
  if (const Status status = CheckCommand(sweep.launch); !status.ok()) {
    return Error(StatusCode::kInvalidArgument, CommandFault(options.sweep_file, sweep, status),
                 {"BAD_SWEEP_FILE", options.sweep_file, ""});
  }
  for (const SweepNote& note : sweep.notes) {
    PrintError(options.sweep_file + ":" + std::to_string(note.line) + ": note: " + note.text);
  }
  return sweep;
}

StatusOr<std::string> Absolute(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  if (error)
    return Error(StatusCode::kInvalidArgument, path + ": " + error.message(),
                 {"BAD_PATH", path, ""});
  return absolute.lexically_normal().string();
}

// " --db x.db" or " --server a:1 --token-file t": the same place, for another command.
std::string TargetWords(const Target& target) {
  std::string words;
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words += std::string(" ") + flag + " " + ForShell(value);
  };
  add("--db", target.database);
  add("--server", target.server);
  if (target.server.empty()) return words;
  // Also those of this command's environment, which the next one may not have.
  const ClientOptions client = ServerClient(target);
  add("--token-file", client.token_file);
  add("--ca-file", client.ca_file);
  return words;
}

// Everything that was said on the command line: without --seed the study would differ, without
// --max-trials its budget would change.
std::string HowToGoOn(const RunOptions& options, Joining joining) {
  const bool worker = joining == Joining::kWorker;
  std::string line = std::string("jizi ") + (worker ? "worker " : "run ") +
                     ForShell(options.sweep_file) + TargetWords(options.target);
  if (options.workers) line += " --workers " + std::to_string(*options.workers);
  if (options.seed) line += " --seed " + std::to_string(*options.seed);
  if (options.max_trials) line += " --max-trials " + std::to_string(*options.max_trials);
  if (options.timeout) {
    char seconds[64];
    std::snprintf(seconds, sizeof seconds, "%.15g", options.timeout->count());
    line += std::string(" --timeout ") + seconds + "s";
  }
  if (options.json) line += " --json";
  return line + (worker ? "" : " --resume");
}

SessionOptions SessionOf(const RunOptions& options, const Sweep& sweep, Joining joining) {
  SessionOptions session;
  session.how_to_go_on = HowToGoOn(options, joining);
  session.join = joining == Joining::kWorker;
  session.resume = options.resume;
  session.json = options.json;
  session.slots = sweep.workers;
  session.timeout = options.timeout;
  return session;
}

// Ctrl-C and the like before the session is there to handle them.
struct Interruption {
  Signals& signals;
  std::optional<int> signal;
  bool operator()() {
    if (!signal) signal = signals.Wait(std::chrono::milliseconds(0));
    return signal.has_value();
  }
  ExitCode code() const { return *signal == SIGINT ? kExitInterrupted : kExitTerminated; }
};

// Waits for the former run's supervisor, but not for one of a run that took the file meanwhile.
StatusOr<std::unique_ptr<Supervisor>> ForkForFile(const std::string& database, mode_t mask,
                                                  Interruption& interrupted) {
  ForkOptions fork_options;
  fork_options.program_umask = mask;
  fork_options.stop = [&] {
    return interrupted() || !ReadOwner(database, std::chrono::milliseconds(0)).address.empty();
  };
  auto supervisor = Supervisor::Fork(SupervisorLockOf(database), kSupervisorWait, fork_options);
  if (!supervisor.ok() && !interrupted.signal) {
    const Owner owner = ReadOwner(database, std::chrono::milliseconds(0));
    if (!owner.address.empty()) return OwnedError(database, owner);
  }
  return supervisor;
}

StatusOr<ExitCode> RunOnFile(const RunOptions& options, mode_t mask) {
  Signals signals;  // First: a Ctrl-C from here on has its exit code.
  const Sweep sweep = TRY(ReadForRun(options));
  const std::string by_default = std::filesystem::path(options.sweep_file).stem().string() + ".db";
  const std::string database =
      TRY(Absolute(options.target.database.empty() ? by_default : options.target.database));
  TRY(JudgeDatabase(database, Opening::kToWrite));  // Before anything is made beside it.
  // Asked before the fork, so that the supervisor does not inherit the lock, and that nobody waits
  // for the supervisor of a run that is going on. What stood in it is gone once it is released.
  const std::string left_over = TRY(OwnerLock::Take(database, kOwnerLockWait))->former().address;
  const std::string folder = StudyFolder(TrialsRootOf(database), sweep.study.name);
  TRY(MakeFolder(folder));
  Interruption interrupted{signals, {}};
  auto forked = ForkForFile(database, mask, interrupted);
  if (interrupted.signal) return interrupted.code();
  const auto supervisor = TRY(std::move(forked));
  signal(SIGPIPE, SIG_IGN);  // A closed `| head` must not end a training run.
  const auto lock = TRY(OwnerLock::Take(database, kOwnerLockWait));
  RemoveSocketFolder(left_over);
  NoteBox notes;  // Before the service, whose threads use it.
  LocalService::Options service_options;
  service_options.on_error = [&notes](const Status& status) { notes.Add(ForPeople(status)); };
  service_options.on_store = [&notes](const std::string& note) { notes.Add(note); };
  const auto service = TRY(LocalService::Start(database, service_options));
  const auto recovered =
      RecoverStudies(database, service->address(), [&] { return interrupted(); });
  if (interrupted.signal) return interrupted.code();
  if (TRY(recovered) > 0) {
    PrintError("the run before did not end properly: " + std::to_string(*recovered) +
               " trials are queued again");
  }
  TRY(lock->Announce(service->address()));
  SessionOptions session = SessionOf(options, sweep, Joining::kRun);
  session.service.address = service->address();
  session.worker_prefix = "run";
  session.trials_folder = folder;
  session.database = database;
  session.target_words = " --db " + ForShell(database);
  return RunSession(sweep, session, notes, *supervisor, signals);
}

StatusOr<ExitCode> RunOnServer(const RunOptions& options, Joining joining, mode_t mask) {
  Signals signals;  // First: a Ctrl-C from here on has its exit code.
  const Sweep sweep = TRY(ReadForRun(options));
  const std::string stem = std::filesystem::path(options.sweep_file).stem().string();
  const std::string folder = StudyFolder(TrialsRootOf(TRY(Absolute(stem))), sweep.study.name);
  TRY(MakeFolder(folder));
  // One lock a worker: workers of one study run side by side.
  const std::string lock_file = folder + "/worker-" + std::to_string(getpid()) + ".supervisor";
  Interruption interrupted{signals, {}};
  ForkOptions fork_options;
  fork_options.program_umask = mask;
  fork_options.stop = [&] { return interrupted(); };
  auto forked = Supervisor::Fork(lock_file, kSupervisorWait, fork_options);
  if (interrupted.signal) return interrupted.code();
  const auto supervisor = TRY(std::move(forked));
  signal(SIGPIPE, SIG_IGN);
  SessionOptions session = SessionOf(options, sweep, joining);
  session.service = ServerClient(options.target);
  session.worker_prefix = "worker";
  session.trials_folder = folder;
  session.target_words = TargetWords(options.target);
  NoteBox notes;
  auto code = RunSession(sweep, session, notes, *supervisor, signals);
  unlink(lock_file.c_str());
  return code;
}

}  // namespace

// Ours is narrow: databases and trials' folders are nobody else's. The programs get what we had.
ExitCode CommandRun(const RunOptions& options) {
  const mode_t mask = umask(077);
  return Done(options.target.server.empty() ? RunOnFile(options, mask)
                                            : RunOnServer(options, Joining::kRun, mask));
}

ExitCode CommandWorker(const RunOptions& options) {
  const mode_t mask = umask(077);
  return Done(RunOnServer(options, Joining::kWorker, mask));
}

}  // namespace jizi::tuner
