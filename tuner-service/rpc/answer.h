#pragma once
// answer.h - the one answer that a call gets, whoever gives it first: the engine, the deadline, the
// caller's cancellation. Threads: any; copies belong to one call.

#include <memory>
#include <utility>

#include "base/status.h"

namespace jizi::tuner {

// A call that waits for its answer, as the transport keeps it.
class OpenCall {
 public:
  virtual ~OpenCall() = default;
  virtual bool Claim() = 0;  // True for one caller only, who then must call Finish. Until then the
                             // response's memory stays.
  virtual void Finish(const Status& status) = 0;
};

// Handlers pass copies along. When the last one goes without an answer, the call gets Unavailable:
// nothing is ever left hanging.
template <typename Response>
class Answer {
 public:
  Answer(std::shared_ptr<OpenCall> call, Response* response)
      : state_(std::make_shared<State>(std::move(call), response)) {}

  void End(const Status& status) const {
    if (state_->call->Claim()) state_->call->Finish(status);
  }
  // fill(Response*) writes the response; it may give back a Status.
  template <typename Fill>
  void Give(Fill fill) const {
    if (!state_->call->Claim()) return;
    if constexpr (std::is_void_v<decltype(fill(state_->response))>) {
      fill(state_->response);
      state_->call->Finish(absl::OkStatus());
    } else {
      state_->call->Finish(fill(state_->response));
    }
  }

 private:
  struct State {
    State(std::shared_ptr<OpenCall> of, Response* to) : call(std::move(of)), response(to) {}
    ~State() {
      if (!call->Claim()) return;
      call->Finish(Error(StatusCode::kUnavailable, "the service shut down before it could answer",
                         {"SHUTTING_DOWN", "",
                          "try again once it is back: a repeated call gets the recorded answer"}));
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    std::shared_ptr<OpenCall> call;
    Response* response;
  };
  std::shared_ptr<State> state_;
};

}  // namespace jizi::tuner
