// What a server says of itself as it ends, or as its store does: health, calls in flight, the log.

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <condition_variable>
#include <fstream>
#include <future>
#include <mutex>

#include "tests/rpc/rpc_testing.h"
#include "tests/store/fault_vfs.h"

namespace jizi::tuner {
namespace {

using Stub = v1::TuneService::Stub;

const std::string kServing("\x08\x01", 2);  // grpc.health.v1.HealthCheckResponse
const std::string kNotServing("\x08\x02", 2);

v1::GetStudyRequest Get(const std::string& study) {
  v1::GetStudyRequest request;
  request.set_study(study);
  return request;
}

// grpc.health.v1.Health/Watch of the service, as a foreign client has it.
class HealthWatch {
 public:
  explicit HealthWatch(const TestService& service) : stub_(service.PlainChannel()) {
    context_.set_deadline(std::chrono::system_clock::now() + kDeadline);
    call_ = stub_.PrepareCall(&context_, "/grpc.health.v1.Health/Watch", &queue_);
    call_->StartCall(nullptr);
    const grpc::Slice slice(std::string("\x0a\x13jizi.v1.TuneService"));
    if (!Came()) return;
    call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    EXPECT_TRUE(Came());
  }
  ~HealthWatch() {
    context_.TryCancel();
    grpc::Status status;
    call_->Finish(&status, nullptr);
    EXPECT_TRUE(Came());
    queue_.Shutdown();
    while (Came()) {
    }
  }
  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;

  // The next answer, at the latest at the deadline.
  std::string Next() {
    grpc::ByteBuffer answer;
    call_->Read(&answer, nullptr);
    std::vector<grpc::Slice> slices;
    std::string text;
    if (!Came() || !answer.Dump(&slices).ok()) return "ended";
    for (const grpc::Slice& part : slices)
      text.append(reinterpret_cast<const char*>(part.begin()), part.size());
    return text;
  }

 private:
  bool Came() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

TEST(Shutdown, HealthGoesNotServingAndCallsFindNobody) {
  TestService service(Transport::kTcp);
  std::future<void> ended;
  {
    HealthWatch health(service);
    EXPECT_EQ(health.Next(), kServing);
    // Who watches is told before the server goes.
    ended = std::async(std::launch::async,
                       [&] { service.server().Shutdown(std::chrono::seconds(20)); });
    EXPECT_EQ(health.Next(), kNotServing);
  }
  ended.get();
  const auto gone = service.client().Call(&Stub::GetStudy, Get("x"), std::chrono::seconds(20));
  EXPECT_EQ(gone.status().code(), StatusCode::kUnavailable);
}

TEST(Contract3, HealthGoesNotServingWhenTheStoreIsLostAndEveryCallSaysSo) {
  testing::FaultVfs disk;
  TestService service(Transport::kTcp, {}, disk.name());
  Must(service.Call(&Stub::CreateStudy, NewStudy("kept")));
  HealthWatch health(service);
  EXPECT_EQ(health.Next(), kServing);
  disk.FailAt(1, testing::Fault::kIoError);
  const auto lost = service.Call(&Stub::CreateStudy, NewStudy("lost"));
  EXPECT_EQ(DetailOf(lost.status()).code, "STORE_LOST") << lost.status();
  EXPECT_EQ(health.Next(), kNotServing);
  const auto after = service.Call(&Stub::GetStudy, Get("kept"));
  EXPECT_EQ(after.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(DetailOf(after.status()).code, "STORE_LOST");
  EXPECT_FALSE(DetailOf(after.status()).mend.empty());
}

TEST(Contract3, AFullDiskIsNoLossAndTheServerGoesOnServing) {
  testing::FaultVfs disk;
  TestService service(Transport::kTcp, {}, disk.name());
  for (const auto fault : {testing::Fault::kFull, testing::Fault::kReadOnly}) {
    disk.FailAt(1, fault);
    const auto refused = service.Call(&Stub::CreateStudy, NewStudy("x"));
    EXPECT_EQ(refused.status().code(), StatusCode::kUnavailable) << refused.status();
    EXPECT_EQ(DetailOf(refused.status()).code,
              fault == testing::Fault::kFull ? "STORE_FULL" : "STORE_READ_ONLY");
  }
  EXPECT_TRUE(Must(service.Call(&Stub::CreateStudy, NewStudy("x"))).created());
  HealthWatch health(service);
  EXPECT_EQ(health.Next(), kServing);
}

// A disk that takes its time, once told so.
class SlowStore final : public Store {
 public:
  StatusOr<std::vector<StudyName>> List() override { return store_->List(); }
  StatusOr<StudyId> LastId() override { return store_->LastId(); }
  StatusOr<StudyData> Load(StudyId study) override { return store_->Load(study); }
  Status Append(std::span<const LogRecord> records) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kDeadline, [this] { return !slow_; });
    return store_->Append(records);
  }
  void Slow(bool slow) {
    const std::lock_guard lock(mutex_);
    slow_ = slow;
    changed_.notify_all();
  }

