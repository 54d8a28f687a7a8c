#include "tuner-service/cli/connect.h"

#include <filesystem>

#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

constexpr std::chrono::milliseconds kBriefly{
    200};  // A command that only looks holds the lock no longer.

bool Silent(const Status& status) {
  return status.code() == StatusCode::kUnavailable ||
         status.code() == StatusCode::kDeadlineExceeded;
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
  connection.local = TRY(LocalService::Start(database, LocalService::Access::kReadOnly));
  connection.client = TRY(Client::Connect({connection.local->address(), "", ""}));
  return connection;
}

StatusOr<ServiceConnection> ToOwner(const std::string& database, Purpose purpose) {
  const Owner owner = ReadOwner(database, kOwnerSilent);
  Status status = OwnerSilent(database, owner);
  if (!owner.address.empty()) {
    ServiceConnection connection;
    connection.client = TRY(Client::Connect({owner.address, "", ""}));
    const Status probe = Probe(*connection.client, kOwnerSilent);
    if (probe.ok()) return connection;
    if (!Silent(probe)) return probe;
  }
  if (purpose == Purpose::kChange) return status;
  return ReadOnly(database, std::string(status.message()) + "; this is what the file says");
}

}  // namespace

ClientOptions ServerClient(const Target& target) {
  ClientOptions options = ClientOptionsFromEnvironment(target.server);
  if (!target.token_file.empty()) options.token_file = target.token_file;
  if (!target.ca_file.empty()) options.ca_file = target.ca_file;
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
    target.database = study + ".db";
    std::error_code error;
    if (study.empty() || study.find('/') != std::string::npos || study.size() > 200 ||
        !std::filesystem::exists(target.database, error)) {
      return Error(
          StatusCode::kInvalidArgument,
          "which database?" +
              (study.empty() ? std::string() : " There is no " + Shown(study) + ".db here"),
          {"NO_TARGET", study, "give --db FILE or --server ADDRESS"});
    }
  }
  std::error_code error;
  const auto absolute = std::filesystem::absolute(target.database, error);
  if (!error) target.database = absolute.lexically_normal().string();
  return target;
}

StatusOr<ServiceConnection> Connect(const Target& target, Purpose purpose) {
  if (!target.server.empty()) {
    ServiceConnection connection;
    connection.client = TRY(Client::Connect(ServerClient(target)));
    return connection;
  }
  std::error_code error;
  if (!std::filesystem::exists(target.database, error)) {
    return Error(StatusCode::kNotFound, "there is no database " + target.database,
                 {"NO_DATABASE", target.database, "`jizi run` and `jizi serve` make one"});
  }
  auto lock = OwnerLock::Take(target.database, kBriefly);
  if (!lock.ok()) {
    if (DetailOf(lock.status()).code == "FILE_OWNED") return ToOwner(target.database, purpose);
    // A folder that cannot be written is no reason not to read.
    if (purpose == Purpose::kRead) return ReadOnly(target.database, "");
    return lock.status();
  }
  RemoveSocketFolder((*lock)->former().address);
  ServiceConnection connection;
  connection.lock = *std::move(lock);
  auto local = LocalService::Start(target.database, LocalService::Access::kReadWrite);
  if (!local.ok()) {
    if (purpose == Purpose::kRead && local.status().code() == StatusCode::kFailedPrecondition) {
      return ReadOnly(target.database, "");
    }
    return local.status();
  }
  connection.local = *std::move(local);
  if (Status status = connection.lock->Announce(connection.local->address()); !status.ok())
    return status;
  connection.client = TRY(Client::Connect({connection.local->address(), "", ""}));
  return connection;
}

}  // namespace jizi::tuner
