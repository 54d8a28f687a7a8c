#include "tuner-service/cli/local_service.h"

#include <cstdlib>

#include "tuner-service/cli/exit_code.h"
#include "tuner-service/cli/terminal.h"
#include "tuner-service/store/store.h"

namespace jizi::tuner {
namespace {

constexpr std::chrono::milliseconds kDrain{5000};
void Fatal(const Status& status) {
  PrintError("jizi: the database is lost: " + ForPeople(status));
  std::_Exit(kExitDatabase);  // No destructor may wait for the store.
}

}  // namespace

StatusOr<std::unique_ptr<LocalService>> LocalService::Start(const std::string& database,
                                                            Options options) {
  SqliteOptions store_options;
  store_options.path = database;
  store_options.read_only = options.access == Access::kReadOnly;
  std::unique_ptr<Store> store = TRY(OpenSqliteStore(store_options));
  if (options.on_store) store = MakeNotedStore(std::move(store), database, options.on_store);
  return StartOn(std::move(store), std::move(options));
}

StatusOr<std::unique_ptr<LocalService>> LocalService::StartInMemory(Options options) {
  return StartOn(MakeMemoryStore(), std::move(options));
}

StatusOr<std::unique_ptr<LocalService>> LocalService::StartOn(std::unique_ptr<Store> store,
                                                              Options options) {
  auto service = std::unique_ptr<LocalService>(new LocalService());
  EngineOptions engine_options;
  engine_options.on_fatal = Fatal;
  engine_options.read_only = options.access == Access::kReadOnly;
  engine_options.on_error = std::move(options.on_error);
  service->engine_ = TRY(Engine::Start(std::move(store), engine_options));
  service->folder_ = TRY(SocketFolder::Make());
  ServerOptions server_options;
  server_options.listen = service->folder_->address();
  server_options.log = options.log;
  server_options.log_file = options.log_file;
  service->server_ = TRY(Server::Start(*service->engine_, server_options));
  service->address_ = service->server_->address();
  return service;
}

LocalService::~LocalService() {
  if (server_) server_->Shutdown(kDrain);
  server_.reset();
  if (engine_) engine_->Shutdown(kDrain);
  engine_.reset();
}

}  // namespace jizi::tuner
