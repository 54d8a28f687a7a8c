// WatchStudy's client: what it counts as seen, and what it holds.
#include "tuner-service/cli/watcher.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

namespace jizi::tuner {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

bool Until(const std::function<bool()>& condition) {
  const auto deadline = steady_clock::now() + seconds(60);
  while (!condition()) {
    if (steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// Streams what the test scripts: `script` gets the number of the stream and the position asked for.
class ScriptedService final : public v1::TuneService::Service {
 public:
  using Writer = grpc::ServerWriter<v1::WatchStudyResponse>;
  std::function<void(int, int64_t, Writer&)> script;
  std::atomic<int> streams{0};

  grpc::Status WatchStudy(grpc::ServerContext* context, const v1::WatchStudyRequest* request,
                          Writer* writer) override {
    context->AddTrailingMetadata("jizi-protocol", kProtocolVersion);
    script(streams++, request->after_log_position(), *writer);
    return grpc::Status::OK;
  }
};

class WatcherTest : public testing::Test {
 protected:
  WatcherTest() {
    std::string folder = testing::TempDir() + "jizi-watcher-XXXXXX";
    folder_ = mkdtemp(folder.data());
  }
  ~WatcherTest() override {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Serve() {
    const std::string address = "unix:" + folder_ + "/s";
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    auto client = Client::Connect({address, "", ""});
    ASSERT_TRUE(client.ok());
    client_ = *std::move(client);
  }
  static v1::WatchStudyResponse At(int64_t position) {
    v1::WatchStudyResponse response;
    response.set_log_position(position);
    return response;
  }

  ScriptedService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Client> client_;
  std::string folder_;
};

TEST_F(WatcherTest, APositionInTheMiddleOfASnapshotIsNoPlaceToGoOnFrom) {
  std::atomic<int64_t> asked{-2};
  service_.script = [&](int stream, int64_t after, ScriptedService::Writer& writer) {
    if (stream == 0) {
      writer.Write(At(3));
      v1::WatchStudyResponse part = At(9);
      part.set_snapshot(true);
      part.set_more(true);
      writer.Write(part);
    } else if (stream == 1) {
      asked = after;
    }
  };
  Serve();
  StudyWatcher watcher(*client_, "s");
  ASSERT_TRUE(Until([&] { return service_.streams > 1 && asked != -2; }));
  EXPECT_EQ(asked, 3);
}

TEST_F(WatcherTest, WhatNobodyTakesIsNotReadWithoutEnd) {
  constexpr int kSent = 3000;
  service_.script = [&](int stream, int64_t, ScriptedService::Writer& writer) {
    for (int i = 0; stream == 0 && i < kSent; ++i) writer.Write(At(i));
  };
  Serve();
  StudyWatcher watcher(*client_, "s");
  // All of it arrives, in portions that never exceed the bound.
  size_t most = 0;
  size_t taken = 0;
  ASSERT_TRUE(Until([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const size_t now = watcher.Take().size();
    most = std::max(most, now);
    taken += now;
    return taken >= kSent;
  }));
  EXPECT_LE(most, 1000u);
}

TEST_F(WatcherTest, TheDestructorEndsAFullWatcher) {
  service_.script = [&](int, int64_t, ScriptedService::Writer& writer) {
    for (int i = 0; i < 5000 && writer.Write(At(i)); ++i) {
    }
  };
  Serve();
  const auto begin = steady_clock::now();
  {
    StudyWatcher watcher(*client_, "s");
  }
  EXPECT_LT(steady_clock::now() - begin, seconds(30));
}

}  // namespace
}  // namespace jizi::tuner
