#include "tuner-service/rpc/stream.h"

#include <utility>
#include <vector>

#include "proto/client.h"
#include "tuner-service/rpc/checks.h"
#include "tuner-service/rpc/limits.h"

namespace jizi::tuner {
namespace {

Status ShuttingDown() {
  return Error(StatusCode::kUnavailable, "the service is shutting down",
               {"SHUTTING_DOWN", "",
                "watch again once it is back, after the last log position that you have"});
}

Status CheckRequest(const std::string& study, int64_t after) {
  TRY(CheckStudyName({"study"}, study));
  return CheckCount({"after_log_position"}, after, -1, INT64_MAX);
}

}  // namespace

Status Streams::Add(WatchStream* stream) {
  MutexLock lock(mutex_);
  if (ended_) return ShuttingDown();
  if (open_.size() >= kMaxStreams) {
    return Error(StatusCode::kResourceExhausted, "as many streams as this server has are open",
                 {"TOO_MANY_STREAMS", std::to_string(kMaxStreams),
                  "end another one, or ask with GetStudy and ListTrials"});
  }
  open_.insert(stream);
  return absl::OkStatus();
}

void Streams::Remove(WatchStream* stream) {
  MutexLock lock(mutex_);
  open_.erase(stream);
  changed_.NotifyAll();
}

void Streams::End() {
  std::vector<std::shared_ptr<WatchStream>> open;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    for (WatchStream* stream : open_) open.push_back(stream->shared_from_this());
  }
  for (const auto& stream : open) stream->End(ShuttingDown());
}

bool Streams::WaitUntilEmpty(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(mutex_);
  while (!open_.empty()) {
    if (!changed_.WaitUntil(mutex_, deadline)) return open_.empty();
  }
  return true;
}

WatchStream::WatchStream(std::shared_ptr<Streams> streams, std::shared_ptr<Aside> aside,
                         int64_t after, OnEnd on_end)
    : streams_(std::move(streams)),
      aside_(std::move(aside)),
      on_end_(std::move(on_end)),
      buffer_(after),
      after_(after) {}

void WatchStream::Start(Engine& engine, const std::string& study, const Status& admitted) {
  {
    MutexLock lock(mutex_);
    self_ = shared_from_this();
  }
  const auto subscribe = [&]() -> Status {
    TRY(admitted);
    TRY(CheckRequest(study, after_));
    TRY(streams_->Add(this));
    // The sink holds no share of the stream: the subscription ends before the stream does.
    auto subscription = TRY(engine.Watch(study, [this](const StudyChange& change) {
      buffer_.Take(change);
      Nudge();
    }));
    // OnDone comes later: gRPC binds the stream once its handler has returned.
    MutexLock lock(mutex_);
    subscription_ = std::move(subscription);
    return absl::OkStatus();
  };
  if (Status subscribed = subscribe(); !subscribed.ok()) End(subscribed);
}

void WatchStream::End(const Status& status) {
  buffer_.End(status);
  Nudge();
}

void WatchStream::Nudge() {
  {
    MutexLock lock(mutex_);
    again_ = true;
    if (pumping_) return;
    pumping_ = true;
  }
  aside_->Post([stream = shared_from_this()] { stream->Pump(); });
}

void WatchStream::Pump() {
  for (;;) {
    {
      MutexLock lock(mutex_);
      again_ = false;
    }
    if (std::optional<v1::WatchStudyResponse> next = buffer_.Next()) {
      response_ = *std::move(next);
      StartWrite(&response_);
      return;  // Still pumping: OnWriteDone goes on.
    }
    if (const std::optional<Status> ended = buffer_.ended()) {
      on_end_(*ended);
      Finish(ToGrpc(*ended));
      return;  // Pumping for good: there is one Finish.
    }
    MutexLock lock(mutex_);
    if (!again_) {
      pumping_ = false;
      return;
    }
  }
}

void WatchStream::OnWriteDone(bool ok) {
  if (!ok) buffer_.End(Status(StatusCode::kCancelled, "the client is gone"));
  aside_->Post([stream = shared_from_this()] { stream->Pump(); });
}

void WatchStream::OnCancel() {
  End(Status(StatusCode::kCancelled, "the client is gone"));
}

void WatchStream::OnDone() {
  // Ending a subscription may wait for the committer: not on gRPC's thread.
  std::shared_ptr<WatchStream> self;
  {
    MutexLock lock(mutex_);
    self = std::move(self_);
  }
  aside_->Post([stream = std::move(self)] {
    std::unique_ptr<Engine::Subscription> subscription;
    {
      MutexLock lock(stream->mutex_);
      subscription = std::move(stream->subscription_);
    }
    subscription.reset();  // Without the lock, which the sink may want.
    stream->streams_->Remove(stream.get());
  });
}

}  // namespace jizi::tuner
