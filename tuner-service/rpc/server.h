#pragma once
// server.h - the TuneService over gRPC: Unix socket or TCP, health checking and reflection on.
// Fails: Start: AlreadyExists PORT_IN_USE or SOCKET_IN_USE, InvalidArgument (address, TLS files,
// log file), PermissionDenied SOCKET_FOLDER. Calls: Unauthenticated TOKEN_MISSING or TOKEN_WRONG,
// FailedPrecondition VERSION_MISMATCH, and what the engine says. No reachable input ends the
// server. Threads: gRPC's callback threads convert, enqueue and return; none ever waits. Answers
// leave on the engine's committer thread, but for lists, whole trials and streams: those are put
// together on one thread aside, so that a large page holds up no commit. The engine must outlive
// the server.

#include <chrono>
#include <memory>
#include <string>

#include "base/status.h"
#include "tuner-service/engine/engine.h"

namespace jizi::tuner {

// One key=value line for each call that the level takes; written by a thread of its own, which
// drops lines rather than wait.
enum class CallLog {
  kOff,
  kFailures,  // Calls that failed for a reason of ours: Internal, Unavailable, DataLoss, Unknown;
              // at most 20 lines in 10 s, then left_out=N in the next one.
  kAll,       // And, at shutdown, a line of counters for each method.
};

struct ServerOptions {
  std::string listen;  // "unix:/path" (folder made with mode 0700, socket 0600) or "host:port";
                       // port 0 picks one.
  std::string token;   // Required of every call when not empty; health checking and reflection
                       // answer without.
  std::string certificate_file;  // With key_file: TLS.
  std::string key_file;
  CallLog log = CallLog::kFailures;
  std::string log_file;  // Appended to; empty: stderr.
};

class Server {
 public:
  static StatusOr<std::unique_ptr<Server>> Start(Engine& engine, const ServerOptions& options);
  virtual ~Server() = default;              // Shutdown(0) if not done.
  virtual std::string address() const = 0;  // As clients give it, with the port that was picked.
  // Health goes NOT_SERVING, streams end, waiting calls are answered until the deadline.
  virtual void Shutdown(std::chrono::milliseconds drain) = 0;
};

}  // namespace jizi::tuner
