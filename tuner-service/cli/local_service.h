#pragma once
// local_service.h - the service in this process: store, engine, and a server on a Unix socket in a
// folder of mode 0700. A store that is lost ends the process with kExitDatabase (docs/contracts.md,
// 3); the supervisor then ends the trials. Fails: what the store, the engine and the server say.
// Threads: from one thread.

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "proto/client.h"
#include "tuner-service/cli/noted_store.h"
#include "tuner-service/cli/owner.h"
#include "tuner-service/cli/socket_folder.h"
#include "tuner-service/engine/engine.h"
#include "tuner-service/rpc/server.h"

namespace jizi::tuner {

class LocalService {
 public:
  enum class Access { kReadWrite, kReadOnly };
  struct Options {
    Access access = Access::kReadWrite;
    CallLog log = CallLog::kOff;  // Of the private socket; a live view may own the terminal.
    std::string log_file;
    // A scheduler failed where no call waits for it, or a study cannot be read; on the engine's
    // thread, or within Start.
    std::function<void(const Status&)> on_error = nullptr;
    // The file cannot be written, or can again (noted_store.h); on the committer's thread.
    StoreNote on_store = nullptr;
  };

  // The lock stays with the caller.
  static StatusOr<std::unique_ptr<LocalService>> Start(const std::string& database,
                                                       Options options);
  // Nothing is kept: for as long as this process lives.
  static StatusOr<std::unique_ptr<LocalService>> StartInMemory(Options options);
  ~LocalService();  // Shutdown, and the socket's folder is removed.
  LocalService(const LocalService&) = delete;
  LocalService& operator=(const LocalService&) = delete;

  const std::string& address() const { return address_; }
  Engine& engine() { return *engine_; }

 private:
  LocalService() = default;
  static StatusOr<std::unique_ptr<LocalService>> StartOn(std::unique_ptr<Store> store,
                                                         Options options);
  std::unique_ptr<SocketFolder> folder_;
  std::string address_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Server> server_;
};

}  // namespace jizi::tuner
