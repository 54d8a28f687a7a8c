#pragma once
// client.h - what every client of the service shares: the channel, the metadata of each call,
// errors, and values as text. Fails: as Status with the service's ErrorDetail; Unavailable when it
// cannot be reached within the deadline; FailedPrecondition VERSION_MISMATCH when the other side
// speaks another version of the protocol. Threads: Client is immutable after Connect; calls from
// any thread.

#include <chrono>
#include <memory>
#include <string>

#include "base/status.h"
#include "jizi/v1/tune_service.grpc.pb.h"

namespace jizi {

// Sent as metadata `jizi-protocol` with every call, and as trailing metadata with every answer.
// Raised when an old peer would misunderstand a new one.
inline constexpr char kProtocolVersion[] = "1";

struct ClientOptions {
  std::string address;     // "unix:/path/to/socket" or "host:port".
  std::string token_file;  // Its first line is sent as `authorization: Bearer ...`; empty: none.
  std::string ca_file;     // PEM; empty: no TLS. Unix sockets need none and take none.
};
// address as given; token and CA from JIZI_TOKEN_FILE and JIZI_CA_FILE: the one documented place
// that reads them.
ClientOptions ClientOptionsFromEnvironment(std::string address);

class Client {
 public:
  static StatusOr<std::unique_ptr<Client>> Connect(const ClientOptions& options);

  // Calls one method with a deadline: client->Call(&v1::TuneService::Stub::Report, request, 5s).
  template <typename Request, typename Response>
  StatusOr<Response> Call(grpc::Status (v1::TuneService::Stub::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                          const Request& request, std::chrono::milliseconds deadline) {
    grpc::ClientContext context;
    Prepare(context, deadline);
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    if (Status checked = Check(context, status); !checked.ok()) return checked;
    return response;
  }

  // For streams and callback calls.
  v1::TuneService::Stub& stub() { return *stub_; }
  void Prepare(grpc::ClientContext& context, std::chrono::milliseconds deadline) const;
  static Status Check(const grpc::ClientContext& context, const grpc::Status& status);

 private:
  explicit Client(std::unique_ptr<v1::TuneService::Stub> stub, std::string token);
  std::unique_ptr<v1::TuneService::Stub> stub_;
  std::string token_;
};

// No answer to this request: the service cannot be reached, does not answer in time, or is
// overloaded (QUEUE_FULL, TOO_MANY_CALLS, TOO_MANY_STREAMS). The same request is worth a repeat.
// Any other error is an answer, and stays what it is: also the limits that are ResourceExhausted,
// and gRPC's own refusal of a message that is too large.
bool IsAway(const Status& status);

// An address as gRPC wants it: the path of a Unix socket percent-encoded, for gRPC takes it for a
// URI.
std::string GrpcTarget(const std::string& address);

// What the service takes of a measurement. It refuses the whole request for more, and with it the
// good values that travel along: its clients leave such a value out.
inline constexpr int kMaxMetrics = 1000;
// Empty, or what is wrong with the name: it has 1 to 256 bytes of UTF-8 without control characters.
std::string WrongMetricName(const std::string& name);

// A status of ours with its detail, as gRPC sends it, and back.
grpc::Status ToGrpc(const Status& status);
Status FromGrpc(const grpc::Status& status);

// JSON text of a value (3, 3.0, true, "a", [1,2]), and the other way. Fails: InvalidArgument for
// text that is no JSON or not finite.
std::string ToJsonText(const v1::Value& value);
StatusOr<v1::Value> ValueFromJsonText(const std::string& text);

}  // namespace jizi
