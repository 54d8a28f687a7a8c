#include "tuner-service/cli/connect.h"

#include <filesystem>

#include "tuner-service/cli/terminal.h"
#include "tuner-service/cli/text.h"
#include "tuner-service/store/store.h"

namespace jizi::tuner {
namespace {

constexpr std::chrono::milliseconds kBriefly{200};    // Commands hold the lock no longer.
constexpr std::chrono::milliseconds kQueued{30'000};  // For the lock, while commands before us end.
constexpr char kUnix[] = "unix:";

bool Writes(Purpose purpose) {
  return purpose == Purpose::kChange || purpose == Purpose::kCreate;
}

bool Silent(const Status& status) {
  return status.code() == StatusCode::kUnavailable ||
         status.code() == StatusCode::kDeadlineExceeded;
}

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

// The only database of this folder; empty if there are none or several.
std::string OnlyDatabaseHere() {
  std::string found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(".", error)) {
    if (entry.path().extension() != ".db") continue;
    if (!found.empty()) return "";
    found = entry.path().filename().string();
  }
  return found;
}

Status OwnerSilent(const std::string& database, const Owner& owner) {
  const std::string who = owner.pid > 0 ? "pid " + std::to_string(owner.pid) : "pid unknown";
  return Error(
      StatusCode::kUnavailable,
      "the owner of " + database + " (" + who + ") has not answered for " +
          std::to_string(kOwnerSilent.count() / 1000) + " s",
      {"OWNER_SILENT", database, "is it stopped or busy? end it if it hangs, then try again"});
}

StatusOr<ServiceConnection> ReadOnly(const std::string& database, std::string note) {
  ServiceConnection connection;
  connection.note = std::move(note);
  LocalService::Options options;
  options.access = LocalService::Access::kReadOnly;
  connection.local = TRY(LocalService::Start(database, options));
  connection.client = TRY(Client::Connect({connection.local->address(), "", ""}));
  return connection;
}

// Holding the lock: the service in this process, for as long as the command takes. It is not
// announced: whoever comes meanwhile waits for the lock.
StatusOr<ServiceConnection> AsOwner(const std::string& database, Purpose purpose,
                                    std::unique_ptr<OwnerLock> lock) {
  RemoveSocketFolder(lock->former().address);
  if (purpose == Purpose::kFollow) {
    lock.reset();  // Nothing will happen to it, and `run` may want it.
    if (auto read_only = ReadOnly(database, ""); read_only.ok()) return read_only;
    return Error(StatusCode::kUnavailable, database + " is in use",
                 {"DATABASE_BUSY", database, "try again"});
  }
  LocalService::Options options;
  options.on_error = [](const Status& status) { PrintError("jizi: " + ForPeople(status)); };
  auto local = LocalService::Start(database, options);
  if (!local.ok()) {
    if (!Writes(purpose) && local.status().code() == StatusCode::kFailedPrecondition) {
      return ReadOnly(database, "");
    }
    return local.status();
  }
  ServiceConnection connection;
  connection.lock = std::move(lock);
  connection.local = *std::move(local);
  connection.client = TRY(Client::Connect({connection.local->address(), "", ""}));
  return connection;
}

// The service of a `run` or a `serve`; Unavailable while nothing answers there.
StatusOr<ServiceConnection> ToOwner(const Owner& owner, std::chrono::milliseconds deadline) {
  ServiceConnection connection;
  connection.client = TRY(Client::Connect({owner.address, "", ""}));
  TRY(Probe(*connection.client, deadline));
  return connection;
}

}  // namespace

ClientOptions ServerClient(const Target& target) {
  ClientOptions options = ClientOptionsFromEnvironment(target.server);
  if (!target.token_file.empty()) options.token_file = target.token_file;
  if (!target.ca_file.empty()) options.ca_file = target.ca_file;
  // Programs get them too, and run in folders of their own.
  if (!options.token_file.empty()) options.token_file = AbsolutePath(options.token_file);
  if (!options.ca_file.empty()) options.ca_file = AbsolutePath(options.ca_file);
  if (options.address.rfind(kUnix, 0) == 0 && options.address.size() > sizeof kUnix - 1) {
    const std::string path = options.address.substr(sizeof kUnix - 1);
    if (path[0] != '/') options.address = kUnix + AbsolutePath(path);
  }
  return options;
}

Status Probe(Client& client, std::chrono::milliseconds deadline) {
  v1::ListStudiesRequest request;
  request.set_page_size(1);
  return client.Call(&v1::TuneService::Stub::ListStudies, request, deadline).status();
}

StatusOr<Target> Resolved(Target target, const std::string& study) {
  if (!target.server.empty()) return target;
  if (target.database.empty()) {
    std::error_code error;
    const bool named = !study.empty() && study.find('/') == std::string::npos &&
                       study.size() <= 200 && std::filesystem::exists(study + ".db", error);
    // `jizi run x.yaml` makes x.db, whatever `name:` says.
    target.database = named ? study + ".db" : OnlyDatabaseHere();
    if (target.database.empty()) {
      return Error(
          StatusCode::kInvalidArgument,
          "which database?" + (study.empty() ? std::string()
                                             : " There is no " + Shown(study) +
                                                   ".db here, and not just one other database"),
          {"NO_TARGET", study, "give --db FILE or --server ADDRESS"});
    }
  }
  target.database = AbsolutePath(target.database);
  return target;
}

StatusOr<ServiceConnection> Connect(const Target& target, Purpose purpose) {
  if (!target.server.empty()) {
    ServiceConnection connection;
    connection.client = TRY(Client::Connect(ServerClient(target)));
    return connection;
  }
  std::error_code error;
  if (purpose != Purpose::kCreate && !std::filesystem::exists(target.database, error)) {
    return Error(
        StatusCode::kNotFound, "there is no database " + target.database,
        {"NO_DATABASE", target.database, "`jizi run`, `jizi create` and `jizi serve` make one"});
  }
  const std::string& database = target.database;
  // Before anything is made beside it.
  TRY(JudgeDatabase(database, Writes(purpose) ? Opening::kToWrite : Opening::kToRead));
  const auto begin = std::chrono::steady_clock::now();
  auto silent_since = begin;
  Owner owner;
  while (true) {
    auto lock = OwnerLock::Take(database, kBriefly);
    if (lock.ok()) return AsOwner(database, purpose, *std::move(lock));
    if (DetailOf(lock.status()).code != "FILE_OWNED") {
      // A folder that cannot be written is no reason not to read.
      if (!Writes(purpose)) return ReadOnly(database, "");
      return lock.status();
    }
    const int before = owner.pid;
    owner = ReadOwner(database, std::chrono::milliseconds(0));
    // Commands that take their turns: the queue moves, so we wait for ours.
    if (owner.pid != before && std::chrono::steady_clock::now() - begin < kQueued) {
      silent_since = std::chrono::steady_clock::now();
    }
    if (!owner.address.empty()) {
      auto connection = ToOwner(owner, kOwnerSilent);
      if (connection.ok() || !Silent(connection.status())) return connection;
    }
    if (std::chrono::steady_clock::now() - silent_since >= kOwnerSilent) break;
  }
  const Status silent = OwnerSilent(database, owner);
  if (Writes(purpose)) return silent;
  return ReadOnly(database, std::string(silent.message()) + "; this is what the file says");
}

}  // namespace jizi::tuner
