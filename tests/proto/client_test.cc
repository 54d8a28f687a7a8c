#include "proto/client.h"

#include <gmock/gmock.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "jizi/v1/error.pb.h"

namespace jizi {
namespace {

using testing::HasSubstr;

Status ConnectTo(const std::string& address, const std::string& token_file = "") {
  return Client::Connect({address, token_file, ""}).status();
}

TEST(ClientTest, AnAddressThatIsNoneIsRefusedWithTheMend) {
  for (const char* address :
       {"", "host", "host:", ":80", "host:0", "host:99999", "host:8a", "unix:"}) {
    const Status status = ConnectTo(address);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << address;
    EXPECT_EQ(DetailOf(status).code, "ADDRESS") << address;
  }
  EXPECT_EQ(DetailOf(ConnectTo("unix:/" + std::string(107, 'x'))).code, "ADDRESS");
  EXPECT_TRUE(ConnectTo("unix:/" + std::string(106, 'x')).ok());
}

TEST(ClientTest, ATokenFileThatIsMissingOrNoneSaysSo) {
  EXPECT_EQ(DetailOf(ConnectTo("127.0.0.1:1", "/no/such/file")).code, "TOKEN_FILE");
  EXPECT_EQ(DetailOf(ConnectTo("127.0.0.1:1", "/dev/null")).code, "TOKEN_FILE");
}

// A server that knows no call is enough: that it answers shows that it was reached.
std::unique_ptr<grpc::Server> ServeAt(int& port) {
  grpc::ServerBuilder builder;
  static v1::TuneService::Service service;
  builder.AddListeningPort("localhost:" + std::to_string(port), grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  return builder.BuildAndStart();
}

// Two addresses (or one, by the host's own file), found by name: gRPC's defaults take half a
// minute.
TEST(ClientTest, AServerThatComesBackIsReachedWithinSeconds) {
  using std::chrono::steady_clock;
  int port = 0;
  auto server = ServeAt(port);
  ASSERT_NE(server, nullptr);
  auto client = Client::Connect({"localhost:" + std::to_string(port), "", ""});
  ASSERT_TRUE(client.ok());
  const auto away = [&] {
    v1::GetStudyRequest request;
    return IsAway((*client)
                      ->Call(&v1::TuneService::Stub::GetStudy, request, std::chrono::seconds(2))
                      .status());
  };
  EXPECT_FALSE(away());
  server->Shutdown(std::chrono::system_clock::now());
  server.reset();
  const auto outage = steady_clock::now() + std::chrono::seconds(5);
  while (steady_clock::now() < outage) {
    EXPECT_TRUE(away());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  server = ServeAt(port);
  ASSERT_NE(server, nullptr);
  const auto back = steady_clock::now();
  while (away() && steady_clock::now() < back + std::chrono::seconds(60)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const std::chrono::duration<double> took = steady_clock::now() - back;
  EXPECT_LT(took.count(), 8) << "1 to 2 s on a quiet machine";
  RecordProperty("seconds", std::to_string(took.count()));
  std::printf("reached after %.2f s\n", took.count());
}

TEST(ClientTest, WhatCannotBeReachedIsUnavailableWithinTheDeadline) {
  auto client = Client::Connect({"unix:/no/such/socket", "", ""});
  ASSERT_TRUE(client.ok());
  v1::GetStudyRequest request;
  const auto answer =
      (*client)->Call(&v1::TuneService::Stub::GetStudy, request, std::chrono::seconds(30));
  EXPECT_EQ(answer.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(DetailOf(answer.status()).code, "UNREACHABLE");
  EXPECT_FALSE(DetailOf(answer.status()).mend.empty());
}

// The client's word on a server that says this version, or none.
Status AskServer(const char* version, grpc::Status answer = grpc::Status::OK) {
  class Scripted : public v1::TuneService::Service {
   public:
    Scripted(const char* its_version, grpc::Status its_answer)
        : version_(its_version), answer_(std::move(its_answer)) {}
    grpc::Status GetStudy(grpc::ServerContext* context, const v1::GetStudyRequest*,
                          v1::GetStudyResponse*) override {
      if (version_ != nullptr) context->AddTrailingMetadata("jizi-protocol", version_);
      return answer_;
    }

   private:
    const char* version_;
    const grpc::Status answer_;
  } service(version, std::move(answer));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  auto client = Client::Connect({"127.0.0.1:" + std::to_string(port), "", ""});
  EXPECT_TRUE(client.ok());
  const Status status =
      (*client)
          ->Call(&v1::TuneService::Stub::GetStudy, v1::GetStudyRequest(), std::chrono::seconds(30))
          .status();
  server->Shutdown(std::chrono::system_clock::now());
  return status;
}

TEST(ClientTest, AServerOfAnotherVersionIsAMismatchWithTheMend) {
  EXPECT_TRUE(AskServer(kProtocolVersion).ok());
  const grpc::Status refusal(grpc::StatusCode::FAILED_PRECONDITION, "not so");
  for (const grpc::Status& answer : {grpc::Status::OK, refusal}) {
    const Status other = AskServer("999", answer);
    EXPECT_EQ(other.code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(DetailOf(other).code, "VERSION_MISMATCH");
    EXPECT_THAT(std::string(other.message()), HasSubstr("protocol 999"));
    EXPECT_THAT(DetailOf(other).mend, HasSubstr("same release"));
  }
  const Status unknown = AskServer(nullptr);
  EXPECT_EQ(DetailOf(unknown).code, "VERSION_MISMATCH");
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("unknown version"));
  EXPECT_FALSE(IsAway(unknown));
}

TEST(ClientTest, WhatIsNoServerOfJiziSaysSo) {
  const Status status =
      AskServer(nullptr, grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "what is that?"));
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailOf(status).code, "VERSION_MISMATCH");
  EXPECT_THAT(std::string(status.message()), HasSubstr("no Jizi server"));
}

TEST(ClientTest, ErrorsKeepTheirDetailOverGrpc) {
  const Status ours = Error(StatusCode::kFailedPrecondition, "not yours \xF0\x9F\x98\x80",
                            {"LEASE_LOST", "trial 3", "stop"});
  const Status back = FromGrpc(ToGrpc(ours));
  EXPECT_EQ(back.code(), ours.code());
  EXPECT_EQ(back.message(), ours.message());
  EXPECT_EQ(DetailOf(back), DetailOf(ours));
  EXPECT_TRUE(FromGrpc(ToGrpc(absl::OkStatus())).ok());
}

TEST(ClientTest, ErrorsFitInTheMetadataThatStandardClientsTake) {
  const std::string huge(100'000, '\n');  // Percent-encoded to three times its size.
  const grpc::Status status = ToGrpc(Error(StatusCode::kNotFound, huge, {huge, huge, huge}));
  EXPECT_LT(status.error_message().size() * 3 + status.error_details().size() * 4 / 3, 8000U);
  const grpc::Status binary =
      ToGrpc(Error(StatusCode::kNotFound, "a\xFF\xC0", {"", "\xED\xA0\x80", ""}));
  v1::RpcStatus rich;
  ASSERT_TRUE(rich.ParseFromString(binary.error_details()));
  EXPECT_EQ(rich.message(), "a??");
}

TEST(ClientTest, AwayIsWhatNobodyAnswered) {
  const auto away = [](StatusCode kind, const char* code) {
    return IsAway(FromGrpc(ToGrpc(Error(kind, "so it is", {code, "", ""}))));
  };
  EXPECT_TRUE(away(StatusCode::kUnavailable, "STORE_FULL"));
  EXPECT_TRUE(away(StatusCode::kDeadlineExceeded, "TIMEOUT"));
  for (const char* code : {"QUEUE_FULL", "TOO_MANY_CALLS", "TOO_MANY_STREAMS"}) {
    EXPECT_TRUE(away(StatusCode::kResourceExhausted, code)) << code;
  }
  for (const char* code : {"TOO_MANY_CHECKPOINTS", "TOO_MANY_TRIALS", "TOO_MANY_WORKERS",
                           "TOO_MANY_ATTRIBUTES", "ATTRIBUTE_TOO_LONG", ""}) {
    EXPECT_FALSE(away(StatusCode::kResourceExhausted, code)) << code;
  }
  // gRPC's own words for a message above the limit: it never becomes smaller.
  EXPECT_FALSE(IsAway(FromGrpc(
      grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "Received message larger than max"))));
  EXPECT_FALSE(away(StatusCode::kFailedPrecondition, "LEASE_LOST"));
  EXPECT_FALSE(away(StatusCode::kInternal, "INTERNAL"));
  EXPECT_FALSE(IsAway(absl::OkStatus()));
}

TEST(ClientTest, ForeignDetailsAreIgnored) {
  const Status status =
      FromGrpc(grpc::Status(grpc::StatusCode::NOT_FOUND, "no", "\x01\x02garbage"));
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "no");
}

TEST(ClientTest, ValuesReadBackWithTheirTypes) {
  for (const char* text :
       {"3", "-9223372036854775808", "9223372036854775807", "3.0", "1e-07", "1e+300", "true",
        "false", "\"a\"", "\"\"", "[1,2.5,\"x\"]", "{\"a\":1,\"b\":null}", "null", "0.1", "-0.0"}) {
    const auto value = ValueFromJsonText(text);
    ASSERT_TRUE(value.ok()) << text;
    EXPECT_EQ(ToJsonText(*value), text);
  }
  EXPECT_TRUE(ValueFromJsonText("1")->has_int_value());
  EXPECT_TRUE(ValueFromJsonText("1.0")->has_float_value());
  EXPECT_EQ(ValueFromJsonText(" { \"b\" : 1 , \"a\" : 2 } ")->json_value(), "{\"a\":2,\"b\":1}");
}

TEST(ClientTest, TextThatIsNoValueIsRefused) {
  for (const std::string& text :
       {std::string(), std::string("abc"), std::string("NaN"), std::string("Infinity"),
        std::string("1e999"), std::string("9223372036854775808"), std::string("[1"),
        std::string("\"\xFF\""), std::string(100'000, '['), std::string(2 << 20, '1')}) {
    const auto value = ValueFromJsonText(text);
    EXPECT_EQ(value.status().code(), StatusCode::kInvalidArgument) << text.substr(0, 30);
  }
}

TEST(ClientTest, NumbersThatJsonLacksArePrintedAsTexts) {
  v1::Value value;
  value.set_float_value(std::nan(""));
  EXPECT_EQ(ToJsonText(value), "\"NaN\"");
  value.set_float_value(-INFINITY);
  EXPECT_EQ(ToJsonText(value), "\"-Infinity\"");
}

TEST(ClientTest, SocketPathsWithAnyCharactersReachGrpc) {
  EXPECT_EQ(GrpcTarget("unix:/a b/50%/ü"), "unix:/a%20b/50%25/%C3%BC");
  EXPECT_EQ(GrpcTarget("host:1"), "host:1");
}

TEST(ClientTest, EnvironmentNamesTokenAndAuthority) {
  setenv("JIZI_TOKEN_FILE", "/t", 1);
  setenv("JIZI_CA_FILE", "/c", 1);
  const ClientOptions options = ClientOptionsFromEnvironment("host:1");
  EXPECT_EQ(options.address, "host:1");
  EXPECT_EQ(options.token_file, "/t");
  EXPECT_EQ(options.ca_file, "/c");
  unsetenv("JIZI_TOKEN_FILE");
  unsetenv("JIZI_CA_FILE");
  EXPECT_TRUE(ClientOptionsFromEnvironment("host:1").token_file.empty());
}

}  // namespace
}  // namespace jizi
