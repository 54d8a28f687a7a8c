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
  void AnswerCheckpoint(Status status) {
    const std::lock_guard lock(mutex_);
    checkpoint_script_.push_back(std::move(status));
  }
  void AnswerComplete(Status status) {
    const std::lock_guard lock(mutex_);
    complete_status_ = std::move(status);
  }
  // Of the next report that is taken.
  void Direct(const v1::Directive& directive) {
    const std::lock_guard lock(mutex_);
    directive_ = directive;
  }
  int renewals() {
    const std::lock_guard lock(mutex_);
    return renewals_;
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
  std::vector<int64_t> checkpoints() {
    const std::lock_guard lock(mutex_);
    return checkpoints_;
  }
  int64_t next_sequence() {
    const std::lock_guard lock(mutex_);
    return next_;
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
    *response->mutable_directive() = std::exchange(directive_, {});
    return grpc::Status::OK;
  }
  grpc::Status Renew(grpc::ServerContext* context, const v1::RenewRequest*,
                     v1::RenewResponse* response) override {
    context->AddTrailingMetadata("jizi-protocol", kProtocolVersion);
    const std::lock_guard lock(mutex_);
    ++renewals_;
    response->add_leases()->set_held(true);
    return grpc::Status::OK;
  }
  grpc::Status RegisterCheckpoint(grpc::ServerContext* context,
                                  const v1::RegisterCheckpointRequest* request,
                                  v1::RegisterCheckpointResponse* response) override {
    context->AddTrailingMetadata("jizi-protocol", kProtocolVersion);
    const std::lock_guard lock(mutex_);
    order_.push_back("checkpoint " + std::to_string(request->sequence()));
    if (!checkpoint_script_.empty()) {
      const Status status = checkpoint_script_.front();
      checkpoint_script_.pop_front();
      if (!status.ok()) return ToGrpc(status);
    }
    checkpoints_.push_back(request->checkpoint().step());
    next_ = request->sequence() + 1;
    response->set_lease_s(60);
    return grpc::Status::OK;
  }
  grpc::Status Complete(grpc::ServerContext* context, const v1::CompleteRequest*,
                        v1::CompleteResponse*) override {
    context->AddTrailingMetadata("jizi-protocol", kProtocolVersion);
    const std::lock_guard lock(mutex_);
    return ToGrpc(complete_status_);
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
  std::deque<Status> checkpoint_script_;
  Status complete_status_;
  v1::Directive directive_;
  int renewals_ = 0;
  std::vector<int64_t> checkpoints_;
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
  static v1::Checkpoint Saved(int64_t step) {
    v1::Checkpoint checkpoint;
    checkpoint.set_step(step);
    return checkpoint;
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

TEST_F(SessionTest, AFinalRefusalOfACheckpointIsDroppedAndSaidOnce) {
  for (int i = 0; i < 3; ++i) {
    service_.AnswerCheckpoint(Error(StatusCode::kResourceExhausted,
                                    "the trial has 10000 checkpoints",
                                    {"TOO_MANY_CHECKPOINTS", "trial 1", "save fewer"}));
  }
  ::testing::internal::CaptureStderr();
  Session& session = Begin();
  for (int64_t step = 1; step <= 3; ++step) {
    session.AddCheckpoint(Saved(step));
    session.Report(At(step), std::nullopt);
  }
  const bool flushed = session.Flush(Soon());
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(flushed);
  EXPECT_EQ(service_.reports().size(), 3u);
  EXPECT_FALSE(session.Take().lost);
  const size_t first = said.find("the trial has 10000 checkpoints");
  EXPECT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("the trial has 10000 checkpoints", first + 1), std::string::npos) << said;
  EXPECT_EQ(said.find("away"), std::string::npos) << said;
}

TEST_F(SessionTest, Contract9TheLeaseIsRenewedWhileNothingIsReported) {
  options_.lease_s = 0.3;
  Begin();
  EXPECT_TRUE(Eventually([&] { return service_.renewals() >= 3; }));
}

TEST_F(SessionTest, Contract9TheLeaseIsRenewedWhileAReportIsPutOff) {
  for (int i = 0; i < 1000; ++i) service_.Answer(Away());
  options_.lease_s = 0.3;
  Session& session = Begin();
  session.Report(At(1), std::nullopt);
  EXPECT_TRUE(Eventually([&] { return service_.renewals() >= 3; }));
  EXPECT_GE(service_.reports().size(), 2u);
}

TEST_F(SessionTest, ACompleteThatIsRefusedIsLeftToTheExitCode) {
  v1::CompleteRequest failed;
  failed.mutable_failed()->set_why("no data");
  service_.AnswerComplete(Error(StatusCode::kInvalidArgument, "not so", {"BAD_REQUEST", "", ""}));
  EXPECT_FALSE(Begin().Complete(failed, Soon()));
  session_.reset();
  service_.AnswerComplete(
      Error(StatusCode::kFailedPrecondition, "another has it", {"LEASE_LOST", "", ""}));
  EXPECT_TRUE(Begin().Complete(failed, Soon()));  // Nobody waits for it.
  session_.reset();
  service_.AnswerComplete({});
  EXPECT_TRUE(Begin().Complete(failed, Soon()));
}

TEST_F(SessionTest, ARollBackLeavesNothingOfTheAbandonedBranch) {
  for (const bool on_disk : {false, true}) {
    service_.Hold(true);
    Session& session = Begin();
    const size_t before = service_.reports().size();
    session.Report(At(1), std::nullopt);
    ASSERT_TRUE(Eventually([&] { return service_.reports().size() == before + 1; }));
    session.AddCheckpoint(Saved(1));
    session.Report(At(2), std::nullopt);
    session.AddCheckpoint(Saved(2));
    session.Report(At(3), std::nullopt);
    if (on_disk) {
      ASSERT_TRUE(Eventually([&] { return !ReadOutbox(folder_ + "/outbox").requests.empty(); }));
    }
    v1::Directive back;
    back.mutable_go_on()->set_roll_back_to(1);
    service_.Direct(back);
    service_.Hold(false);
    ASSERT_TRUE(session.Flush(Soon()));
    // The program has not heard of it yet: it is still on that branch.
    session.WaitForAnswer(session.Report(At(4), std::nullopt), std::chrono::duration<double>(60));
    session.AddCheckpoint(Saved(4));
    EXPECT_EQ(session.Take().roll_back_to, std::optional<int64_t>(1));
    session.Report(At(2), std::nullopt);
    session.AddCheckpoint(Saved(2));
    ASSERT_TRUE(session.Flush(Soon()));
    std::vector<int64_t> steps;
    const auto reports = service_.reports();
    for (size_t i = before; i < reports.size(); ++i) {
      for (const auto& measurement : reports[i].measurements()) steps.push_back(measurement.step());
    }
    EXPECT_EQ(steps, (std::vector<int64_t>{1, 2}));
    session_.reset();
    options_.next_sequence = service_.next_sequence();
  }
  EXPECT_EQ(service_.checkpoints(), (std::vector<int64_t>{1, 2, 1, 2}));
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
