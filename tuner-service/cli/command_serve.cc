// command_serve.cc - `jizi serve`: the owner of a database for workers on other machines.

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "tuner-service/cli/commands.h"
#include "tuner-service/cli/local_service.h"
#include "tuner-service/cli/requests.h"
#include "tuner-service/cli/signals.h"
#include "tuner-service/cli/take_over.h"
#include "tuner-service/cli/terminal.h"
#include "tuner-service/cli/text.h"
#include "tuner-service/store/store.h"

namespace jizi::tuner {
namespace {

constexpr std::chrono::milliseconds kDrain{10'000};
constexpr int kTokenBytes = 32;

bool IsUnix(const std::string& listen) {
  return listen.rfind("unix:", 0) == 0;
}

// A name that only begins like one (127.evil.org) is another host's.
bool IsLoopback(const std::string& listen) {
  const std::string host = listen.substr(0, listen.rfind(':'));
  in_addr address{};
  if (inet_pton(AF_INET, host.c_str(), &address) == 1) return ntohl(address.s_addr) >> 24 == 127;
  return host == "localhost" || host == "[::1]" || host == "::1";
}

Status CheckListen(const ServeOptions& options) {
  if (IsUnix(options.listen)) return absl::OkStatus();
  if (options.listen.rfind(':') == std::string::npos) {
    return Error(StatusCode::kInvalidArgument, "--listen " + options.listen + " has no port",
                 {"BAD_ADDRESS", options.listen, "write HOST:PORT, or unix:/path"});
  }
  if (options.certificate_file.empty() != options.key_file.empty()) {
    return Error(StatusCode::kInvalidArgument, "TLS needs both a certificate and a key",
                 {"TLS_FILES", "", "give --tls-cert FILE and --tls-key FILE"});
  }
  const bool safe =
      IsLoopback(options.listen) || !options.certificate_file.empty() || options.insecure;
  if (safe) return absl::OkStatus();
  return Error(StatusCode::kInvalidArgument,
               "--listen " + options.listen +
                   " is open to other machines, and the token would travel in the clear",
               {"NEEDS_TLS", options.listen,
                "give --tls-cert and --tls-key, or say --insecure on a network that you trust"});
}

// Made once, readable by its owner alone; kept over restarts, so that workers need no new one.
StatusOr<std::string> TokenOf(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd >= 0) {
    const std::string line = RandomHex(kTokenBytes) + "\n";
    const bool written =
        write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && fsync(fd) == 0;
    close(fd);
    if (!written) unlink(path.c_str());
  } else if (errno != EEXIST) {
    return Error(StatusCode::kPermissionDenied,
                 "cannot make the token file " + path + ": " + std::strerror(errno),
                 {"TOKEN_FILE", path, "make its folder writable"});
  }
  std::ifstream file(path);
  std::string token;
  std::getline(file, token);
  if (token.size() < 16) {
    return Error(StatusCode::kFailedPrecondition, "the token file " + path + " holds no token",
                 {"TOKEN_FILE", path, "remove it; a new one is made"});
  }
  return token;
}

// What to type where the workers are, with copies of the files that it names.
std::string WorkersLine(const ServeOptions& options, const std::string& token_file,
                        std::string address) {
  for (const std::string any : {"0.0.0.0:", "[::]:"}) {  // Nobody can call these.
    char host[256] = "HOST";
    gethostname(host, sizeof host - 1);
    if (address.starts_with(any)) address = host + (":" + address.substr(any.size()));
  }
  const std::string ca = options.certificate_file.empty()
                             ? ""
                             : "JIZI_CA_FILE=" + ForShell(options.certificate_file) + " ";
  return "workers: JIZI_TOKEN_FILE=" + ForShell(token_file) + " " + ca + "jizi worker --server " +
         address + " SWEEP.yaml\n";
}

StatusOr<ExitCode> Serve(const ServeOptions& options) {
  Signals signals;
  signal(SIGPIPE, SIG_IGN);
  TRY(CheckListen(options));
  const Target target = TRY(Resolved({options.database, "", "", ""}, ""));
  // Its own socket is for --db of this user; workers come by --listen.
  LocalService::Options service_options;
  service_options.log = options.log_file.empty() ? CallLog::kFailures : CallLog::kAll;
  service_options.log_file = options.log_file;
  service_options.on_error = [](const Status& status) { PrintError("jizi: " + ForPeople(status)); };
  service_options.on_store = [](const std::string& note) { PrintError("jizi: " + note); };
  std::optional<int> signal;
  const auto stop = [&] {
    if (!signal) signal = signals.Wait(std::chrono::milliseconds(0));
    return signal.has_value();
  };
  auto taken = OwnFile(target.database, service_options, stop);
  if (signal) return *signal == SIGINT ? kExitInterrupted : kExitTerminated;
  const OwnedService owned = TRY(std::move(taken));
  ServerOptions server_options;
  server_options.log = service_options.log;
  server_options.log_file = service_options.log_file;
  server_options.listen = options.listen;
  server_options.certificate_file = options.certificate_file;
  server_options.key_file = options.key_file;
  const std::string token_file = target.database + ".token";
  if (!IsUnix(options.listen)) server_options.token = TRY(TokenOf(token_file));
  const auto server = TRY(Server::Start(owned.service->engine(), server_options));
  TRY(owned.lock->Announce(owned.service->address()));
  Print("serving " + target.database + " on " + server->address() + "\n");
  if (!server_options.token.empty()) {
    Print(WorkersLine(options, token_file, server->address()));
  }
  while (!signal) signal = signals.Wait(std::chrono::milliseconds(1000));
  Print("ending: answering what waits\n");
  server->Shutdown(kDrain);
  return kExitOk;
}

}  // namespace

ExitCode CommandServe(const ServeOptions& options) {
  umask(077);
  return Done(Serve(options));
}

}  // namespace jizi::tuner
