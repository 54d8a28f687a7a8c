// questions.cc - what people ask of results, through the C++ client.
//   build/release/query_results ADDRESS STUDY        (JIZI_TOKEN_FILE, JIZI_CA_FILE: over TCP)
#include <chrono>
#include <cstdio>
#include <map>
#include <vector>

#include "proto/client.h"

namespace {

using namespace std::chrono_literals;
using jizi::StatusOr;
using Stub = jizi::v1::TuneService::Stub;

StatusOr<std::vector<jizi::v1::Trial>> AllTrials(jizi::Client& client, const std::string& study) {
  std::vector<jizi::v1::Trial> trials;
  jizi::v1::ListTrialsRequest request;
  request.set_study(study);
  do {
    auto page = TRY(client.Call(&Stub::ListTrials, request, 60s));
    for (jizi::v1::Trial& trial : *page.mutable_trials()) trials.push_back(std::move(trial));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return trials;
}

jizi::Status Curve(jizi::Client& client, const jizi::v1::Study& study) {
  jizi::v1::GetTrialRequest request;
  request.set_study(study.spec().name());
  request.set_trial(study.best_trial());
  request.set_max_measurements(10'000);
  const auto answer = TRY(client.Call(&Stub::GetTrial, request, 60s));
  const std::string& metric = study.spec().metrics(0).name();
  std::printf("1. The best trial and its parameters\n%lld %.17g",
              static_cast<long long>(study.best_trial()), study.best_objective());
  const std::map<std::string, jizi::v1::Value> sorted(answer.trial().params().begin(),
                                                      answer.trial().params().end());
  for (const auto& [name, value] : sorted) {
    std::printf(" %s=%s", name.c_str(), jizi::ToJsonText(value).c_str());
  }
  std::printf("\n2. Its learning curve\n");
  for (const auto& measurement : answer.trial().measurements()) {
    const auto found = measurement.metrics().find(metric);
    if (found == measurement.metrics().end()) continue;
    std::printf("%lld %.17g\n", static_cast<long long>(measurement.step()), found->second);
  }
  return absl::OkStatus();
}

jizi::Status Ask(const std::string& address, const std::string& name) {
  const auto client = TRY(jizi::Client::Connect(jizi::ClientOptionsFromEnvironment(address)));
  jizi::v1::GetStudyRequest request;
  request.set_study(name);
  const auto study = TRY(client->Call(&Stub::GetStudy, request, 60s));
  if (study.study().has_best_trial()) TRY(Curve(*client, study.study()));

  std::printf("3. What failed, and why\n");
  const std::vector<jizi::v1::Trial> trials = TRY(AllTrials(*client, name));
  for (const jizi::v1::Trial& trial : trials) {
    if (trial.state() != jizi::v1::TRIAL_STATE_FAILED &&
        trial.state() != jizi::v1::TRIAL_STATE_INFEASIBLE) {
      continue;
    }
    std::printf("%lld %s\n", static_cast<long long>(trial.id()), trial.end_why().c_str());
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: query_results ADDRESS STUDY\n");
    return 2;
  }
  const jizi::Status status = Ask(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "query_results: %s\n", jizi::ForPeople(status).c_str());
  return status.ok() ? 0 : 1;
}
