#include "tuner-service/rpc/service.h"

#include <grpcpp/alarm.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "jizi/v1/tune_service.grpc.pb.h"
#include "proto/client.h"
#include "tuner-service/rpc/stream.h"

namespace jizi::tuner {
namespace {

using Clock = std::chrono::steady_clock;

// A call that names no deadline, or a later one, is given up then.
constexpr std::chrono::minutes kLongestCall{5};

std::optional<std::string_view> Metadata(const grpc::CallbackServerContext& context,
                                         const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return std::nullopt;
  return std::string_view(found->second.data(), found->second.size());
}

template <typename Request>
std::string StudyOf(const Request& request) {
  if constexpr (requires { request.study(); }) {
    return request.study();
  } else if constexpr (requires { request.lease(); }) {
    return request.lease().study();
  } else if constexpr (requires { request.spec(); }) {
    return request.spec().name();
  } else {
    return "";
  }
}

Status TooLate() {
  return Error(StatusCode::kDeadlineExceeded, "the call was not answered in time",
               {"TIMEOUT", "", "try again: a repeated call gets the recorded answer"});
}

// One unary call: the wrapper that every method has. It owns itself until gRPC and everybody who
// may answer are done with it.
class UnaryCall final : public grpc::ServerUnaryReactor, public OpenCall {
 public:
  UnaryCall(Method method, grpc::CallbackServerContext* context, std::shared_ptr<Accounts> accounts,
            std::string study)
      : method_(method),
        accounts_(std::move(accounts)),
        study_(std::move(study)),
        context_(*context),
        start_(Clock::now()) {}

  // Lives until OnDone. A deadline is only armed where the client's own (which cancels the call)
  // does not do.
  void Open(std::shared_ptr<UnaryCall> self, const grpc::CallbackServerContext& context) {
    const auto limit = std::chrono::system_clock::now() + kLongestCall;
    if (context.deadline() > limit) {
      alarm_.Set(limit, [call = std::weak_ptr<UnaryCall>(self)](bool due) {
        const auto held = call.lock();
        if (due && held != nullptr && held->Claim()) held->Finish(TooLate());
      });
    }
    MutexLock lock(mutex_);
    self_ = std::move(self);
  }

  bool Claim() override { return !claimed_.exchange(true); }
  void Finish(const Status& status) override {
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start_);
    // Asked for where it is written alone: gRPC makes the text anew. The context lives until
    // OnDone.
    const bool written =
        accounts_->logs_calls() || (accounts_->logs_failures() && IsFailure(status));
    accounts_->Note(method_, {study_, written ? context_.peer() : "", status, took});
    grpc::ServerUnaryReactor::Finish(ToGrpc(status));
  }

  void OnCancel() override {
    if (Claim())
      Finish(Status(StatusCode::kCancelled, "the caller went away or its deadline passed"));
  }
  void OnDone() override {
    std::shared_ptr<UnaryCall> self;
    MutexLock lock(mutex_);
    self.swap(self_);
    alarm_.Cancel();
  }

 private:
  const Method method_;
  const std::shared_ptr<Accounts> accounts_;
  const std::string study_;
  const grpc::CallbackServerContext& context_;
  const Clock::time_point start_;
  std::atomic<bool> claimed_{false};
  grpc::Alarm alarm_;
  Mutex mutex_;
  std::shared_ptr<UnaryCall> self_ GUARDED_BY(mutex_);
};

class Service final : public TuneGrpcService, public v1::TuneService::CallbackService {
 public:
  Service(Engine& engine, std::shared_ptr<const Gate> gate, std::shared_ptr<Accounts> accounts,
          std::shared_ptr<Aside> aside)
      : engine_(engine),
        gate_(std::move(gate)),
        accounts_(std::move(accounts)),
        aside_(std::move(aside)),
        handlers_(engine, aside_),
        streams_(std::make_shared<Streams>()) {}

