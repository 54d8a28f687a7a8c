#pragma once
// exit_code.h - what scripts get. README.md and --help list them.

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
  kExitInterrupted = 130,  // Ctrl-C.
  kExitTerminated = 143,   // SIGTERM or SIGHUP.
};

inline ExitCode ExitCodeFor(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return kExitOk;
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
      return kExitUsage;
    case StatusCode::kUnavailable:
      // The service is there, its disk is not: full, locked by another program, out of memory.
      if (DetailOf(status).code.rfind("STORE_", 0) == 0) return kExitDatabase;
      return kExitUnreachable;
    case StatusCode::kAborted:
      return DetailOf(status).code == "OUTPUT_LOST" ? kExitOutput : kExitRefused;
    case StatusCode::kDeadlineExceeded:
      return kExitUnreachable;
    case StatusCode::kDataLoss:
    case StatusCode::kInternal:
      return kExitDatabase;
    default:
      return kExitRefused;
  }
}

}  // namespace jizi::tuner
