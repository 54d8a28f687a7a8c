// The session against a service that answers as the test says: lost answers, refusals, calls that
// hang.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "proto/client.h"
#include "tests/trial_helper/local_service.h"
#include "trial-helper/session.h"

namespace jizi::helper {
namespace {

using namespace std::chrono_literals;
using jizi::testing::Eventually;

class Scripted : public v1::TuneService::Service {
 public:
  // What the next calls of Report get, OK when there is nothing; and what was sent.
  void Answer(Status status) {
    const std::lock_guard lock(mutex_);
    script_.push_back(std::move(status));
  }
  void Hold(bool hold) {
    const std::lock_guard lock(mutex_);
    hold_ = hold;
    changed_.notify_all();
  }
  std::vector<v1::ReportRequest> reports() {
    const std::lock_guard lock(mutex_);
    return reports_;
  }
  std::vector<std::string> order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  void set_next_sequence(int64_t next) {
    const std::lock_guard lock(mutex_);
    next_ = next;
  }

  grpc::Status Report(grpc::ServerContext* context, const v1::ReportRequest* request,
                      v1::ReportResponse* response) override {
    context->AddTrailingMetadata("jizi-protocol", kProtocolVersion);
    std::unique_lock lock(mutex_);
    reports_.push_back(*request);
    order_.push_back("report " + std::to_string(request->sequence()));
    changed_.wait_for(lock, 30s, [&] { return !hold_ || context->IsCancelled(); });
    if (!script_.empty()) {
      const Status status = script_.front();
      script_.pop_front();
      if (!status.ok()) return ToGrpc(status);
    }
    next_ = request->sequence() + 1;
    response->set_lease_s(60);
    return grpc::Status::OK;
  }
  grpc::Status RegisterCheckpoint(grpc::ServerContext* context,
                                  const v1::RegisterCheckpointRequest* request,
                                  v1::RegisterCheckpointResponse* response) override {
    context->AddTrailingMetadata("jizi-protocol", kProtocolVersion);
    const std::lock_guard lock(mutex_);
    order_.push_back("checkpoint " + std::to_string(request->sequence()));
    next_ = request->sequence() + 1;
    response->set_lease_s(60);
    return grpc::Status::OK;
  }
  grpc::Status Attach(grpc::ServerContext* context, const v1::AttachRequest* request,
                      v1::AttachResponse* response) override {
    context->AddTrailingMetadata("jizi-protocol", kProtocolVersion);
    const std::lock_guard lock(mutex_);
    *response->add_held()->mutable_lease() = request->lease();
    response->add_next_sequence(next_);
    response->add_last_step(-1);
    return grpc::Status::OK;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Status> script_;
  bool hold_ = false;
  int64_t next_ = 1;
  std::vector<v1::ReportRequest> reports_;
  std::vector<std::string> order_;
};

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    char name[] = "/tmp/jizi-session-XXXXXX";
    folder_ = mkdtemp(name);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + folder_ + "/socket", grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    client_ = *Client::Connect({"unix:" + folder_ + "/socket", "", ""});
    outbox_ = std::make_unique<Outbox>(folder_ + "/outbox");
    options_.lease.set_study("study");
    options_.lease.set_trial(1);
    options_.lease.set_attempt(1);
    options_.lease.set_token(std::string(16, 't'));
    options_.next_sequence = 1;
  }
  ~SessionTest() override {
    service_.Hold(false);
    session_.reset();
    server_->Shutdown(std::chrono::system_clock::now() + 5s);
    std::filesystem::remove_all(folder_);
  }

  Session& Begin() {
    session_ = std::make_unique<Session>(*client_, *outbox_, options_);
    return *session_;
  }
  static v1::Measurement At(int64_t step) {
    v1::Measurement measurement;
    measurement.set_step(step);
    for (const char* name : {"val", "loss", "accuracy", "examples"}) {
      (*measurement.mutable_metrics())[name] = static_cast<double>(step);
    }
    return measurement;
  }
  static SteadyTime Soon() { return std::chrono::steady_clock::now() + 60s; }
  static std::string Bytes(const v1::ReportRequest& request) {
    std::string bytes;
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    request.SerializeWithCachedSizes(&coded);
    coded.Trim();
    return bytes;
  }

