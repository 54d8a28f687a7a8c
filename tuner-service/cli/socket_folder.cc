#include "tuner-service/cli/socket_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace jizi::tuner {
namespace {

constexpr char kPrefix[] = "jizi-";
constexpr size_t kNameLength = sizeof kPrefix - 1 + 6;  // mkdtemp's six.
constexpr char kSocket[] = "socket";
constexpr size_t kLongestRoot = 64;  // sun_path has 108 bytes.
constexpr int kMostLeftOver = 1000;
constexpr time_t kStarting_s = 60;  // A folder this young may be an owner's that has no lock yet.

std::string Root() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const bool usable = runtime != nullptr && *runtime == '/' &&
                      std::strlen(runtime) <= kLongestRoot && access(runtime, W_OK | X_OK) == 0;
  return usable ? runtime : "/tmp";
}

// Nothing but the socket stands in it.
bool HoldsOnlyASocket(const std::string& folder) {
  DIR* const entries = opendir(folder.c_str());
  if (entries == nullptr) return false;
  bool socket = false;
  bool other = false;
  while (const dirent* entry = readdir(entries)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    (name == kSocket ? socket : other) = true;
  }
  closedir(entries);
  struct stat status{};
  return socket && !other && lstat((folder + "/" + kSocket).c_str(), &status) == 0 &&
         S_ISSOCK(status.st_mode);
}

// The kernel says that no process listens there. One that is stopped or busy still does.
bool NobodyListens(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const bool refused =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno == ECONNREFUSED;
  close(fd);
  return refused;
}

bool IsLeftOver(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat status{};
  const bool dead =
      fstat(fd, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & 0777) == 0700 &&
      status.st_mtime + kStarting_s < std::time(nullptr) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
      HoldsOnlyASocket(folder) && NobodyListens(folder + "/" + kSocket);
  close(fd);
  return dead;
}

}  // namespace

StatusOr<std::unique_ptr<SocketFolder>> SocketFolder::Make() {
  const std::string root = Root();
  RemoveLeftOverSocketFolders(root);
  std::string folder = root + "/" + kPrefix + "XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {  // Mode 0700.
    return Error(StatusCode::kPermissionDenied,
                 "cannot make a folder for the socket (" + folder + "): " + std::strerror(errno),
                 {"SOCKET_FOLDER", folder, "make /tmp writable, or set XDG_RUNTIME_DIR"});
  }
  // Without the lock (a file system that has none) the socket alone tells that we live.
  const int lock = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock >= 0) flock(lock, LOCK_EX | LOCK_NB);
  return std::unique_ptr<SocketFolder>(new SocketFolder(std::move(folder), lock));
}

SocketFolder::~SocketFolder() {
  RemoveSocketFolder(address());
  if (lock_ >= 0) close(lock_);
}

std::string SocketFolder::address() const {
  return "unix:" + folder_ + "/" + kSocket;
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

int RemoveLeftOverSocketFolders(const std::string& root) {
  DIR* const entries = opendir(root.c_str());
  if (entries == nullptr) return 0;
  std::vector<std::string> folders;
  while (const dirent* entry = readdir(entries)) {
    const std::string name = entry->d_name;
    if (name.size() != kNameLength || name.rfind(kPrefix, 0) != 0) continue;
    folders.push_back(root + "/" + name);
    if (folders.size() == kMostLeftOver) break;
  }
  closedir(entries);
  int removed = 0;
  for (const std::string& folder : folders) {
    if (!IsLeftOver(folder)) continue;
    RemoveSocketFolder("unix:" + folder + "/" + kSocket);
    ++removed;
  }
  return removed;
}

}  // namespace jizi::tuner
