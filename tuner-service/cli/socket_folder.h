#pragma once
// socket_folder.h - the folder of an owner's socket: short, private, and gone with its owner.
//   /run/user/1000/jizi-x3Fa9b/socket
// Its owner holds a flock on the folder for as long as it lives. What a killed one left over is
// removed by the next that starts: only where the folder is ours, nobody holds its lock, and nobody
// answers at its socket. Fails: PermissionDenied SOCKET_FOLDER. Threads: from one thread.
// Cost: one look at each jizi-* of the folder above, at most kMostLeftOver.

#include <memory>
#include <string>

#include "base/status.h"

namespace jizi::tuner {

class SocketFolder {
 public:
  // Under XDG_RUNTIME_DIR where it is usable, else under /tmp; mode 0700.
  static StatusOr<std::unique_ptr<SocketFolder>> Make();
  ~SocketFolder();
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  std::string address() const;  // "unix:/run/user/1000/jizi-x3Fa9b/socket"

 private:
  SocketFolder(std::string folder, int lock) : folder_(std::move(folder)), lock_(lock) {}
  const std::string folder_;
  const int lock_;
};

// Of an owner that was killed, as its lock file names it: only what SocketFolder makes, and only if
// it is ours.
void RemoveSocketFolder(const std::string& address);

// Those of dead owners in `root`; how many there were.
int RemoveLeftOverSocketFolders(const std::string& root);

}  // namespace jizi::tuner
