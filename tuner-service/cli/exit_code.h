#pragma once
// exit_code.h - what scripts get (README.md and --help list them), and how a command ends.

#include "base/status.h"

namespace jizi::tuner {

enum ExitCode : int {
  kExitOk = 0,
  kExitNoResult = 1,       // The study ended, and no trial has a result.
  kExitUsage = 2,          // The command line, the sweep file, or a value is wrong.
  kExitUnreachable = 3,    // No service there, or the owner of the file is silent.
  kExitRefused = 4,        // It exists already, or not; or its state forbids it.
  kExitDatabase = 5,       // The database is damaged, full, locked, or cannot be written.
  kExitOutput = 6,         // The output could not be written: it is not whole.
  kExitEnd = 7,            // `report`: the trial is to end; `suggest`: there are no more trials.
  kExitNothingYet = 8,     // `suggest`: no trial now, though one may come.
  kExitInterrupted = 130,  // Ctrl-C.
  kExitTerminated = 143,   // SIGTERM or SIGHUP.
};

ExitCode ExitCodeFor(const Status& status);

// Prints an error for a person on stderr and returns its exit code. A reader of our output that
// went away is none.
ExitCode Complain(const Status& status);
// How every command ends.
ExitCode Done(const Status& status);
ExitCode Done(const StatusOr<ExitCode>& code);

}  // namespace jizi::tuner
