// The server as a whole: who may call, where it listens, what it says of itself, and what bad input
// gets.

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>

#include "jizi/v1/error.pb.h"
#include "tests/rpc/rpc_testing.h"
#include "tuner-service/rpc/limits.h"
#include "tuner-service/rpc/listen.h"

namespace jizi::tuner {
namespace {

using Stub = v1::TuneService::Stub;

v1::GetStudyRequest Get(const std::string& study) {
  v1::GetStudyRequest request;
  request.set_study(study);
  return request;
}

// A raw call of any method, as a client of another kind makes it.
struct RawAnswer {
  grpc::Status status;
  std::string body;
};
RawAnswer CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                  const std::string& body) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  const grpc::Slice slice(body);
  grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &response,
                 [&done](grpc::Status status) { done.set_value(std::move(status)); });
  RawAnswer answer{done.get_future().get(), ""};
  std::vector<grpc::Slice> slices;
  if (answer.status.ok() && response.Dump(&slices).ok()) {
    for (const grpc::Slice& part : slices)
      answer.body.append(reinterpret_cast<const char*>(part.begin()), part.size());
  }
  return answer;
}

// A self-signed certificate for localhost and 127.0.0.1.
void WriteCertificate(const std::string& certificate_file, const std::string& key_file) {
  EVP_PKEY* key = EVP_RSA_gen(2048);
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_EXTENSION* names =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  X509_add_ext(certificate, names, -1);
  X509_EXTENSION_free(names);
  X509_sign(certificate, key, EVP_sha256());
  FILE* file = std::fopen(certificate_file.c_str(), "w");
  PEM_write_X509(file, certificate);
  std::fclose(file);
  file = std::fopen(key_file.c_str(), "w");
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

ServerOptions WithToken(const std::string& token) {
  ServerOptions options;
  options.token = token;
  return options;
}

Status TryListen(Engine& engine, const std::string& listen) {
  ServerOptions options;
  options.listen = listen;
  return Server::Start(engine, options).status();
}

TEST(Contract24, ATokenIsWantedOnEveryCall) {
  TestService service(Transport::kTcp, WithToken("s3cret"));
  EXPECT_TRUE(service.Call(&Stub::CreateStudy, NewStudy("x")).ok());
  auto without = Client::Connect({service.address(), "", ""});
  const auto refused = (*without)->Call(&Stub::GetStudy, Get("x"), kDeadline);
  EXPECT_EQ(refused.status().code(), StatusCode::kUnauthenticated);
  EXPECT_EQ(DetailOf(refused.status()).code, "TOKEN_MISSING");
  const std::string wrong_file = service.folder() / "wrong";
  std::ofstream(wrong_file) << "s3cre\n";
  auto wrong = Client::Connect({service.address(), wrong_file, ""});
  EXPECT_EQ(DetailOf((*wrong)->Call(&Stub::GetStudy, Get("x"), kDeadline).status()).code,
            "TOKEN_WRONG");

  grpc::ClientContext context;
  (*without)->Prepare(context, kDeadline);
  v1::WatchStudyRequest watch;
  watch.set_study("x");
  auto stream = (*without)->stub().WatchStudy(&context, watch);
  v1::WatchStudyResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST(Contract24, TlsProtectsATcpPort) {
  TempFolder folder;
  ServerOptions options;
  options.certificate_file = folder / "certificate.pem";
  options.key_file = folder / "key.pem";
  WriteCertificate(options.certificate_file, options.key_file);
  TestService service(Transport::kTcp, options);
  EXPECT_TRUE(service.Call(&Stub::CreateStudy, NewStudy("x")).ok());
  auto plain = Client::Connect({service.address(), "", ""});
  EXPECT_EQ((*plain)->Call(&Stub::GetStudy, Get("x"), std::chrono::seconds(30)).status().code(),
            StatusCode::kUnavailable);
}

TEST(ServerStart, TlsFilesThatDoNotFitAreRefused) {
  TempFolder folder;
  WriteCertificate(folder / "a.pem", folder / "a.key");
  WriteCertificate(folder / "b.pem", folder / "b.key");
  std::ofstream(folder / "garbage") << "nothing";
  EXPECT_TRUE(ReadTls({folder / "a.pem", folder / "a.key"}).ok());
  for (const TlsFiles& files :
       {TlsFiles{folder / "a.pem", folder / "b.key"},
        TlsFiles{folder / "a.pem", folder / "garbage"},
        TlsFiles{folder / "garbage", folder / "a.key"}, TlsFiles{folder / "a.pem", ""},
        TlsFiles{folder / "none", folder / "a.key"}}) {
    const auto texts = ReadTls(files);
    EXPECT_EQ(texts.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(DetailOf(texts.status()).code, "TLS_FILES");
  }
}

TEST(ServerStart, APortInUseAndABadAddressSaySo) {
  TestService service(Transport::kTcp);
  const Status taken = TryListen(service.engine(), service.address());
  EXPECT_EQ(taken.code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(DetailOf(taken).code, "PORT_IN_USE");
  for (const char* address : {"", "localhost", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:x",
                              "::1:80", "no.such.host.invalid:80"}) {
    const Status status = TryListen(service.engine(), address);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << address;
    EXPECT_EQ(DetailOf(status).code, "ADDRESS") << address;
  }
  EXPECT_EQ(DetailOf(TryListen(service.engine(),
                               "unix:" + service.folder().path() + "/" + std::string(108, 'x')))
                .code,
            "ADDRESS");
}

TEST(Contract24, AUnixSocketIsItsOwnersAlone) {
  TestService service(Transport::kUnix);
  struct stat found{};
  ASSERT_EQ(stat((service.folder() / "socket").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0700U);
  ASSERT_EQ(stat((service.folder() / "socket/s").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);

  std::filesystem::create_directory(service.folder() / "open");
  ASSERT_EQ(chmod((service.folder() / "open").c_str(), 0755), 0);
  const Status open = TryListen(service.engine(), "unix:" + (service.folder() / "open/s"));
  EXPECT_EQ(open.code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(DetailOf(open).code, "SOCKET_FOLDER");
}

TEST(ServerStart, OnlyASocketThatNobodyAnswersAtIsRemoved) {
  TestService service(Transport::kUnix);
  const Status taken = TryListen(service.engine(), service.address());
  EXPECT_EQ(taken.code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(DetailOf(taken).code, "SOCKET_IN_USE");
  EXPECT_TRUE(service.Call(&Stub::CreateStudy, NewStudy("still there")).ok());

  const std::string stale = service.folder() / "socket/stale";
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, stale.c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  close(fd);
  EXPECT_TRUE(TryListen(service.engine(), "unix:" + stale).ok());

  std::ofstream(service.folder() / "socket/file") << "precious";
  EXPECT_EQ(
      DetailOf(TryListen(service.engine(), "unix:" + (service.folder() / "socket/file"))).code,
      "ADDRESS");
  EXPECT_TRUE(std::filesystem::exists(service.folder() / "socket/file"));
}

TEST(ServerStart, ASocketsPathMayHoldAnyCharacters) {
  TestService service(Transport::kUnix);
  ServerOptions options;
  options.listen = "unix:" + (service.folder() / "socket/a b%41?ü");
  auto server = Server::Start(service.engine(), options);
  ASSERT_TRUE(server.ok()) << server.status();
  auto client = Client::Connect({(*server)->address(), "", ""});
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE((*client)->Call(&Stub::CreateStudy, NewStudy("x"), kDeadline).ok());
  EXPECT_TRUE(std::filesystem::exists(service.folder() / "socket/a b%41?ü"));
}

TEST(Versions, AnotherProtocolIsRefusedAndNoneIsTaken) {
  TestService service(Transport::kTcp);
  const auto stub = v1::TuneService::NewStub(service.PlainChannel());
  v1::ListStudiesResponse response;
  grpc::ClientContext other;
  other.AddMetadata("jizi-protocol", "999");
  const grpc::Status refused = stub->ListStudies(&other, v1::ListStudiesRequest(), &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(DetailOf(FromGrpc(refused)).code, "VERSION_MISMATCH");
  v1::RpcStatus rich;  // As a standard client reads it.
  ASSERT_TRUE(rich.ParseFromString(refused.error_details()));
  EXPECT_EQ(rich.code(), 9);
  EXPECT_EQ(rich.details(0).type_url(), "type.googleapis.com/jizi.v1.ErrorDetail");
  grpc::ClientContext none;
  EXPECT_TRUE(stub->ListStudies(&none, v1::ListStudiesRequest(), &response).ok());
  ASSERT_EQ(none.GetServerTrailingMetadata().count("jizi-protocol"), 1U);
}

TEST(Foreign, HealthAndReflectionAnswerWithoutAToken) {
  TestService service(Transport::kTcp, WithToken("s3cret"));
  const auto channel = service.PlainChannel();
  for (const std::string& request : {std::string(), std::string("\x0a\x13jizi.v1.TuneService")}) {
    const RawAnswer health = CallRaw(channel, "/grpc.health.v1.Health/Check", request);
    ASSERT_TRUE(health.status.ok()) << health.status.error_message();
    EXPECT_EQ(health.body, std::string("\x08\x01", 2));  // SERVING
  }
  grpc::GenericStub stub(channel);
  // A bidirectional stream; one message and its answer, with list_services = "".
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  const grpc::Slice slice(std::string("\x3a\x00", 2));
  call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(answer.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& part : slices)
    text.append(reinterpret_cast<const char*>(part.begin()), part.size());
  EXPECT_NE(text.find("jizi.v1.TuneService"), std::string::npos);
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  EXPECT_TRUE(queue.Next(&tag, &ok));
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

TEST(Limits, RequestsBeyondThemAreRefusedAndTheServerGoesOn) {
  TestService service(Transport::kTcp);
  Must(service.Call(&Stub::CreateStudy, NewStudy("x")));
  const auto code = [](const auto& answer) { return answer.status().code(); };
  EXPECT_EQ(code(service.Call(&Stub::Suggest, NewSuggest("x", "w", 1, 1001))),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(service.Call(&Stub::Suggest, NewSuggest("x", "w", 1, -1))),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(service.Call(&Stub::Suggest, NewSuggest("x", "w", 0))),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(service.Call(&Stub::Suggest, NewSuggest("x", "", 1))),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code(service.Call(&Stub::Suggest, NewSuggest("x", std::string(1000, 'w'), 1))),
            StatusCode::kInvalidArgument);
  v1::ListTrialsRequest list;
  list.set_study("x");
  list.set_page_size(kMaxPageSize + 1);
  EXPECT_EQ(code(service.Call(&Stub::ListTrials, list)), StatusCode::kInvalidArgument);
  list.set_page_size(1);
  for (const char* token : {"x", "1-2-3-4", "ffffffffffffffffffffff-0-0-0", "----"}) {
    list.set_page_token(token);
    EXPECT_EQ(code(service.Call(&Stub::ListTrials, list)), StatusCode::kInvalidArgument) << token;
  }
  v1::SetAttributesRequest large;
  large.set_study("x");
  (*large.mutable_set())["a"] = std::string(kMaxTextBytes + 1, 'x');
  EXPECT_EQ(code(service.Call(&Stub::SetAttributes, large)), StatusCode::kInvalidArgument);
  // Beyond one message: gRPC itself refuses, on this side or that.
  const RawAnswer huge =
      CallRaw(service.PlainChannel(), "/jizi.v1.TuneService/GetStudy", std::string(17 << 20, '\n'));
  EXPECT_EQ(huge.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(service.Call(&Stub::GetStudy, Get("x")).ok());
}

// Property: no reachable input ends the server.
TEST(Robustness, RandomBytesToEveryMethodGetAnErrorOrAnAnswer) {
  TestService service(Transport::kUnix);
  Must(service.Call(&Stub::CreateStudy, NewStudy("x")));
  const char* given = std::getenv("JIZI_TEST_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  SCOPED_TRACE("JIZI_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto channel = service.PlainChannel();
  const auto* methods =
      v1::CreateStudyRequest::descriptor()->file()->FindServiceByName("TuneService");
  ASSERT_NE(methods, nullptr);
  std::string valid;
  NewStudy("y").SerializeToString(&valid);
  for (int i = 0; i < methods->method_count(); ++i) {
    if (methods->method(i)->server_streaming()) continue;
    for (int round = 0; round < 20; ++round) {
      std::string body = round % 2 == 0 ? valid : std::string(random() % 200, '\0');
      for (int change = 0; change < 8 && !body.empty(); ++change)
        body[random() % body.size()] = static_cast<char>(random());
      if (round < 2) body.clear();
      CallRaw(channel, std::string("/jizi.v1.TuneService/") + methods->method(i)->name(), body);
    }
  }
  EXPECT_TRUE(service.Call(&Stub::GetStudy, Get("x")).ok());
}

}  // namespace
}  // namespace jizi::tuner
