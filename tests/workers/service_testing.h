#pragma once
// service_testing.h - what the tests of workers against a real service share: server, engine and
// store as shipped, over a Unix socket, and supervisors that are forked before gRPC starts a
// thread.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "proto/client.h"
#include "tests/workers/temp_folder.h"
#include "tuner-service/engine/engine.h"
#include "tuner-service/rpc/server.h"
#include "tuner-service/workers/random_hex.h"
#include "tuner-service/workers/trial_folder.h"
#include "tuner-service/workers/worker.h"

namespace jizi::tuner {

using namespace std::chrono_literals;
using Stub = v1::TuneService::Stub;

// Forked before there is a thread, for all tests of the program. One alone: it has a thread of
// ours, and a child forked beside a thread may inherit a lock that nobody will ever release.
class SupervisorOfAll : public testing::Environment {
 public:
  void SetUp() override {
    auto forked = Supervisor::Fork(lock(), 20s);
    ASSERT_TRUE(forked.ok()) << forked.status();
    supervisor = *std::move(forked);
  }
  void TearDown() override { supervisor.reset(); }
  std::string lock() const { return folder_ / "lock"; }
  std::unique_ptr<Supervisor> supervisor;

 private:
  TempFolder folder_;
};
inline SupervisorOfAll* const kAll =
    static_cast<SupervisorOfAll*>(testing::AddGlobalTestEnvironment(new SupervisorOfAll));

class WorkerTest : public testing::Test {
 protected:
  const std::string mark_ = "JIZI_TEST_MARK=" + RandomHex64();
  TempFolder folder_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
  std::string address_;

  void SetUp() override {
    Open();
    auto client = Client::Connect({.address = address_, .token_file = "", .ca_file = ""});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  void TearDown() override {
    Close();
    EXPECT_TRUE(Eventually([&] { return CountWith(mark_) == 0; })) << "a process is left";
  }
  void Open() {
    SqliteOptions file;
    file.path = folder_ / "studies.db";
    auto store = OpenSqliteStore(file);
    ASSERT_TRUE(store.ok()) << store.status();
    auto engine = Engine::Start(*std::move(store), {});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    ServerOptions options;
    options.listen = "unix:" + folder_.path() + "/s/socket";
    auto server = Server::Start(*engine_, options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = server_->address();
  }
  void Close() {
    if (server_) server_->Shutdown(5s);
    server_.reset();
    engine_.reset();
  }

  template <typename Request, typename Response>
  Response Must(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                const Request& request) {
    auto answer = client_->Call(method, request, 30s);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *std::move(answer) : Response();
  }

  void CreateStudy(int trials, bool with_metric = true) {
    v1::CreateStudyRequest request;
    v1::StudySpec& spec = *request.mutable_spec();
    spec.set_name("study");
    spec.set_method("random");
    spec.set_seed(1);
    spec.mutable_budget()->set_run_cap(trials);
    v1::ParameterSpec& lr = *spec.add_parameters();
    lr.set_name("lr");
    lr.mutable_numeric()->mutable_uniform()->set_min(0);
    lr.mutable_numeric()->mutable_uniform()->set_max(1);
    if (with_metric) {
      spec.add_metrics()->set_name("accuracy");
      spec.mutable_metrics(0)->set_goal(v1::GOAL_MAXIMIZE);
    }
    request.set_request_id(RandomHex64());
    Must(&Stub::CreateStudy, request);
  }
  std::vector<v1::Trial> Trials() {
    v1::ListTrialsRequest request;
    request.set_study("study");
    const v1::ListTrialsResponse page = Must(&Stub::ListTrials, request);
    return {page.trials().begin(), page.trials().end()};
  }
  v1::Trial Trial(int64_t id) {
    v1::GetTrialRequest request;
    request.set_study("study");
    request.set_trial(id);
    return Must(&Stub::GetTrial, request).trial();
  }
  int Count(v1::TrialState state) {
    int count = 0;
    for (const v1::Trial& trial : Trials()) count += trial.state() == state ? 1 : 0;
    return count;
  }

  WorkerOptions Options(const std::string& script, int slots = 1) {
    WorkerOptions options;
    options.service.address = address_;
    options.study = "study";
    options.slots = slots;
    options.folder = folder_ / "trials";
    options.launch.command = {folder_.Script("train", script), "${args}"};
    options.launch.grace = 5s;
    options.launch.environment["JIZI_TEST_MARK"] = mark_.substr(mark_.find('=') + 1);
    return options;
  }
  std::unique_ptr<Worker> Start(WorkerOptions options, Supervisor& supervisor) {
    auto worker = Worker::Start(std::move(options), supervisor);
    EXPECT_TRUE(worker.ok()) << worker.status();
    return *std::move(worker);
  }
  std::unique_ptr<Worker> Start(WorkerOptions options) {
    return Start(std::move(options), *kAll->supervisor);
  }
  void RunAll(WorkerOptions options) {
    auto worker = Start(std::move(options));
    ASSERT_TRUE(worker->WaitFor(90s));
    EXPECT_TRUE(worker->Wait().ok()) << worker->Wait();
  }
  std::string File(int64_t trial, const std::string& name) const {
    return ReadAll(TrialFolder(folder_ / "trials", trial) + "/" + name);
  }
};

}  // namespace jizi::tuner
