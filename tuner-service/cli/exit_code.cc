#include "tuner-service/cli/exit_code.h"

#include "tuner-service/cli/terminal.h"
#include "tuner-service/cli/text.h"

namespace jizi::tuner {

ExitCode ExitCodeFor(const Status& status) {
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

ExitCode Complain(const Status& status) {
  const std::string code = DetailOf(status).code;
  if (code == "OUTPUT_CLOSED") return kExitOk;  // `| head` has what it wanted.
  if (code == "BAD_SWEEP_FILE") {
    // Lines that begin with the file's name, for editors to jump to.
    PrintError(ForPeople(status));
  } else {
    // Names that others chose may hold what moves the cursor, and be long.
    PrintError(Fit("jizi: " + ForPeople(status), 2000));
  }
  return ExitCodeFor(status);
}

ExitCode Done(const Status& status) {
  return status.ok() ? kExitOk : Complain(status);
}

ExitCode Done(const StatusOr<ExitCode>& code) {
  return code.ok() ? *code : Complain(code.status());
}

}  // namespace jizi::tuner
