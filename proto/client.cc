#include "proto/client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "jizi/v1/error.pb.h"

namespace jizi {
namespace {

using nlohmann::json;

constexpr char kProtocolKey[] = "jizi-protocol";
constexpr char kTypeUrl[] = "type.googleapis.com/jizi.v1.ErrorDetail";
constexpr char kUnixPrefix[] = "unix:";
constexpr size_t kMaxUnixPath = 107;  // sockaddr_un::sun_path, less its zero.

// Standard clients take 8 KiB of metadata with an answer: percent-encoding may triple the message,
// base64 adds a third.
constexpr size_t kMaxMessage = 1200;
constexpr size_t kMaxSubject = 256;
constexpr size_t kMaxMend = 512;

// Deeper values serve nobody, and JSON libraries walk values recursively: a few MB of '[' would
// overflow the stack.
constexpr int kMaxJsonDepth = 64;
constexpr size_t kMaxJsonBytes = 1 << 20;

Status Invalid(const std::string& message, ErrorDetail detail) {
  return Error(StatusCode::kInvalidArgument, message, std::move(detail));
}

StatusOr<std::string> ReadToken(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return Invalid(
        "cannot read the token file " + path,
        {"TOKEN_FILE", path, "give the path of the server's FILE.token, readable by you"});
  }
  std::string token;
  std::getline(file, token);
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (token.empty() || !printable || token.size() > 4096) {
    return Invalid(
        "the first line of the token file " + path + " is no token",
        {"TOKEN_FILE", path,
         "it holds one line of printable ASCII without spaces; copy the server's FILE.token"});
  }
  return token;
}

StatusOr<std::string> ReadAll(const std::string& path, const char* what) {
  std::ifstream file(path, std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file || content.empty()) {
    return Invalid(
        std::string("cannot read ") + what + " " + path,
        {"CA_FILE", path,
         "give a PEM file with the certificate that the server presents or its authority"});
  }
  return content;
}

Status CheckAddress(const std::string& address) {
  if (address.rfind(kUnixPrefix, 0) == 0) {
    const size_t length = address.size() - (sizeof(kUnixPrefix) - 1);
    if (length == 0 || length > kMaxUnixPath) {
      return Invalid(
          "the socket's path in " + Utf8Text(address, 200) + " has " + std::to_string(length) +
              " bytes",
          {"ADDRESS", address, "a Unix socket's path has 1 to 107 bytes: use a shorter folder"});
    }
    return absl::OkStatus();
  }
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon != std::string::npos && colon > 0) {
    const char* end = address.data() + address.size();
    const auto parsed = std::from_chars(address.data() + colon + 1, end, port);
    if (parsed.ptr != end || parsed.ec != std::errc()) port = 0;
  }
  if (port < 1 || port > 65535) {
    return Invalid(
        "\"" + Utf8Text(address, 200) + "\" is no address of a server",
        {"ADDRESS", address, "write unix:/path/to/socket or host:port, such as 127.0.0.1:8470"});
  }
  return absl::OkStatus();
}

std::optional<std::string> ProtocolOf(const grpc::ClientContext& context) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto found = metadata.find(kProtocolKey);
  if (found == metadata.end()) return std::nullopt;
  return std::string(found->second.data(), found->second.size());
}

Status VersionMismatch(const std::string& theirs) {
  return Error(
      StatusCode::kFailedPrecondition,
      "the server speaks protocol " + theirs + " and this program protocol " + kProtocolVersion,
      {"VERSION_MISMATCH", "jizi-protocol", "use the same release of Jizi on both sides"});
}

// Errors of the way to the server, which carry no detail: say what a person can do.
Status ExplainTransport(const grpc::ClientContext& context, const grpc::Status& status) {
  const std::string peer = context.peer();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return Error(StatusCode::kUnavailable,
                 "the service cannot be reached: " + status.error_message(),
                 {"UNREACHABLE", peer,
                  "see that the server is running and that address, TLS and firewall are right"});
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return Error(StatusCode::kDeadlineExceeded, "no answer from the service in time",
                 {"TIMEOUT", peer, "try again: a repeated call gets the recorded answer"});
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return Error(
        StatusCode::kFailedPrecondition,
        "what answers at " + peer + " is no Jizi server, or one too old to say its version",
        {"VERSION_MISMATCH", peer,
         "check the address, or use the same release of Jizi on both sides"});
  }
  return FromGrpc(status);
}

