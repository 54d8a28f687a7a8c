#pragma once
// connect.h - from --db or --server to a client: the file itself, the owner of the file, or a
// server (docs/contracts.md, 16). Fails: InvalidArgument NO_TARGET; NotFound
// NO_DATABASE; Unavailable OWNER_SILENT with the owner's pid; what the service says. Threads: from
// one thread.

#include <memory>
#include <string>

#include "base/status.h"
#include "proto/client.h"
#include "tuner-service/cli/local_service.h"
#include "tuner-service/cli/owner.h"

namespace jizi::tuner {

inline constexpr std::chrono::milliseconds kOwnerSilent{2000};

struct Target {
  std::string database;  // --db
  std::string server;    // --server
  std::string token_file;
  std::string ca_file;
};

// Reads may fall back to a connection that only reads; following an unowned file is one from the
// start, so that `run` can have the file meanwhile.
// kCreate is a change whose file need not be there.
enum class Purpose { kRead, kFollow, kChange, kCreate };

// Members in the order of their making: the client goes before the service, the service before the
// lock.
struct ServiceConnection {
  std::unique_ptr<OwnerLock> lock;
  std::unique_ptr<LocalService> local;
  std::unique_ptr<Client> client;
  std::string note;  // What a person should know, for example that this is the file's state without
                     // its owner.
};

// With absolute paths: programs get the same, in folders of their own.
ClientOptions ServerClient(const Target& target);
StatusOr<ServiceConnection> Connect(const Target& target, Purpose purpose);

// Makes database absolute; where neither is given, `STUDY.db` in this folder, as `jizi run
// STUDY.yaml` makes it, else the only database of this folder.
StatusOr<Target> Resolved(Target target, const std::string& study);

// Does something answer there within the deadline?
Status Probe(Client& client, std::chrono::milliseconds deadline);

}  // namespace jizi::tuner
