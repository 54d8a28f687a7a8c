#pragma once
// stream.h - WatchStudy's streams on gRPC: at most kMaxStreams, each pumped from the thread aside,
// ended together at shutdown. Fails: ResourceExhausted TOO_MANY_STREAMS, Unavailable SHUTTING_DOWN,
// NotFound, InvalidArgument; each ends its stream. Threads: any.

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "jizi/v1/tune_service.pb.h"
#include "tuner-service/engine/engine.h"
#include "tuner-service/rpc/aside.h"
#include "tuner-service/rpc/watch.h"

namespace jizi::tuner {

class Streams;

class WatchStream final : public grpc::ServerWriteReactor<v1::WatchStudyResponse>,
                          public std::enable_shared_from_this<WatchStream> {
 public:
  using OnEnd = std::function<void(const Status&)>;
  WatchStream(std::shared_ptr<Streams> streams, std::shared_ptr<Aside> aside, int64_t after,
              OnEnd on_end);

  // Subscribes and begins to send; ends at once where that fails, or the caller is not admitted.
  void Start(Engine& engine, const std::string& study, const Status& admitted);
  void End(const Status& status);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  friend class Streams;
  void Nudge();  // There may be something to send or an end.
  void Pump();   // On the thread aside.

  const std::shared_ptr<Streams> streams_;
  const std::shared_ptr<Aside> aside_;
  const OnEnd on_end_;
  WatchBuffer buffer_;
  v1::WatchStudyResponse response_;  // Being written.
  const int64_t after_;

  Mutex mutex_;
  std::shared_ptr<WatchStream> self_ GUARDED_BY(mutex_);  // Until OnDone.
  std::unique_ptr<Engine::Subscription> subscription_ GUARDED_BY(mutex_);
  bool pumping_ GUARDED_BY(mutex_) = false;
  bool again_ GUARDED_BY(mutex_) = false;
};

// All open streams.
class Streams {
 public:
  Status Add(WatchStream* stream);  // Fails when there are too many, or no more are taken.
  void Remove(WatchStream* stream);
  void End();
  bool WaitUntilEmpty(std::chrono::steady_clock::time_point deadline);

 private:
  Mutex mutex_;
  CondVar changed_;
  std::set<WatchStream*> open_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace jizi::tuner