// Depth of the JSON text's lists and dictionaries, whether or not it is well formed.
int Depth(const std::string& text) {
  int depth = 0;
  int deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

std::string DoubleText(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

ClientOptions ClientOptionsFromEnvironment(std::string address) {
  const auto read = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  return {std::move(address), read("JIZI_TOKEN_FILE"), read("JIZI_CA_FILE")};
}

StatusOr<std::unique_ptr<Client>> Client::Connect(const ClientOptions& options) {
  TRY(CheckAddress(options.address));
  const std::string token = options.token_file.empty() ? "" : TRY(ReadToken(options.token_file));

  grpc::ChannelArguments arguments;
  // Each client has a connection of its own, and no other's backoff.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A cluster's web proxy is not for its own hosts.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A page of trials stays under 4 MiB (the server sees to it) but for a single larger one.
  arguments.SetMaxReceiveMessageSize(64 << 20);
  arguments.SetMaxSendMessageSize(16 << 20);

  // In spite of its name: how long one attempt to connect may take, also on a busy machine.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);

  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (options.address.rfind(kUnixPrefix, 0) == 0) {
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  } else {
    // A server that comes back is seen within a second or two.
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    // After a failure gRPC asks for the name's addresses again, by default after 30 s at the
    // earliest, and does not try the old ones meanwhile.
    arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 500);
    // Finds a dead connection under a long stream; the server allows it (rpc/server.cc).
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
    if (!options.ca_file.empty()) {
      grpc::SslCredentialsOptions tls;
      tls.pem_root_certs = TRY(ReadAll(options.ca_file, "the CA file"));
      credentials = grpc::SslCredentials(tls);
    }
  }
  auto channel = grpc::CreateCustomChannel(GrpcTarget(options.address), credentials, arguments);
  return std::unique_ptr<Client>(new Client(v1::TuneService::NewStub(channel), token));
}

Client::Client(std::unique_ptr<v1::TuneService::Stub> stub, std::string token)
    : stub_(std::move(stub)), token_(std::move(token)) {}

void Client::Prepare(grpc::ClientContext& context, std::chrono::milliseconds deadline) const {
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  context.AddMetadata(kProtocolKey, kProtocolVersion);
  if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
}

Status Client::Check(const grpc::ClientContext& context, const grpc::Status& status) {
  const std::optional<std::string> protocol = ProtocolOf(context);
  if (protocol && *protocol != kProtocolVersion) return VersionMismatch(*protocol);
  if (status.ok()) return protocol ? absl::OkStatus() : VersionMismatch("of an unknown version");
  return protocol ? FromGrpc(status) : ExplainTransport(context, status);
}

bool IsAway(const Status& status) {
  switch (status.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
      return true;
    // A connection that broke in the middle of a call; the service itself answers none of these.
    case StatusCode::kCancelled:
    case StatusCode::kUnknown:
      return true;
    case StatusCode::kResourceExhausted: {
      const std::string code = DetailOf(status).code;
      return code == "QUEUE_FULL" || code == "TOO_MANY_CALLS" || code == "TOO_MANY_STREAMS";
    }
    default:
      return false;
  }
}

std::string GrpcTarget(const std::string& address) {
  if (address.rfind(kUnixPrefix, 0) != 0) return address;
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string target;
  for (const char c : address) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        (byte < 0x80 && std::isalnum(byte) != 0) || std::strchr("-_.~/:@!$&'()*+,;=", c) != nullptr;
    if (plain && c != '\0') {
      target += c;
    } else {
      target += '%';
      target += kHex[byte >> 4U];
      target += kHex[byte & 0xFU];
    }
  }
  return target;
}

