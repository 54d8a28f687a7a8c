#include "tuner-service/cli/study_maker.h"

#include "tuner-service/cli/requests.h"
#include "tuner-service/cli/text.h"
#include "tuner-service/rpc/convert.h"

namespace jizi::tuner {
namespace {

// One that takes part changes nothing of a study: not its budget, nor that somebody paused it.
StatusOr<v1::Study> Join(Client& client, const Sweep& sweep) {
  v1::Study study = TRY(GetStudy(client, sweep.study.name));
  const StudySpec there = TRY(FromWire(study.spec()));
  StudySpec ours = TRY(FromWire(ToWire(sweep.study)));  // As the wire brings it, for comparison.
  std::vector<std::string> differences;
  const auto compare = [&](bool same, const char* what) {
    if (!same) differences.emplace_back(what);
  };
  compare(ours.space == there.space, "parameters");
  compare(ours.metrics == there.metrics, "metric");
  compare(ours.method == there.method, "method");
  compare(ours.settings_json == there.settings_json, "the scheduler's settings");
  compare(ours.seed == there.seed, "seed");
  compare(ours.objective == there.objective, "objective");
  if (differences.empty()) return study;
  return Error(
      StatusCode::kFailedPrecondition,
      "study '" + Shown(sweep.study.name) + "' exists and differs: " + Joined(differences, ", "),
      {"STUDY_DIFFERS", sweep.study.name, "give every worker the same sweep file"});
}

StatusOr<v1::Study> Create(Client& client, const Sweep& sweep, Making making) {
  v1::CreateStudyRequest request;
  *request.mutable_spec() = ToWire(sweep.study);
  request.set_request_id(RandomHex(16));
  request.set_resume(making == Making::kResume);
  auto response = client.Call(&v1::TuneService::Stub::CreateStudy, request, kCommandDeadline);
  if (response.ok()) return std::move(*response->mutable_study());
  if (making == Making::kJoin && DetailOf(response.status()).code == "STUDY_EXISTS")
    return Join(client, sweep);
  return response.status();
}

}  // namespace

StatusOr<v1::Study> MakeStudy(Client& client, const Sweep& sweep, Making making,
                              const std::function<void(const std::string&)>& note) {
  v1::Study study = TRY(Create(client, sweep, making));
  // The request ids are fixed, so that a run that was killed in between enqueues them once.
  for (size_t i = 0; i < sweep.first_trials.size(); ++i) {
    if (study.state() != v1::STUDY_STATE_ACTIVE) break;
    v1::EnqueueTrialRequest enqueue;
    enqueue.set_study(sweep.study.name);
    enqueue.set_request_id("jizi-defaults-" + std::to_string(i));
    for (const auto& [name, value] : sweep.first_trials[i])
      (*enqueue.mutable_params())[name] = ToWire(value);
    const auto queued =
        client.Call(&v1::TuneService::Stub::EnqueueTrial, enqueue, kCommandDeadline);
    if (DetailOf(queued.status()).code == "REQUEST_ID_REUSED") {
      note("jizi: defaults were tried when the study was made; the new ones are not: " +
           std::string("`jizi enqueue` adds a trial"));
      break;
    }
    TRY(queued);
  }
  return study;
}

}  // namespace jizi::tuner
