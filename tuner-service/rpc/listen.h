#pragma once
// listen.h - the place to listen at, checked before gRPC gets it: gRPC says neither why it cannot
// listen, nor that somebody else does. Fails: InvalidArgument ADDRESS, TLS_FILES; AlreadyExists
// PORT_IN_USE, SOCKET_IN_USE; PermissionDenied SOCKET_FOLDER. Threads: any.   Cost: a few system
// calls, no wait.

#include <memory>
#include <string>

#include "base/status.h"

namespace jizi::tuner {

struct Listen {
  bool is_unix = false;
  std::string path;  // Of a Unix socket.
  std::string host;  // Else. Brackets of an IPv6 address stay.
  int port = 0;
};
StatusOr<Listen> ParseListen(const std::string& address);

// Makes the folder (0700) where there is none, refuses one that others may enter or that is
// somebody else's, and removes a socket that nobody answers at.
Status PrepareUnixSocket(const std::string& path);

// Is the port free at every address of the host?
Status CheckPort(const Listen& listen);

struct TlsFiles {
  std::string certificate_file;
  std::string key_file;
};
struct TlsTexts {
  std::string certificates;  // PEM, the chain.
  std::string key;
};
// Read, and checked to belong together.
StatusOr<TlsTexts> ReadTls(const TlsFiles& files);

}  // namespace jizi::tuner
