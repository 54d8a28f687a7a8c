#include "tuner-service/rpc/listen.h"

#include <fcntl.h>
#include <netdb.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace jizi::tuner {
namespace {

constexpr char kUnixPrefix[] = "unix:";

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string Reason(int error) {
  return std::strerror(error);
}

Status SocketFolder(const std::string& folder, const std::string& wrong) {
  return Error(StatusCode::kPermissionDenied, "the socket's folder " + folder + " " + wrong,
               {"SOCKET_FOLDER", folder,
                "use a folder that is yours alone (mode 0700), or one that does not exist yet"});
}

Status PrepareFolder(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(folder).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return SocketFolder(folder, "cannot be made: " + Reason(errno));
  }
  struct stat found{};
  if (stat(folder.c_str(), &found) != 0)
    return SocketFolder(folder, "cannot be read: " + Reason(errno));
  if (!S_ISDIR(found.st_mode)) return SocketFolder(folder, "is no folder");
  if (found.st_uid != geteuid()) return SocketFolder(folder, "belongs to another user");
  // Between bind and chmod the socket has the mode of the umask: the folder is what keeps others
  // out.
  if ((found.st_mode & 0077U) != 0) return SocketFolder(folder, "is open to other users");
  return absl::OkStatus();
}

// Does somebody listen at this path? Nonblocking: a full backlog is somebody too.
bool Answers(const std::string& path) {
  const Descriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
    return true;
  return errno != ECONNREFUSED && errno != ENOENT;
}

StatusOr<std::string> ReadPem(const std::string& path, const char* what) {
  std::ifstream file(path, std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (path.empty() || !file || content.empty()) {
    return Error(
        StatusCode::kInvalidArgument,
        std::string("cannot read the TLS ") + what + " \"" + path + "\"",
        {"TLS_FILES", path, "give both a certificate and its key, as PEM files that you can read"});
  }
  return content;
}

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
Bio BioOf(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
}

}  // namespace

StatusOr<Listen> ParseListen(const std::string& address) {
  if (address.rfind(kUnixPrefix, 0) == 0) {
    std::string path = address.substr(sizeof(kUnixPrefix) - 1);
    if (path.rfind("//", 0) == 0) path = path.substr(2);  // unix:///absolute
    if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path) ||
        path.find('\0') != std::string::npos) {
      return Error(
          StatusCode::kInvalidArgument,
          "the socket's path \"" + path + "\" has " + std::to_string(path.size()) + " bytes",
          {"ADDRESS", address, "a Unix socket's path has 1 to 107 bytes: use a shorter folder"});
    }
    return Listen{true, path, "", 0};
  }
  const size_t colon = address.rfind(':');
  Listen listen;
  bool valid = colon != std::string::npos && colon > 0 && colon + 1 < address.size();
  if (valid) {
    listen.host = address.substr(0, colon);
    const char* end = address.data() + address.size();
    const auto parsed = std::from_chars(address.data() + colon + 1, end, listen.port);
    valid =
        parsed.ptr == end && parsed.ec == std::errc() && listen.port >= 0 && listen.port <= 65535;
    // "::1:8470" could mean anything.
    valid = valid && (listen.host.find(':') == std::string::npos || listen.host.front() == '[');
  }
  if (!valid) {
    return Error(StatusCode::kInvalidArgument, "\"" + address + "\" is no address to listen at",
                 {"ADDRESS", address,
                  "write unix:/path/to/socket, 127.0.0.1:8470 or [::1]:8470; port 0 picks one"});
  }
  return listen;
}

Status PrepareUnixSocket(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  TRY(PrepareFolder(folder.empty() ? "." : folder));
  struct stat found{};
  if (lstat(path.c_str(), &found) != 0) return absl::OkStatus();
  if (!S_ISSOCK(found.st_mode)) {
    return Error(StatusCode::kInvalidArgument, path + " exists and is no socket",
                 {"ADDRESS", path, "choose another path"});
  }
  if (Answers(path)) {
    return Error(StatusCode::kAlreadyExists, "another server listens at " + path,
                 {"SOCKET_IN_USE", path, "use that server, end it, or choose another path"});
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return SocketFolder(folder, "does not let the old socket be removed: " + Reason(errno));
  }
  return absl::OkStatus();
}

Status CheckPort(const Listen& listen) {
  std::string host = listen.host;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* resolved = nullptr;
  const int failed =
      getaddrinfo(host.c_str(), std::to_string(listen.port).c_str(), &hints, &resolved);
  if (failed != 0) {
    return Error(StatusCode::kInvalidArgument,
                 "the host \"" + host + "\" is not known: " + gai_strerror(failed),
                 {"ADDRESS", host, "listen at an address of this machine, such as 127.0.0.1"});
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(resolved, &freeaddrinfo);
  int bound = 0;
  int last_error = EADDRNOTAVAIL;
  for (const addrinfo* at = resolved; at != nullptr; at = at->ai_next) {
    const Descriptor probe(socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(probe.get(), at->ai_addr, at->ai_addrlen) == 0) {
      ++bound;
      continue;
    }
    last_error = errno;
    if (last_error == EADDRINUSE) {
      const std::string place = listen.host + ":" + std::to_string(listen.port);
      return Error(
          StatusCode::kAlreadyExists, place + " is in use by another program",
          {"PORT_IN_USE", place, "choose another port with --listen, or 0 to have one picked"});
    }
  }
  if (bound > 0) return absl::OkStatus();
  return Error(
      StatusCode::kInvalidArgument,
      "cannot listen at " + listen.host + ":" + std::to_string(listen.port) + ": " +
          Reason(last_error),
      {"ADDRESS", listen.host, "listen at an address of this machine and a port above 1023"});
}

StatusOr<TlsTexts> ReadTls(const TlsFiles& files) {
  TlsTexts texts;
  texts.certificates = TRY(ReadPem(files.certificate_file, "certificate"));
  texts.key = TRY(ReadPem(files.key_file, "key"));
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(BioOf(texts.certificates).get(), nullptr, nullptr, nullptr), &X509_free);
  // No passphrase is asked for: an encrypted key is no key here.
  char no_passphrase[] = "";
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(BioOf(texts.key).get(), nullptr, nullptr, no_passphrase),
      &EVP_PKEY_free);
  const bool matching = certificate != nullptr && key != nullptr &&
                        X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (matching) return texts;
  const bool bad_certificate = certificate == nullptr;
  const std::string wrong = bad_certificate ? files.certificate_file + " holds no certificate"
                            : key == nullptr
                                ? files.key_file + " holds no unencrypted key"
                                : files.key_file + " is not the key of " + files.certificate_file;
  return Error(StatusCode::kInvalidArgument, wrong,
               {"TLS_FILES", bad_certificate ? files.certificate_file : files.key_file,
                "give a PEM certificate and the unencrypted PEM key that belongs to it"});
}

}  // namespace jizi::tuner