  grpc::Service* service() override { return this; }
  void EndStreams() override { streams_->End(); }
  bool WaitForStreams(Clock::time_point deadline) override {
    return streams_->WaitUntilEmpty(deadline);
  }

#define JIZI_UNARY(name)                                                                         \
  grpc::ServerUnaryReactor* name(grpc::CallbackServerContext* context,                           \
                                 const v1::name##Request* request, v1::name##Response* response) \
      override {                                                                                 \
    return Unary(Method::k##name, context, *request, response, &Handlers::name);                 \
  }
  JIZI_UNARY(CreateStudy)
  JIZI_UNARY(GetStudy)
  JIZI_UNARY(ListStudies)
  JIZI_UNARY(DeleteStudy)
  JIZI_UNARY(SetStudyState)
  JIZI_UNARY(Suggest)
  JIZI_UNARY(Attach)
  JIZI_UNARY(Report)
  JIZI_UNARY(RegisterCheckpoint)
  JIZI_UNARY(Renew)
  JIZI_UNARY(Release)
  JIZI_UNARY(Complete)
  JIZI_UNARY(GetTrial)
  JIZI_UNARY(ListTrials)
  JIZI_UNARY(EnqueueTrial)
  JIZI_UNARY(RetryTrials)
  JIZI_UNARY(SetAttributes)
#undef JIZI_UNARY

  grpc::ServerWriteReactor<v1::WatchStudyResponse>* WatchStudy(
      grpc::CallbackServerContext* context, const v1::WatchStudyRequest* request) override {
    const auto start = Clock::now();
    std::string study = accounts_->logs_failures() ? request->study() : "";
    auto on_end = [accounts = accounts_, study = std::move(study), peer = context->peer(),
                   start](const Status& status) {
      accounts->Note(Method::kWatchStudy,
                     {study, peer, status,
                      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start)});
    };
    auto stream = std::make_shared<WatchStream>(streams_, aside_, request->after_log_position(),
                                                std::move(on_end));
    const Status admitted = Admit(context);
    stream->Start(engine_, request->study(), admitted);
    return stream.get();
  }

 private:
  // Says our version, and whether the caller may go on.
  Status Admit(grpc::CallbackServerContext* context) const {
    context->AddTrailingMetadata("jizi-protocol", kProtocolVersion);
    return gate_->Check({Metadata(*context, "jizi-protocol"), Metadata(*context, "authorization")});
  }

  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Unary(Method method, grpc::CallbackServerContext* context,
                                  const Request& request, Response* response,
                                  void (Handlers::*handler)(const Request&,
                                                            const Answer<Response>&)) {
    auto call = std::make_shared<UnaryCall>(
        method, context, accounts_, accounts_->logs_failures() ? StudyOf(request) : std::string());
    UnaryCall* const reactor = call.get();
    call->Open(call, *context);
    const Answer<Response> answer(std::move(call), response);
    if (const Status admitted = Admit(context); !admitted.ok()) {
      answer.End(admitted);
    } else if (context->deadline() <= std::chrono::system_clock::now()) {
      answer.End(TooLate());
    } else {
      try {
        (handlers_.*handler)(request, answer);
      } catch (
          const std::exception& error) {  // Memory ran out, most likely; nothing of ours throws.
        answer.End(Error(StatusCode::kInternal, std::string("the call failed: ") + error.what(),
                         {"INTERNAL", "", "try again; if it comes back, please report it"}));
      }
    }
    return reactor;
  }

  Engine& engine_;
  const std::shared_ptr<const Gate> gate_;
  const std::shared_ptr<Accounts> accounts_;
  const std::shared_ptr<Aside> aside_;
  Handlers handlers_;
  const std::shared_ptr<Streams> streams_;
};

}  // namespace

std::unique_ptr<TuneGrpcService> TuneGrpcService::Make(Engine& engine,
                                                       std::shared_ptr<const Gate> gate,
                                                       std::shared_ptr<Accounts> accounts,
                                                       std::shared_ptr<Aside> aside) {
  return std::make_unique<Service>(engine, std::move(gate), std::move(accounts), std::move(aside));
}

}  // namespace jizi::tuner
