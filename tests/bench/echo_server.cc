#include "tests/bench/echo_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <utility>

#include "jizi/v1/tune_service.grpc.pb.h"
#include "proto/client.h"

namespace jizi::bench {
namespace {

class Echo final : public v1::TuneService::CallbackService {
 public:
  grpc::ServerUnaryReactor* Report(grpc::CallbackServerContext* context,
                                   const v1::ReportRequest* request,
                                   v1::ReportResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    context->AddTrailingMetadata("jizi-protocol", kProtocolVersion);
    response->mutable_directive()->mutable_go_on();
    response->set_lease_s(static_cast<double>(request->sequence()));
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

class Running final : public EchoServer {
 public:
  ~Running() override {
    if (server_) server_->Shutdown();
  }
  bool Listen(const std::string& listen) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&echo_);
    server_ = builder.BuildAndStart();
    if (!server_ || port == 0) return false;
    address_ = listen.rfind("unix:", 0) == 0 ? listen : "127.0.0.1:" + std::to_string(port);
    return true;
  }
  std::string address() const override { return address_; }

 private:
  Echo echo_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

std::unique_ptr<EchoServer> EchoServer::Start(const std::string& listen) {
  auto server = std::make_unique<Running>();
  if (!server->Listen(listen)) return nullptr;
  return server;
}

}  // namespace jizi::bench
