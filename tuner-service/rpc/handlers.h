#pragma once
// handlers.h - what each call does: convert, ask the engine, convert. Knows no gRPC.
// Threads: any; none waits. The engine answers on its committer thread, which must not call back
// in: what follows a reply (reading the study after a change of state) and what takes long (pages)
// goes aside. Closures own what they use: they may outlive this.

#include <memory>

#include "jizi/v1/tune_service.pb.h"
#include "tuner-service/engine/engine.h"
#include "tuner-service/rpc/answer.h"
#include "tuner-service/rpc/aside.h"

namespace jizi::tuner {

class Handlers {
 public:
  Handlers(Engine& engine, std::shared_ptr<Aside> aside)
      : engine_(engine), aside_(std::move(aside)) {}

  void CreateStudy(const v1::CreateStudyRequest& request,
                   const Answer<v1::CreateStudyResponse>& answer);
  void GetStudy(const v1::GetStudyRequest& request, const Answer<v1::GetStudyResponse>& answer);
  void ListStudies(const v1::ListStudiesRequest& request,
                   const Answer<v1::ListStudiesResponse>& answer);
  void DeleteStudy(const v1::DeleteStudyRequest& request,
                   const Answer<v1::DeleteStudyResponse>& answer);
  void SetStudyState(const v1::SetStudyStateRequest& request,
                     const Answer<v1::SetStudyStateResponse>& answer);

  void Suggest(const v1::SuggestRequest& request, const Answer<v1::SuggestResponse>& answer);
  void Attach(const v1::AttachRequest& request, const Answer<v1::AttachResponse>& answer);
  void Report(const v1::ReportRequest& request, const Answer<v1::ReportResponse>& answer);
  void RegisterCheckpoint(const v1::RegisterCheckpointRequest& request,
                          const Answer<v1::RegisterCheckpointResponse>& answer);
  void Renew(const v1::RenewRequest& request, const Answer<v1::RenewResponse>& answer);
  void Release(const v1::ReleaseRequest& request, const Answer<v1::ReleaseResponse>& answer);
  void Complete(const v1::CompleteRequest& request, const Answer<v1::CompleteResponse>& answer);

  void GetTrial(const v1::GetTrialRequest& request, const Answer<v1::GetTrialResponse>& answer);
  void ListTrials(const v1::ListTrialsRequest& request,
                  const Answer<v1::ListTrialsResponse>& answer);
  void EnqueueTrial(const v1::EnqueueTrialRequest& request,
                    const Answer<v1::EnqueueTrialResponse>& answer);
  void RetryTrials(const v1::RetryTrialsRequest& request,
                   const Answer<v1::RetryTrialsResponse>& answer);
  void SetAttributes(const v1::SetAttributesRequest& request,
                     const Answer<v1::SetAttributesResponse>& answer);

 private:
  Engine& engine_;
  std::shared_ptr<Aside> aside_;
};

}  // namespace jizi::tuner
