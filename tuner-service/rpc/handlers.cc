#include "tuner-service/rpc/handlers.h"

#include <chrono>
#include <string>
#include <utility>

#include "tuner-service/rpc/calls.h"
#include "tuner-service/rpc/checks.h"
#include "tuner-service/rpc/convert.h"
#include "tuner-service/rpc/pages.h"

namespace jizi::tuner {
namespace {

Timestamp Now() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

Status Overloaded() {
  return Error(StatusCode::kResourceExhausted, "too many calls wait",
               {"TOO_MANY_CALLS", "", "try again in a moment, with fewer calls at a time"});
}

// Runs the command and writes its reply, which must be a T, with `write(const T&, Response*)`.
template <typename T, typename Command, typename Response, typename Write>
void Run(Engine& engine, const std::string& study, StatusOr<Command> command,
         const Answer<Response>& answer, Write write) {
  if (!command.ok()) return answer.End(command.status());
  engine.Execute(study, *std::move(command), [answer, write](StatusOr<Reply> reply) {
    if (!reply.ok()) return answer.End(reply.status());
    const T* typed = std::get_if<T>(&*reply);
    if (typed == nullptr) {
      return answer.End(Error(StatusCode::kInternal, "the core answered another call",
                              {"INTERNAL", "", "this is a bug of Jizi: please report it"}));
    }
    answer.Give([&](Response* response) { write(*typed, response); });
  });
}

// Writes a page aside from the committer.
template <typename Value, typename Response, typename MakePage>
Engine::Done<Value> Paged(std::shared_ptr<Aside> aside, const Answer<Response>& answer,
                          MakePage make_page) {
  return
      [aside = std::move(aside), answer, make_page = std::move(make_page)](StatusOr<Value> value) {
        if (!value.ok()) return answer.End(value.status());
        // A copy of a view is cheap, and a std::function wants copies.
        const auto shared = std::make_shared<const Value>(*std::move(value));
        const bool posted = aside->TryPost([answer, make_page, shared] {
          StatusOr<Response> page = make_page(*shared);
          if (!page.ok()) return answer.End(page.status());
          answer.Give([&](Response* response) { *response = *std::move(page); });
        });
        if (!posted) answer.End(Overloaded());
      };
}

}  // namespace

void Handlers::CreateStudy(const v1::CreateStudyRequest& request,
                           const Answer<v1::CreateStudyResponse>& answer) {
  if (Status checked = CheckRequestId({"request_id"}, request.request_id()); !checked.ok()) {
    return answer.End(checked);
  }
  // Here, and not where specs are read: a file may hold a study of such a name.
  if (Status checked = CheckNotBlank({"spec.name"}, request.spec().name()); !checked.ok()) {
    return answer.End(checked);
  }
  StatusOr<StudySpec> spec = FromWire(request.spec());
  if (!spec.ok()) return answer.End(spec.status());
  engine_.Create(*std::move(spec), request.request_id(), request.resume(),
                 [answer](StatusOr<Engine::Created> created) {
                   if (!created.ok()) return answer.End(created.status());
                   answer.Give([&](v1::CreateStudyResponse* response) {
                     *response->mutable_study() = ToWire(created->view);
                     response->set_created(created->created);
                   });
                 });
}

void Handlers::GetStudy(const v1::GetStudyRequest& request,
                        const Answer<v1::GetStudyResponse>& answer) {
  if (Status checked = CheckStudyName({"study"}, request.study()); !checked.ok())
    return answer.End(checked);
  engine_.Read(request.study(), [answer](StatusOr<StudyView> view) {
    if (!view.ok()) return answer.End(view.status());
    answer.Give(
        [&](v1::GetStudyResponse* response) { *response->mutable_study() = ToWire(*view); });
  });
}

void Handlers::ListStudies(const v1::ListStudiesRequest& request,
                           const Answer<v1::ListStudiesResponse>& answer) {
  engine_.List(Paged<std::vector<StudyView>>(aside_, answer,
                                             [request](const std::vector<StudyView>& studies) {
                                               return tuner::ListStudies(studies, request);
                                             }));
}

void Handlers::DeleteStudy(const v1::DeleteStudyRequest& request,
                           const Answer<v1::DeleteStudyResponse>& answer) {
  if (Status checked = CheckStudyName({"study"}, request.study()); !checked.ok())
    return answer.End(checked);
  engine_.Delete(request.study(),
                 [answer](const StatusOr<DoneReply>& done) { answer.End(done.status()); });
}

void Handlers::SetStudyState(const v1::SetStudyStateRequest& request,
                             const Answer<v1::SetStudyStateResponse>& answer) {
  if (Status checked = CheckStudyName({"study"}, request.study()); !checked.ok())
    return answer.End(checked);
  StatusOr<SetStateCommand> command = FromWire(request);
  if (!command.ok()) return answer.End(command.status());
  Engine& engine = engine_;
  const auto read = [answer, &engine, study = request.study()] {
    engine.Read(study, [answer](StatusOr<StudyView> view) {
      if (!view.ok()) return answer.End(view.status());
      answer.Give(
          [&](v1::SetStudyStateResponse* response) { *response->mutable_study() = ToWire(*view); });
    });
  };
  engine.Execute(request.study(), *command,
                 [answer, read, aside = aside_](const StatusOr<Reply>& reply) {
                   if (!reply.ok()) return answer.End(reply.status());
                   if (!aside->TryPost(read)) answer.End(Overloaded());
                 });
}

void Handlers::Suggest(const v1::SuggestRequest& request,
                       const Answer<v1::SuggestResponse>& answer) {
  if (Status checked = CheckStudyName({"study"}, request.study()); !checked.ok())
    return answer.End(checked);
  Run<SuggestReply>(
      engine_, request.study(), FromWire(request, RandomTokens), answer,
      [study = request.study()](const SuggestReply& reply, v1::SuggestResponse* response) {
        ToWire(reply, study, response);
      });
}

void Handlers::Attach(const v1::AttachRequest& request, const Answer<v1::AttachResponse>& answer) {
  Run<AttachReply>(
      engine_, request.lease().study(), FromWire(request), answer,
      [study = request.lease().study()](const AttachReply& reply, v1::AttachResponse* response) {
        ToWire(reply, study, response);
      });
}

void Handlers::Report(const v1::ReportRequest& request, const Answer<v1::ReportResponse>& answer) {
  Run<ReportReply>(
      engine_, request.lease().study(), FromWire(request, Now()), answer,
      [](const ReportReply& reply, v1::ReportResponse* response) { ToWire(reply, response); });
}

void Handlers::RegisterCheckpoint(const v1::RegisterCheckpointRequest& request,
                                  const Answer<v1::RegisterCheckpointResponse>& answer) {
  Run<RegisterCheckpointReply>(
      engine_, request.lease().study(), FromWire(request), answer,
      [](const RegisterCheckpointReply& reply, v1::RegisterCheckpointResponse* response) {
        ToWire(reply, response);
      });
}

void Handlers::Renew(const v1::RenewRequest& request, const Answer<v1::RenewResponse>& answer) {
  const std::string study = request.leases_size() == 0 ? "" : request.leases(0).study();
  Run<RenewReply>(
      engine_, study, FromWire(request), answer,
      [](const RenewReply& reply, v1::RenewResponse* response) { ToWire(reply, response); });
}

void Handlers::Release(const v1::ReleaseRequest& request,
                       const Answer<v1::ReleaseResponse>& answer) {
  Run<ReleaseReply>(engine_, request.lease().study(), FromWire(request), answer,
                    [](const ReleaseReply&, v1::ReleaseResponse*) {});
}

void Handlers::Complete(const v1::CompleteRequest& request,
                        const Answer<v1::CompleteResponse>& answer) {
  Run<CompleteReply>(engine_, request.lease().study(), FromWire(request, RandomTokens, Now()),
                     answer,
                     [study = request.lease().study()](const CompleteReply& reply,
                                                       v1::CompleteResponse* response) {
                       ToWire(reply, study, response);
                     });
}

void Handlers::GetTrial(const v1::GetTrialRequest& request,
                        const Answer<v1::GetTrialResponse>& answer) {
  if (Status checked = CheckStudyName({"study"}, request.study()); !checked.ok())
    return answer.End(checked);
  engine_.Read(request.study(), Paged<StudyView>(aside_, answer, [request](const StudyView& view) {
                 return tuner::GetTrial(view, request);
               }));
}

void Handlers::ListTrials(const v1::ListTrialsRequest& request,
                          const Answer<v1::ListTrialsResponse>& answer) {
  if (Status checked = CheckStudyName({"study"}, request.study()); !checked.ok())
    return answer.End(checked);
  if (!request.worker().empty()) {
    return engine_.ReadWorker(request.study(), request.worker(),
                              Paged<WorkerView>(aside_, answer, [request](const WorkerView& view) {
                                return tuner::ListTrials(view.study, request, view.held);
                              }));
  }
  engine_.Read(request.study(), Paged<StudyView>(aside_, answer, [request](const StudyView& view) {
                 return tuner::ListTrials(view, request);
               }));
}

void Handlers::EnqueueTrial(const v1::EnqueueTrialRequest& request,
                            const Answer<v1::EnqueueTrialResponse>& answer) {
  if (Status checked = CheckStudyName({"study"}, request.study()); !checked.ok())
    return answer.End(checked);
  Run<EnqueueReply>(engine_, request.study(), FromWire(request), answer,
                    [](const EnqueueReply& reply, v1::EnqueueTrialResponse* response) {
                      ToWire(reply, response);
                    });
}

void Handlers::RetryTrials(const v1::RetryTrialsRequest& request,
                           const Answer<v1::RetryTrialsResponse>& answer) {
  if (Status checked = CheckStudyName({"study"}, request.study()); !checked.ok())
    return answer.End(checked);
  Run<RetryReply>(
      engine_, request.study(), FromWire(request), answer,
      [](const RetryReply& reply, v1::RetryTrialsResponse* response) { ToWire(reply, response); });
}

void Handlers::SetAttributes(const v1::SetAttributesRequest& request,
                             const Answer<v1::SetAttributesResponse>& answer) {
  if (Status checked = CheckStudyName({"study"}, request.study()); !checked.ok())
    return answer.End(checked);
  Run<DoneReply>(engine_, request.study(), FromWire(request), answer,
                 [](const DoneReply&, v1::SetAttributesResponse*) {});
}

}  // namespace jizi::tuner
