#include "tuner-service/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>

#include <mutex>
#include <utility>

#include "proto/client.h"
#include "tuner-service/rpc/limits.h"
#include "tuner-service/rpc/listen.h"
#include "tuner-service/rpc/service.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;

constexpr size_t kAsideLimit = 10'000;      // Pages that may wait.
constexpr milliseconds kHealthPeriod{200};  // How soon a lost store shows in the health check.
constexpr milliseconds kStreamsGrace{5000};
constexpr char kServiceName[] = "jizi.v1.TuneService";

// gRPC keeps these for all servers of the process, and without a lock.
void TurnOnHealthAndReflection() {
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
}

void SetLimits(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  // Two servers on one port would each get half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1024);
  // Clients ask every 30 s whether a quiet connection still stands (proto/client.cc).
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  // Only reflection is a synchronous service, and rare: its threads would else poll beside those
  // that work.
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
}

StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(const ServerOptions& options) {
  if (options.certificate_file.empty() && options.key_file.empty())
    return grpc::InsecureServerCredentials();
  const TlsTexts texts = TRY(ReadTls({options.certificate_file, options.key_file}));
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  tls.pem_key_cert_pairs.push_back({texts.key, texts.certificates});
  return grpc::SslServerCredentials(tls);
}

class GrpcServer final : public Server {
 public:
  GrpcServer(Engine& engine, std::shared_ptr<Accounts> accounts)
      : engine_(engine), accounts_(std::move(accounts)) {}
  ~GrpcServer() override {
    Shutdown(milliseconds(0));
    // Also where Listen failed: its tick uses what is destroyed before it.
    if (aside_ != nullptr) aside_->Stop();
  }

  Status Listen(const ServerOptions& options) {
    const tuner::Listen listen = TRY(ParseListen(options.listen));
    const auto credentials = TRY(CredentialsOf(options));
    TRY(listen.is_unix ? PrepareUnixSocket(listen.path) : CheckPort(listen));

    aside_ = std::make_shared<Aside>(kAsideLimit, kHealthPeriod, [this] { WatchHealth(); });
    service_ = TuneGrpcService::Make(engine_, std::make_shared<const Gate>(options.token),
                                     accounts_, aside_);
    TurnOnHealthAndReflection();
    grpc::ServerBuilder builder;
    SetLimits(builder);
    const std::string target = GrpcTarget(listen.is_unix ? "unix:" + listen.path : options.listen);
    int port = 0;
    builder.AddListeningPort(
        target, listen.is_unix ? grpc::InsecureServerCredentials() : credentials, &port);
    builder.RegisterService(service_->service());
    std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (server == nullptr || port == 0) {
      return Error(StatusCode::kAlreadyExists, "cannot listen at " + options.listen,
                   {"PORT_IN_USE", options.listen,
                    "choose another address: somebody took this one just now"});
    }
    address_ = listen.is_unix ? "unix:" + listen.path : listen.host + ":" + std::to_string(port);
    if (listen.is_unix && chmod(listen.path.c_str(), 0600) != 0) {
      server->Shutdown();
      return Error(
          StatusCode::kPermissionDenied, "cannot set the mode of the socket " + listen.path,
          {"SOCKET_FOLDER", listen.path, "use a folder on a local disk that is yours alone"});
    }
    MutexLock lock(mutex_);
    server_ = std::move(server);
    server_->GetHealthCheckService()->SetServingStatus(kServiceName, true);
    server_->GetHealthCheckService()->SetServingStatus(true);
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }

  void Shutdown(milliseconds drain) override {
    const auto deadline = std::chrono::system_clock::now() + drain;
    {
      MutexLock lock(mutex_);
      if (server_ == nullptr || shut_down_) return;
      shut_down_ = true;
      server_->GetHealthCheckService()->Shutdown();
    }
    service_->EndStreams();
    server_->Shutdown(deadline);  // Calls that still wait then are cancelled, which answers them.
    service_->WaitForStreams(std::chrono::steady_clock::now() + kStreamsGrace);
    aside_->Stop();
    accounts_->NoteCounters();
  }

 private:
  void WatchHealth() {
    if (engine_.healthy()) return;
    MutexLock lock(mutex_);
    if (server_ == nullptr || shut_down_) return;
    server_->GetHealthCheckService()->SetServingStatus(kServiceName, false);
    server_->GetHealthCheckService()->SetServingStatus(false);
  }

  Engine& engine_;
  const std::shared_ptr<Accounts> accounts_;
  std::shared_ptr<Aside> aside_;
  std::unique_ptr<TuneGrpcService> service_;
  std::string address_;
  Mutex mutex_;
  std::unique_ptr<grpc::Server>
      server_;  // Set once, under mutex_; used after that by the owner of this without it.
  bool shut_down_ GUARDED_BY(mutex_) = false;
};

}  // namespace

StatusOr<std::unique_ptr<Server>> Server::Start(Engine& engine, const ServerOptions& options) {
  auto server =
      std::make_unique<GrpcServer>(engine, TRY(Accounts::Open(options.log, options.log_file)));
  TRY(server->Listen(options));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace jizi::tuner
