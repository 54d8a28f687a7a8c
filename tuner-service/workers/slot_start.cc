// How a slot starts an attempt's program: folder, files, command, environment.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tuner-service/workers/attempt_environment.h"
#include "tuner-service/workers/host_fault.h"
#include "tuner-service/workers/random_hex.h"
#include "tuner-service/workers/slot.h"
#include "tuner-service/workers/trial_folder.h"

namespace jizi::tuner {
namespace {

// 0, or why not.
int WriteFile(const std::string& path, const std::string& text) {
  const int file =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
           0600);  // Not waiting for the reader of a FIFO that a program put there.
  if (file < 0) return errno;
  size_t done = 0;
  int error = 0;
  while (error == 0 && done < text.size()) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written > 0) done += static_cast<size_t>(written);
    if (written == 0 || (written < 0 && errno != EINTR)) error = written == 0 ? EIO : errno;
  }
  close(file);
  return error;
}

Status CannotWrite(const std::string& path, int error) {
  return HostFault("cannot write " + path + ": " + strerror(error), path, MendOfHost(error));
}

}  // namespace

// The file's path.
StatusOr<std::string> Slot::WriteParams(const std::string& folder, const v1::Trial& trial) {
  const std::string path = folder + "/params.json";
  if (const int error = WriteFile(path, ParamsJson(trial) + "\n"); error != 0) {
    return CannotWrite(path, error);
  }
  return path;
}

// Folder, files, command and environment of an attempt.
Status Slot::Prepare(Running& running, JobSpec& spec) {
  const v1::Trial& trial = running.held.trial();
  running.folder = TRY(MakeTrialFolder(options_.folder, trial.id()));
  const std::string root = std::filesystem::path(running.folder).parent_path().string();
  AttemptPlace place{.worker = place_.worker,
                     .folder = running.folder,
                     .outbox = OutboxPath(root, place_.worker),
                     .warm_start = "",
                     .one_trial = running.one_trial,
                     .output_mark = running.one_trial ? "" : RandomHex64() + RandomHex64()};
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(place.outbox).parent_path(), failed);
  if (running.held.has_warm_start()) {
    const v1::WarmStart& start = running.held.warm_start();
    place.warm_start = TRY(CheckpointPath(root, start.trial(), start.checkpoint().path()));
  }
  if (failed) return CannotWrite(place.outbox, failed.value());
  const std::string params_file = TRY(WriteParams(running.folder, trial));
  spec.slot = place_.index;
  spec.folder = running.folder;
  spec.argv = TRY(ExpandCommand(options_.launch, trial.params(), params_file));
  spec.environment = AttemptEnvironment(options_, running.held, place);
  spec.output_mark = place.output_mark;
  if (spec.argv.empty()) {
    return Error(StatusCode::kInvalidArgument, "the command is empty",
                 {"COMMAND_EMPTY", "command", "name a program"});
  }
  return {};
}

Status Slot::StartJob(Running& running) {
  {
    MutexLock lock(mutex_);
    lines_.clear();
    line_bytes_ = 0;
    lost_lines_ = 0;
    lines_held_ = lines_unread_ = false;
    said_.clear();
    end_.reset();
  }
  JobSpec spec;
  TRY(Prepare(running, spec));
  JobEvents events;
  events.on_line = [this](std::string line) { return KeepLine(std::move(line)); };
  events.on_said = [this](const std::string& line) { KeepSaid(line); };
  events.folder_of = [this](int64_t trial) {
    return MakeTrialFolder(options_.folder, trial).value_or("");
  };
  events.on_end = [this](JobEnd end) {
    MutexLock lock(mutex_);
    end_ = std::move(end);
    changed_.NotifyAll();
  };
  running.job = TRY(executor_.Start(spec, std::move(events)));
  MutexLock lock(mutex_);
  job_ = running.job.get();
  EndStopped();  // Stop may have come while it started.
  return {};
}

}  // namespace jizi::tuner
