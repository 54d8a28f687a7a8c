// ack_client.cc - a worker that speaks the wire by hand and writes down what was acknowledged, for
// the tests that kill the server.
//   ack_client ADDRESS STUDY WORKER LOG TRIALS     Makes the study if it is not there. Lines of
//   LOG: "report TRIAL ATTEMPT STEP VALUE" and "complete TRIAL".
// Every call is repeated, same number and same body, until it is answered; ends when the study is
// finished.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "proto/client.h"

namespace {

using jizi::v1::TuneService;
constexpr int kSteps = 20;
constexpr auto kStepTime = std::chrono::milliseconds(25);  // So that kills meet a run, not its end.
constexpr auto kCallDeadline = std::chrono::milliseconds(2000);
constexpr auto kGiveUp = std::chrono::seconds(120);

bool WorthRepeating(const jizi::Status& status) {
  return status.code() == jizi::StatusCode::kUnavailable ||
         status.code() == jizi::StatusCode::kDeadlineExceeded;
}

template <typename Request, typename Response>
jizi::StatusOr<Response> UntilAnswered(
    jizi::Client& client,
    grpc::Status (TuneService::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
    const Request& request) {
  const auto give_up = std::chrono::steady_clock::now() + kGiveUp;
  while (true) {
    auto response = client.Call(method, request, kCallDeadline);
    if (response.ok() || !WorthRepeating(response.status())) return response;
    if (std::chrono::steady_clock::now() > give_up) return response;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

class Worker {
 public:
  Worker(jizi::Client& client, std::string study, std::string name, const std::string& log)
      : client_(client),
        study_(std::move(study)),
        name_(std::move(name)),
        log_(log, std::ios::app) {}

  int Run(int64_t trials) {
    const auto created = UntilAnswered(client_, &TuneService::Stub::CreateStudy, Spec(trials));
    if (!created.ok()) return Fail("create", created.status());
    while (true) {
      jizi::v1::SuggestRequest request;
      request.set_study(study_);
      request.set_worker(name_);
      request.set_sequence(++sequence_);
      request.set_count(1);
      const auto answer = UntilAnswered(client_, &TuneService::Stub::Suggest, request);
      if (!answer.ok()) return Fail("suggest", answer.status());
      if (answer->has_finished()) return 0;
      if (answer->has_wait()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        continue;
      }
      for (const auto& assignment : answer->trials().assignments()) {
        if (const int failed = RunTrial(assignment); failed != 0) return failed;
      }
    }
  }

 private:
  jizi::v1::CreateStudyRequest Spec(int64_t trials) const {
    jizi::v1::CreateStudyRequest request;
    request.set_request_id(name_);
    request.set_resume(true);
    auto& spec = *request.mutable_spec();
    spec.set_name(study_);
    spec.set_method("random");
    auto& x = *spec.add_parameters();
    x.set_name("x");
    x.mutable_numeric()->mutable_uniform()->set_max(1.0);
    auto& metric = *spec.add_metrics();
    metric.set_name("value");
    metric.set_goal(jizi::v1::GOAL_MAXIMIZE);
    spec.mutable_budget()->set_run_cap(trials);
    return request;
  }

  int RunTrial(const jizi::v1::Assignment& assignment) {
    int64_t sequence = 0;
    const double x = assignment.trial().params().at("x").float_value();
    for (int step = 1; step <= kSteps; ++step) {
      std::this_thread::sleep_for(kStepTime);
      jizi::v1::ReportRequest report;
      *report.mutable_lease() = assignment.lease();
      report.set_sequence(++sequence);
      auto& measurement = *report.add_measurements();
      measurement.set_step(step);
      const double value = x * 1000 + step;
      (*measurement.mutable_metrics())["value"] = value;
      const auto answer = UntilAnswered(client_, &TuneService::Stub::Report, report);
      if (!answer.ok()) return Fail("report", answer.status());
      if (answer->rejected_size() > 0) {
        std::fprintf(stderr, "rejected: %s\n", answer->rejected(0).why().c_str());
        return 1;
      }
      log_ << "report " << assignment.trial().id() << " " << assignment.lease().attempt() << " "
           << step << " " << value << std::endl;
    }
    jizi::v1::CompleteRequest complete;
    *complete.mutable_lease() = assignment.lease();
    complete.set_sequence(++sequence);
    complete.mutable_finished();
    const auto answer = UntilAnswered(client_, &TuneService::Stub::Complete, complete);
    if (!answer.ok()) return Fail("complete", answer.status());
    log_ << "complete " << assignment.trial().id() << std::endl;
    return 0;
  }

  static int Fail(const char* call, const jizi::Status& status) {
    std::fprintf(stderr, "%s: %s\n", call, jizi::ForPeople(status).c_str());
    return 1;
  }

  jizi::Client& client_;
  std::string study_;
  std::string name_;
  std::ofstream log_;
  int64_t sequence_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: ack_client ADDRESS STUDY WORKER LOG TRIALS\n");
    return 2;
  }
  auto client = jizi::Client::Connect(jizi::ClientOptionsFromEnvironment(argv[1]));
  if (!client.ok()) {
    std::fprintf(stderr, "%s\n", jizi::ForPeople(client.status()).c_str());
    return 1;
  }
  return Worker(**client, argv[2], argv[3], argv[4]).Run(std::stoll(argv[5]));
}
