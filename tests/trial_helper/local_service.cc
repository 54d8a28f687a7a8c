#include "tests/trial_helper/local_service.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <thread>

#include "tuner-service/store/store.h"

namespace jizi::testing {
namespace {

using namespace std::chrono_literals;

constexpr const char* kVariables[] = {
    "JIZI_ENDPOINT",   "JIZI_STUDY",           "JIZI_WORKER",     "JIZI_TRIAL",  "JIZI_ATTEMPT",
    "JIZI_LEASE",      "JIZI_PARAMS",          "JIZI_WARM_START", "JIZI_OUTBOX", "JIZI_ONE_TRIAL",
    "JIZI_TOKEN_FILE", "JIZI_WARM_START_STEP", "JIZI_CA_FILE",    "RANK",        "WORLD_SIZE",
    "LOCAL_RANK",      "JIZI_CHECKPOINT_DIR",  "LOCAL_WORLD_SIZE"};

std::string Hex(const std::string& bytes) {
  std::string hex;
  for (const unsigned char byte : bytes) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

// Random search that says what the test wants.
class Telling : public tuner::Scheduler {
 public:
  using Tell = std::function<std::optional<tuner::Directive>(const tuner::Measurement&)>;
  Telling(std::unique_ptr<tuner::Scheduler> inner, Tell tell)
      : inner_(std::move(inner)), tell_(std::move(tell)) {}
  StatusOr<tuner::Decision> Suggest(const tuner::Study& study, int count, tuner::Rng rng,
                                    tuner::Memo& memo) const override {
    return inner_->Suggest(study, count, rng, memo);
  }
  StatusOr<tuner::Decision> OnChange(const tuner::Study&, tuner::TrialId trial,
                                     const tuner::Change& change, tuner::Rng,
                                     tuner::Memo&) const override {
    tuner::Decision decision;
    if (const auto* reported = std::get_if<tuner::Reported>(&change)) {
      if (auto directive = tell_(reported->measurement)) decision.tell.emplace(trial, *directive);
    }
    return decision;
  }

 private:
  std::unique_ptr<tuner::Scheduler> inner_;
  Tell tell_;
};

}  // namespace

LocalService::LocalService() {
  char name[] = "/tmp/jizi-helper-XXXXXX";
  folder_ = mkdtemp(name);
  Start();
  auto client = Client::Connect({"unix:" + folder_ + "/s/socket", "", ""});
  EXPECT_TRUE(client.ok()) << client.status();
  client_ = *std::move(client);
}

LocalService::~LocalService() {
  Stop();
  std::filesystem::remove_all(folder_);
}

void LocalService::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(5s);
  engine_->Shutdown(5s);
  server_.reset();
  engine_.reset();
}

void LocalService::Start() {
  tuner::SqliteOptions file;
  file.path = folder_ + "/jizi.db";
  auto store = tuner::OpenSqliteStore(file);
  ASSERT_TRUE(store.ok()) << store.status();
  tuner::EngineOptions options;
  options.make_scheduler =
      [voice =
           voice_](const tuner::StudySpec& spec) -> StatusOr<std::unique_ptr<tuner::Scheduler>> {
    auto inner = TRY(tuner::MakeScheduler(spec));
    return std::make_unique<Telling>(std::move(inner), [voice](const tuner::Measurement& m) {
      const std::lock_guard lock(voice->mutex);
      return voice->tell ? voice->tell(m) : std::nullopt;
    });
  };
  auto engine = tuner::Engine::Start(*std::move(store), options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  engine_ = *std::move(engine);
  tuner::ServerOptions listening;
  listening.listen = "unix:" + folder_ + "/s/socket";
  auto server = tuner::Server::Start(*engine_, listening);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
}

void LocalService::Tell(
    std::function<std::optional<tuner::Directive>(const tuner::Measurement&)> tell) {
  const std::lock_guard lock(voice_->mutex);
  voice_->tell = std::move(tell);
}

void LocalService::CreateStudy(int64_t run_cap) {
  v1::CreateStudyRequest request;
  request.set_request_id("r1");
  v1::StudySpec& spec = *request.mutable_spec();
  spec.set_name("study");
  spec.set_method("random");
  spec.set_seed(7);
  spec.mutable_budget()->set_run_cap(run_cap);
  v1::MetricSpec& metric = *spec.add_metrics();
  metric.set_name("val");
  metric.set_goal(v1::GOAL_MAXIMIZE);
  v1::ParameterSpec& lr = *spec.add_parameters();
  lr.set_name("lr");
  lr.mutable_numeric()->mutable_uniform()->set_min(0.001);
  lr.mutable_numeric()->mutable_uniform()->set_max(0.1);
  lr.mutable_numeric()->mutable_uniform()->set_scale(v1::SCALE_LOG);
  v1::ParameterSpec& layers = *spec.add_parameters();
  layers.set_name("layers");
  layers.mutable_numeric()->mutable_uniform()->set_min(1);
  layers.mutable_numeric()->mutable_uniform()->set_max(4);
  layers.mutable_numeric()->set_integral(true);
  const auto created = client_->Call(&v1::TuneService::Stub::CreateStudy, request, 30s);
  ASSERT_TRUE(created.ok()) << ForPeople(created.status());
}

v1::Assignment LocalService::Suggest(double lease_s) {
  v1::SuggestRequest request;
  request.set_study("study");
  request.set_worker("worker");
  request.set_sequence(worker_sequence_++);
  request.set_lease_s(lease_s);
  const auto answer = client_->Call(&v1::TuneService::Stub::Suggest, request, 30s);
  EXPECT_TRUE(answer.ok()) << ForPeople(answer.status());
  if (!answer.ok() || answer->trials().assignments_size() != 1) return {};
  return answer->trials().assignments(0);
}

v1::Trial LocalService::TrialOf(int64_t trial) {
  v1::GetTrialRequest request;
  request.set_study("study");
  request.set_trial(trial);
  request.set_max_measurements(10'000);
  const auto response = client_->Call(&v1::TuneService::Stub::GetTrial, request, 30s);
  EXPECT_TRUE(response.ok()) << ForPeople(response.status());
  return response.ok() ? response->trial() : v1::Trial();
}

std::map<int64_t, double> LocalService::ValuesOf(int64_t trial) {
  std::map<int64_t, double> values;
  const v1::Trial found_trial = TrialOf(trial);
  for (const v1::Measurement& measurement : found_trial.measurements()) {
    const auto found = measurement.metrics().find("val");
    if (found == measurement.metrics().end()) continue;
    EXPECT_TRUE(values.emplace(measurement.step(), found->second).second)
        << "step " << measurement.step() << " is there twice";
  }
  return values;
}

v1::Study LocalService::StudyNow() {
  v1::GetStudyRequest request;
  request.set_study("study");
  const auto response = client_->Call(&v1::TuneService::Stub::GetStudy, request, 30s);
  EXPECT_TRUE(response.ok()) << ForPeople(response.status());
  return response.ok() ? response->study() : v1::Study();
}

std::map<std::string, std::string> LocalService::EnvironmentOf(
    const v1::Assignment& assignment) const {
  char name[32];
  std::snprintf(name, sizeof(name), "%06lld", static_cast<long long>(assignment.trial().id()));
  const std::string trial_folder = folder_ + "/trials/" + name;
  std::filesystem::create_directories(trial_folder + "/checkpoints");
  std::map<std::string, std::string> variables{
      {"JIZI_ENDPOINT", "unix:" + folder_ + "/s/socket"},
      {"JIZI_STUDY", "study"},
      {"JIZI_WORKER", "worker"},
      {"JIZI_TRIAL", std::to_string(assignment.trial().id())},
      {"JIZI_ATTEMPT", std::to_string(assignment.lease().attempt())},
      {"JIZI_LEASE", Hex(assignment.lease().token())},
      {"JIZI_CHECKPOINT_DIR", trial_folder + "/checkpoints"},
      {"JIZI_OUTBOX", outbox()}};
  std::string params = "{";
  for (const auto& [parameter, value] : assignment.trial().params()) {
    params += (params.size() > 1 ? ",\"" : "\"") + parameter + "\":" + ToJsonText(value);
  }
  variables["JIZI_PARAMS"] = params + "}";
  if (assignment.has_warm_start()) {
    variables["JIZI_WARM_START"] = trial_folder + "/" + assignment.warm_start().checkpoint().path();
    variables["JIZI_WARM_START_STEP"] = std::to_string(assignment.warm_start().checkpoint().step());
  }
  return variables;
}

void LocalService::Enter(const v1::Assignment& assignment) const {
  LeaveEnvironment();
  for (const auto& [name, value] : EnvironmentOf(assignment)) {
    setenv(name.c_str(), value.c_str(), 1);
  }
}

void LeaveEnvironment() {
  for (const char* name : kVariables) unsetenv(name);
}

bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

}  // namespace jizi::testing