 private:
  const std::unique_ptr<Store> store_ = MakeMemoryStore();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool slow_ = false;
};

// gRPC's callback threads are as few as two.
TEST(Contract1, NoThreadOfGrpcWaitsForTheDisk) {
  TempFolder folder;
  auto owned = std::make_unique<SlowStore>();
  SlowStore& store = *owned;
  const auto engine = *Engine::Start(std::move(owned), {});
  ServerOptions options;
  options.listen = "unix:" + (folder / "socket");
  const auto server = *Server::Start(*engine, options);
  const auto client = *Client::Connect({server->address(), "", ""});
  ASSERT_TRUE(client->Call(&Stub::CreateStudy, NewStudy("x"), kDeadline).ok());
  store.Slow(true);
  std::vector<std::future<Status>> waiting;
  for (int i = 0; i < 64; ++i) {
    waiting.push_back(std::async(std::launch::async, [&, i] {
      v1::SetAttributesRequest request;
      request.set_study("x");
      (*request.mutable_set())["a"] = std::to_string(i);
      return client->Call(&Stub::SetAttributes, request, kDeadline).status();
    }));
  }
  // Refused where requests are read, behind all of them: somebody reads.
  for (int i = 0; i < 64; ++i) {
    const auto refused = client->Call(&Stub::GetStudy, Get(""), kDeadline / 2);
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument) << refused.status();
  }
  for (const auto& call : waiting) {
    EXPECT_EQ(call.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  }
  store.Slow(false);
  for (auto& call : waiting) EXPECT_TRUE(call.get().ok());
  server->Shutdown(std::chrono::seconds(1));
}

TEST(CallLogLines, AFailureNamesStudyAndPeer) {
  TempFolder folder;
  ServerOptions options;
  options.log = CallLog::kFailures;
  options.log_file = folder / "log";
  testing::FaultVfs disk;
  TestService service(Transport::kTcp, options, disk.name());
  disk.FailAt(1, testing::Fault::kFull);
  EXPECT_FALSE(service.Call(&Stub::CreateStudy, NewStudy("a study of mine")).ok());
  service.server().Shutdown(std::chrono::seconds(1));
  std::string line;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (line.empty() && std::chrono::steady_clock::now() < deadline) {
    std::ifstream log(options.log_file);
    std::getline(log, line);
  }
  EXPECT_NE(line.find("study=\"a study of mine\""), std::string::npos) << line;
  EXPECT_NE(line.find("peer=\"ipv4:127.0.0.1:"), std::string::npos) << line;
}

TEST(Shutdown, ACallInFlightIsAnsweredOrCancelledNeverLeftHanging) {
  for (int round = 0; round < 5; ++round) {
    TestService service(Transport::kUnix);
    Must(service.Call(&Stub::CreateStudy, NewStudy("x")));
    std::vector<std::future<StatusCode>> calls;
    for (int i = 0; i < 8; ++i) {
      calls.push_back(std::async(std::launch::async, [&service, i] {
        return service.client()
            .Call(&Stub::Suggest, NewSuggest("x", "w" + std::to_string(i), 1), kDeadline)
            .status()
            .code();
      }));
    }
    service.server().Shutdown(std::chrono::milliseconds(round * 5));
    for (auto& call : calls) {
      const StatusCode code = call.get();
      EXPECT_TRUE(code == StatusCode::kOk || code == StatusCode::kUnavailable ||
                  code == StatusCode::kCancelled)
          << int(code);
    }
  }
}

}  // namespace
}  // namespace jizi::tuner
