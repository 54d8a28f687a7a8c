#include "tests/rpc/rpc_testing.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "tuner-service/store/store.h"

namespace jizi::tuner {

TempFolder::TempFolder() {
  char path[] = "/tmp/jizi-rpc-XXXXXX";
  CHECK(mkdtemp(path) != nullptr);
  path_ = path;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

TestService::TestService(Transport transport, ServerOptions options, std::string vfs)
    : transport_(transport), options_(std::move(options)), vfs_(std::move(vfs)) {
  Start();
}

TestService::~TestService() {
  Kill();
}

void TestService::Start() {
  SqliteOptions sqlite;
  sqlite.path = folder_ / "test.db";
  sqlite.vfs = vfs_;
  auto store = OpenSqliteStore(sqlite);
  CHECK(store.ok());
  auto engine = Engine::Start(*std::move(store), EngineOptions());
  CHECK(engine.ok());
  engine_ = *std::move(engine);
  options_.listen =
      transport_ == Transport::kUnix ? "unix:" + (folder_ / "socket/s") : "127.0.0.1:0";
  auto server = Server::Start(*engine_, options_);
  if (!server.ok()) std::fprintf(stderr, "%s\n", ForPeople(server.status()).c_str());
  CHECK(server.ok());
  server_ = *std::move(server);
  ClientOptions client;
  client.address = server_->address();
  if (!options_.token.empty()) client.token_file = folder_ / "token";
  if (!options_.certificate_file.empty()) client.ca_file = options_.certificate_file;
  if (!options_.token.empty()) {
    FILE* file = std::fopen(client.token_file.c_str(), "w");
    CHECK(file != nullptr);
    std::fprintf(file, "%s\n", options_.token.c_str());
    std::fclose(file);
  }
  auto connected = Client::Connect(client);
  CHECK(connected.ok());
  client_ = *std::move(connected);
}

void TestService::Kill() {
  client_.reset();
  server_.reset();
  if (engine_ != nullptr) engine_->Shutdown(std::chrono::milliseconds(0));
  engine_.reset();
}

std::shared_ptr<grpc::Channel> TestService::PlainChannel() const {
  return grpc::CreateChannel(GrpcTarget(address()), grpc::InsecureChannelCredentials());
}

v1::CreateStudyRequest NewStudy(const std::string& name, const std::string& request_id) {
  v1::CreateStudyRequest request;
  request.set_request_id(request_id);
  v1::StudySpec* spec = request.mutable_spec();
  spec->set_name(name);
  spec->set_method("random");
  spec->set_seed(7);
  v1::ParameterSpec* lr = spec->add_parameters();
  lr->set_name("lr");
  lr->mutable_numeric()->mutable_uniform()->set_min(0.001);
  lr->mutable_numeric()->mutable_uniform()->set_max(1);
  lr->mutable_numeric()->mutable_uniform()->set_scale(v1::SCALE_LOG);
  v1::ParameterSpec* optimizer = spec->add_parameters();
  optimizer->set_name("optimizer");
  optimizer->mutable_categorical()->add_values()->set_string_value("sgd");
  optimizer->mutable_categorical()->add_values()->set_string_value("adam");
  v1::MetricSpec* metric = spec->add_metrics();
  metric->set_name("loss");
  metric->set_goal(v1::GOAL_MINIMIZE);
  return request;
}

v1::SuggestRequest NewSuggest(const std::string& study, const std::string& worker, int64_t sequence,
                              int count) {
  v1::SuggestRequest request;
  request.set_study(study);
  request.set_worker(worker);
  request.set_sequence(sequence);
  request.set_count(count);
  return request;
}

v1::Measurement MeasurementOf(int64_t step, double loss) {
  v1::Measurement measurement;
  measurement.set_step(step);
  (*measurement.mutable_metrics())["loss"] = loss;
  return measurement;
}

}  // namespace jizi::tuner