std::string WrongMetricName(const std::string& name) {
  constexpr size_t kMaxNameBytes = 256;
  constexpr size_t kShownBytes = 60;
  const auto control = [](char c) { return (c >= 0 && c < 0x20) || c == 0x7F; };
  if (name.empty()) return "a metric's name is empty";
  if (!IsUtf8(name)) return "the metric's name '" + Utf8Text(name, kShownBytes) + "' is no UTF-8";
  if (name.size() > kMaxNameBytes) {
    return "the metric's name '" + Utf8Text(name, kShownBytes) + "' has " +
           std::to_string(name.size()) + " bytes; at most 256 fit";
  }
  if (std::any_of(name.begin(), name.end(), control)) {
    std::string shown = Utf8Text(name, kShownBytes);
    std::replace_if(shown.begin(), shown.end(), control, '?');
    return "the metric's name '" + shown + "' holds a control character";
  }
  return "";
}

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const ErrorDetail ours = DetailOf(status);
  v1::ErrorDetail detail;
  detail.set_code(Utf8Text(ours.code, 64));
  detail.set_subject(Utf8Text(ours.subject, kMaxSubject));
  detail.set_mend(Utf8Text(ours.mend, kMaxMend));
  v1::RpcStatus rich;
  rich.set_code(static_cast<int>(status.code()));
  rich.set_message(Utf8Text(std::string(status.message()), kMaxMessage));
  google::protobuf::Any* any = rich.add_details();
  any->set_type_url(kTypeUrl);
  any->set_value(detail.SerializeAsString());
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), rich.message(),
                      rich.SerializeAsString());
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<StatusCode>(status.error_code());
  v1::RpcStatus rich;
  if (rich.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& any : rich.details()) {
      v1::ErrorDetail detail;
      if (any.type_url() == kTypeUrl && detail.ParseFromString(any.value())) {
        return Error(code, status.error_message(),
                     {detail.code(), detail.subject(), detail.mend()});
      }
    }
  }
  return Status(code, status.error_message());
}

std::string ToJsonText(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kFloatValue:
      return DoubleText(value.float_value());
    case v1::Value::kIntValue:
      return std::to_string(value.int_value());
    case v1::Value::kBoolValue:
      return value.bool_value() ? "true" : "false";
    case v1::Value::kStringValue:
      return json(value.string_value()).dump(-1, ' ', false, json::error_handler_t::replace);
    case v1::Value::kJsonValue:
      return value.json_value();
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return "null";
}

StatusOr<v1::Value> ValueFromJsonText(const std::string& text) {
  const ErrorDetail detail{"BAD_VALUE", Utf8Text(text, 80),
                           "write one JSON value: 3, 3.0, true, \"a\", [1,2]"};
  if (text.size() > kMaxJsonBytes || Depth(text) > kMaxJsonDepth) {
    return Invalid("a JSON value of more than 1 MiB or 64 levels", detail);
  }
  json parsed;
  try {
    parsed = json::parse(text);
  } catch (const json::out_of_range&) {
    return Invalid(Utf8Text(text, 80) + " is out of the range of a finite number", detail);
  } catch (const json::exception&) {
    return Invalid(Utf8Text(text, 80) + " is no JSON value", detail);
  }
  v1::Value value;
  if (parsed.is_boolean()) {
    value.set_bool_value(parsed.get<bool>());
  } else if (parsed.is_string()) {
    value.set_string_value(parsed.get<std::string>());
  } else if (parsed.is_number()) {
    const bool integral = text.find_first_of(".eE") == std::string::npos;
    const bool fits =
        parsed.is_number_integer() && (!parsed.is_number_unsigned() ||
                                       parsed.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
    if (integral && !fits) return Invalid(Utf8Text(text, 80) + " does not fit in 64 bits", detail);
    if (integral) {
      value.set_int_value(parsed.get<int64_t>());
    } else {
      value.set_float_value(parsed.get<double>());
    }
  } else {
    value.set_json_value(parsed.dump());
  }
  return value;
}

}  // namespace jizi
