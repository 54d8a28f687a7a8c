#pragma once
// session.h - a study from its creation to its end as one person sees it: worker, live view,
// signals, and the summary. The same for `jizi run` on a file, `jizi run --server` and `jizi
// worker`; the service is only met over the wire. Threads: from the main thread.

#include <string>

#include "proto/client.h"
#include "tuner-service/cli/commands.h"
#include "tuner-service/cli/note_box.h"
#include "tuner-service/cli/signals.h"
#include "tuner-service/cli/sweep_file.h"
#include "tuner-service/workers/supervisor.h"

namespace jizi::tuner {

struct SessionOptions {
  ClientOptions service;
  std::string worker_prefix;  // "run" for the owner of a file, else "worker".
  std::string trials_folder;  // Absolute.
  std::string how_to_go_on;   // The command for it, said at the end.
  std::string database;       // Said at the end; empty on a server.
  std::string target_words;   // " --db x.db": for other commands on the same study.
  bool resume = false;        // Creates or continues.
  bool join = false;          // Creates, or takes part in what is there, as it is.
  bool json = false;
  int slots = 1;
  std::optional<std::chrono::duration<double>> timeout;
};

// Fails: what the service says to the study; Unavailable if it stays away. An ended study is a
// code, not an error.
StatusOr<ExitCode> RunSession(const Sweep& sweep, const SessionOptions& options, NoteBox& notes,
                              Supervisor& supervisor, Signals& signals);

}  // namespace jizi::tuner