  std::string folder_;
  Scripted service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Outbox> outbox_;
  Session::Options options_;
  std::unique_ptr<Session> session_;
};

Status Away() {
  return Status(StatusCode::kUnavailable, "the disk is full");
}

TEST_F(SessionTest, Contract12ALostAnswerIsAskedForWithTheSameBytes) {
  for (int i = 0; i < 3; ++i) service_.Answer(Away());
  Session& session = Begin();
  session.Report(At(1), std::nullopt);
  ASSERT_TRUE(Eventually([&] { return service_.reports().size() >= 2; }));
  for (int64_t step = 2; step <= 9; ++step) session.Report(At(step), std::nullopt);
  ASSERT_TRUE(session.Flush(Soon()));
  const auto reports = service_.reports();
  ASSERT_GE(reports.size(), 5u);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(Bytes(reports[i]), Bytes(reports[0]));
  EXPECT_EQ(reports[0].sequence(), 1);
  EXPECT_EQ(reports[4].sequence(), 2);
  EXPECT_TRUE(reports[4].catching_up());
}

TEST_F(SessionTest, Contract21ReportReturnsAtOnceAndWhatWaitsGoesInOneCall) {
  service_.Hold(true);
  Session& session = Begin();
  session.Report(At(1), std::nullopt);
  ASSERT_TRUE(Eventually([&] { return service_.reports().size() == 1; }));
  for (int64_t step = 2; step <= 100; ++step) session.Report(At(step), std::nullopt);
  // Nothing was answered, and nothing waited.
  EXPECT_EQ(service_.reports().size(), 1u);
  service_.Hold(false);
  ASSERT_TRUE(session.Flush(Soon()));
  const auto reports = service_.reports();
  int measurements = 0;
  int64_t last = 0;
  for (size_t i = 0; i < reports.size(); ++i) {
    EXPECT_EQ(reports[i].sequence(), static_cast<int64_t>(i) + 1);
    for (const v1::Measurement& measurement : reports[i].measurements()) {
      EXPECT_EQ(measurement.step(), ++last);
      ++measurements;
    }
  }
  EXPECT_EQ(measurements, 100);
  EXPECT_LE(reports.size(), 3u);
}

TEST_F(SessionTest, ACallThatHangsIsOnDiskSoon) {
  service_.Hold(true);
  Session& session = Begin();
  for (int64_t step = 1; step <= 10; ++step) session.Report(At(step), std::nullopt);
  EXPECT_TRUE(Eventually([&] {
    int measurements = 0;
    for (const auto& request : ReadOutbox(folder_ + "/outbox").requests) {
      measurements += request.measurements_size();
    }
    return measurements == 10;
  }));
  service_.Hold(false);
  ASSERT_TRUE(session.Flush(Soon()));
  EXPECT_TRUE(Eventually([&] { return ReadOutbox(folder_ + "/outbox").requests.empty(); }));
}

TEST_F(SessionTest, ARefusedReportIsDroppedAndTheNumbersStayWithoutAGap) {
  service_.Answer(Error(StatusCode::kInvalidArgument, "a metric's name is too long", {}));
  Session& session = Begin();
  session.Report(At(1), std::nullopt);
  ASSERT_TRUE(session.Flush(Soon()));
  session.Report(At(2), std::nullopt);
  ASSERT_TRUE(session.Flush(Soon()));
  const auto reports = service_.reports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1].sequence(), 1);
  EXPECT_EQ(reports[1].measurements(0).step(), 2);
}

TEST_F(SessionTest, ACheckpointComesAfterTheReportsBeforeIt) {
  service_.Hold(true);
  Session& session = Begin();
  session.Report(At(1), std::nullopt);
  ASSERT_TRUE(Eventually([&] { return service_.reports().size() == 1; }));
  session.Report(At(2), std::nullopt);
  session.AddCheckpoint({});
  service_.Hold(false);
  ASSERT_TRUE(session.Flush(Soon()));
  EXPECT_EQ(service_.order(), (std::vector<std::string>{"report 1", "report 2", "checkpoint 3"}));
}

TEST_F(SessionTest, AWaitInVainIsPaidOncePerOutage) {
  service_.Hold(true);
  Session& session = Begin();
  const int64_t first = session.Report(At(1), std::nullopt);
  session.WaitForAnswer(first, std::chrono::duration<double>(0.05));
  const auto before = std::chrono::steady_clock::now();
  for (int64_t step = 2; step <= 20; ++step) {
    session.WaitForAnswer(session.Report(At(step), std::nullopt),
                          std::chrono::duration<double>(30));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - before, 20s);
}

TEST_F(SessionTest, AnEarlierProcessesOutboxGoesFirstAndIsNumberedWithoutAGap) {
  {
    Outbox outbox(folder_ + "/outbox");
    for (const int64_t sequence : {3, 5, 6}) {  // 4: a checkpoint that was in flight.
      v1::ReportRequest request;
      *request.mutable_lease() = options_.lease;
      request.set_sequence(sequence);
      *request.add_measurements() = At(sequence);
      ASSERT_TRUE(outbox.Append({&request}));
    }
  }
  service_.set_next_sequence(4);  // 3 was acknowledged.
  options_.next_sequence = 4;
  outbox_ = std::make_unique<Outbox>(folder_ + "/outbox");
  Session& session = Begin();
  session.Report(At(7), std::nullopt);
  ASSERT_TRUE(session.Flush(Soon()));
  const auto reports = service_.reports();
  ASSERT_EQ(reports.size(), 3u);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(reports[static_cast<size_t>(i)].sequence(), 4 + i);
    EXPECT_EQ(reports[static_cast<size_t>(i)].measurements(0).step(), 5 + i);
  }
  EXPECT_TRUE(ReadOutbox(folder_ + "/outbox").requests.empty());
}

TEST_F(SessionTest, EndingAtOnceLeavesEverythingOnDisk) {
  service_.Hold(true);
  Session& session = Begin();
  for (int64_t step = 1; step <= 10; ++step) session.Report(At(step), std::nullopt);
  session_.reset();
  std::vector<int64_t> steps;
  for (const auto& request : ReadOutbox(folder_ + "/outbox").requests) {
    for (const auto& measurement : request.measurements()) steps.push_back(measurement.step());
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

}  // namespace
}  // namespace jizi::helper
