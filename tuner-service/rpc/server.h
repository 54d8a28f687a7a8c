#pragma once
// server.h - the TuneService over gRPC: Unix socket or TCP, health checking and reflection on.
// Fails: Start: AlreadyExists PORT_IN_USE, InvalidArgument (address, TLS files), PermissionDenied (socket's folder).
// Threads: gRPC's callback threads convert, enqueue and return; none ever waits.

#include <chrono>
#include <memory>
#include <string>

#include "base/status.h"
#include "tuner-service/engine/engine.h"

namespace jizi::tuner {

struct ServerOptions {
  std::string listen;        // "unix:/path" (folder made with mode 0700, socket 0600) or "host:port"; port 0 picks one.
  std::string token;         // Required of every call when not empty.
  std::string certificate_file;  // With key_file: TLS.
  std::string key_file;
};

class Server {
 public:
  static StatusOr<std::unique_ptr<Server>> Start(Engine& engine, const ServerOptions& options);
  virtual ~Server() = default;
  virtual std::string address() const = 0;  // As clients give it, with the port that was picked.
  // Health goes NOT_SERVING, streams end, waiting calls are answered until the deadline.
  virtual void Shutdown(std::chrono::milliseconds drain) = 0;
};

}  // namespace jizi::tuner
