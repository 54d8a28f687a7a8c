#include "tuner-service/cli/local_service.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tuner-service/cli/exit_code.h"
#include "tuner-service/cli/terminal.h"
#include "tuner-service/store/store.h"

namespace jizi::tuner {
namespace {

constexpr std::chrono::milliseconds kDrain{5000};
constexpr char kPrefix[] = "jizi-";
constexpr char kSocket[] = "socket";
constexpr size_t kLongestRoot = 64;  // sun_path has 108 bytes.

// A folder of our own, with a short path: the database's own may be longer than a socket's path can
// be.
StatusOr<std::string> MakeSocketFolder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const bool usable = runtime != nullptr && *runtime == '/' &&
                      std::strlen(runtime) <= kLongestRoot && access(runtime, W_OK | X_OK) == 0;
  std::string folder = std::string(usable ? runtime : "/tmp") + "/" + kPrefix + "XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {  // Mode 0700.
    return Error(StatusCode::kPermissionDenied,
                 "cannot make a folder for the socket (" + folder + "): " + std::strerror(errno),
                 {"SOCKET_FOLDER", folder, "make /tmp writable, or set XDG_RUNTIME_DIR"});
  }
  return folder;
}

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
  auto service = std::unique_ptr<LocalService>(new LocalService());
  EngineOptions engine_options;
  engine_options.on_fatal = Fatal;
  engine_options.read_only = store_options.read_only;
  engine_options.on_error = std::move(options.on_error);
  service->engine_ = TRY(Engine::Start(std::move(store), engine_options));
  service->folder_ = TRY(MakeSocketFolder());
  ServerOptions server_options;
  server_options.listen = "unix:" + service->folder_ + "/" + kSocket;
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
  if (!folder_.empty()) RemoveSocketFolder("unix:" + folder_ + "/" + kSocket);
}

void RemoveSocketFolder(const std::string& address) {
  if (address.rfind("unix:/", 0) != 0) return;
  const std::filesystem::path socket = address.substr(std::strlen("unix:"));
  const std::filesystem::path folder = socket.parent_path();
  if (socket.filename() != kSocket || folder.filename().string().rfind(kPrefix, 0) != 0) return;
  struct stat status{};
  if (lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != getuid())
    return;
  unlink(socket.c_str());
  rmdir(folder.c_str());
}

}  // namespace jizi::tuner
