// command_change.cc - enqueue, retry, pause, resume, stop, delete: one call each.

#include "tuner-service/cli/commands.h"
#include "tuner-service/cli/requests.h"
#include "tuner-service/cli/show.h"
#include "tuner-service/cli/terminal.h"
#include "tuner-service/cli/text.h"
#include "tuner-service/cli/values.h"
#include "tuner-service/rpc/convert.h"

namespace jizi::tuner {
namespace {

StatusOr<ServiceConnection> ConnectToChange(const QueryOptions& options) {
  return Connect(TRY(Resolved(options.target, options.study)), Purpose::kChange);
}

// The change is made by then; that it was made may still not be heard.
Status Tell(const QueryOptions& options, const google::protobuf::Message& message,
            const std::string& text) {
  return options.json ? Write(Json(message) + "\n") : WriteText(text + "\n");
}

Status Enqueue(const QueryOptions& options, const std::vector<std::string>& assignments) {
  const ServiceConnection connection = TRY(ConnectToChange(options));
  const v1::Study study = TRY(GetStudy(*connection.client, options.study));
  const StudySpec spec = TRY(FromWire(study.spec()));
  const Params params = TRY(ParseAssignments(spec.space, assignments));
  v1::EnqueueTrialRequest request;
  request.set_study(options.study);
  request.set_request_id(RandomHex(16));
  for (const auto& [name, value] : params) (*request.mutable_params())[name] = ToWire(value);
  const auto response =
      TRY(connection.client->Call(&v1::TuneService::Stub::EnqueueTrial, request, kCommandDeadline));
  return Tell(options, response.trial(),
              "trial " + std::to_string(response.trial().id()) +
                  " is queued: " + ShowParams(study.spec(), response.trial()));
}

Status Retry(const QueryOptions& options, const std::vector<int64_t>& trials) {
  const ServiceConnection connection = TRY(ConnectToChange(options));
  v1::RetryTrialsRequest request;
  request.set_study(options.study);
  request.set_request_id(RandomHex(16));
  for (const int64_t trial : trials) request.add_trials(trial);
  const auto response =
      TRY(connection.client->Call(&v1::TuneService::Stub::RetryTrials, request, kCommandDeadline));
  std::vector<std::string> queued;
  for (const int64_t trial : response.queued()) queued.push_back(std::to_string(trial));
  return Tell(
      options, response,
      queued.empty() ? "no trial has failed" : "queued again: trial " + Joined(queued, ", "));
}

Status SetState(const QueryOptions& options, StudyAction action) {
  const ServiceConnection connection = TRY(ConnectToChange(options));
  v1::SetStudyStateRequest request;
  request.set_study(options.study);
  request.set_state(action == StudyAction::kPause    ? v1::STUDY_STATE_PAUSED
                    : action == StudyAction::kResume ? v1::STUDY_STATE_ACTIVE
                                                     : v1::STUDY_STATE_STOPPED);
  const auto response = TRY(
      connection.client->Call(&v1::TuneService::Stub::SetStudyState, request, kCommandDeadline));
  std::string text = Shown(options.study) + " is " + StateName(response.study().state());
  if (!response.study().state_why().empty()) text += ": " + Fit(response.study().state_why(), 300);
  return Tell(options, response.study(), text);
}

Status Delete(const QueryOptions& options) {
  const ServiceConnection connection = TRY(ConnectToChange(options));
  v1::DeleteStudyRequest request;
  request.set_study(options.study);
  const auto response =
      TRY(connection.client->Call(&v1::TuneService::Stub::DeleteStudy, request, kCommandDeadline));
  return Tell(options, response,
              Shown(options.study) + " is deleted; its trials' folders are left where they are");
}

}  // namespace

ExitCode CommandEnqueue(const QueryOptions& options, const std::vector<std::string>& assignments) {
  return Done(Enqueue(options, assignments));
}
ExitCode CommandRetry(const QueryOptions& options, const std::vector<int64_t>& trials) {
  return Done(Retry(options, trials));
}
ExitCode CommandSetState(const QueryOptions& options, StudyAction action) {
  return Done(SetState(options, action));
}
ExitCode CommandDelete(const QueryOptions& options) {
  return Done(Delete(options));
}

}  // namespace jizi::tuner
