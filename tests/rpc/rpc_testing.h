#pragma once
// rpc_testing.h - a real server over real SQLite in a folder of its own, and a client of it. It can
// be killed and reopened: without a drain, on the same file, at a new port.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "proto/client.h"
#include "tuner-service/engine/engine.h"
#include "tuner-service/rpc/server.h"

namespace jizi::tuner {

inline constexpr std::chrono::seconds kDeadline{60};  // Generous: the machine may be slow.

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

enum class Transport { kTcp, kUnix };
enum class Restart { kNever, kAfterEveryCall };

class TestService {
 public:
  // `vfs`: of SQLite, where the disk is to fail.
  explicit TestService(Transport transport, ServerOptions options = {}, std::string vfs = "");
  ~TestService();

  void Start();
  void Kill();  // No drain.
  void Reopen() {
    Kill();
    Start();
  }

  template <typename Request, typename Response>
  StatusOr<Response> Call(grpc::Status (v1::TuneService::Stub::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                          const Request& request, Restart restart = Restart::kNever) {
    StatusOr<Response> response = client_->Call(method, request, kDeadline);
    // docs/contracts.md, 11.
    const ErrorDetail detail = DetailOf(response.status());
    EXPECT_TRUE(response.ok() || (!detail.code.empty() && !detail.mend.empty()))
        << response.status();
    if (restart == Restart::kAfterEveryCall) Reopen();
    return response;
  }

  Client& client() { return *client_; }
  Server& server() { return *server_; }
  Engine& engine() { return *engine_; }
  const TempFolder& folder() const { return folder_; }
  std::string address() const { return server_->address(); }
  std::shared_ptr<grpc::Channel> PlainChannel() const;  // As a foreign client opens one.

 private:
  TempFolder folder_;
  Transport transport_;
  ServerOptions options_;
  std::string vfs_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

// A random-search study of one float and one categorical, with metric "loss".
v1::CreateStudyRequest NewStudy(const std::string& name,
                                const std::string& request_id = "request-1");
v1::SuggestRequest NewSuggest(const std::string& study, const std::string& worker, int64_t sequence,
                              int count = 1);
v1::Measurement MeasurementOf(int64_t step, double loss);

// Fails the test with the error, and goes on with an empty message.
template <typename T>
T Must(StatusOr<T> result) {
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.status().ToString());
  return result.ok() ? *std::move(result) : T();
}

}  // namespace jizi::tuner
