#include "tuner-service/engine/engine.h"

#include <thread>
#include <utility>

#include "base/mutex.h"
#include "tuner-service/engine/call_size.h"
#include "tuner-service/engine/engine_thread.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Status QueueFull(size_t limit) {
  return Error(StatusCode::kResourceExhausted,
               "more than " + std::to_string(limit) + " calls wait for the service",
               {"QUEUE_FULL", "", "wait a moment and try again, or use fewer workers"});
}

Status QueueTooLarge(size_t bytes) {
  return Error(
      StatusCode::kResourceExhausted,
      "the calls that wait for the service hold more than " + std::to_string(bytes >> 20) + " MiB",
      {"QUEUE_FULL", "", "wait a moment and try again, or send smaller requests"});
}

// Reads hold nothing to speak of.
size_t SizeOf(const EngineCall& call) {
  if (const auto* execute = std::get_if<ExecuteCall>(&call)) return BytesOf(execute->command);
  if (const auto* create = std::get_if<CreateCall>(&call)) return BytesOf(create->spec);
  return sizeof(call);
}

Status StoreLost() {
  return Error(StatusCode::kUnavailable, "the store is lost; the service ends",
               {"STORE_LOST", "", "look at the disk, then start it again on the same file"});
}

class EngineOfThreads final : public Engine {
 public:
  EngineOfThreads(std::unique_ptr<Store> store, EngineOptions options, Clock& clock)
      : store_(std::move(store)),
        options_(std::move(options)),
        clock_(clock),
        queue_(options_.queue, options_.queue_bytes),
        committer_(*store_, {.retry = options_.commit_retry,
                             .wake_engine = [this] { queue_.Wake(); },
                             .on_fatal = options_.on_fatal}),
        pool_([this](DecisionResult result) { queue_.PushOwn(std::move(result)); }),
        brain_(*store_, options_, clock_, queue_, committer_, pool_, directory_) {}

  ~EngineOfThreads() override { Shutdown(milliseconds(0)); }

  Status Begin() {
    if (Status loaded = brain_.Load(); !loaded.ok()) return loaded;
    clock_.OnJump([this] { queue_.Wake(); });
    thread_ = std::thread([this] { brain_.Run(); });
    return {};
  }

  void Create(StudySpec spec, std::string request_id, bool resume, Done<Created> done) override {
    Submit(CreateCall{std::move(spec), std::move(request_id), resume, std::move(done)});
  }
  void Delete(std::string study, Done<DoneReply> done) override {
    Submit(DeleteCall{std::move(study), std::move(done)});
  }
  void Execute(std::string study, Command command, Done<Reply> done) override {
    Submit(ExecuteCall{std::move(study), std::move(command), std::move(done)});
  }
  void Read(std::string study, Done<StudyView> done) override {
    Submit(ReadCall{std::move(study), std::move(done)});
  }
  void ReadWorker(std::string study, std::string worker, Done<WorkerView> done) override {
    Submit(ReadWorkerCall{std::move(study), std::move(worker), std::move(done)});
  }
  void List(Done<std::vector<StudyView>> done) override { Submit(ListCall{std::move(done)}); }

  StatusOr<std::unique_ptr<Subscription>> Watch(
      std::string study, std::function<void(const StudyChange&)> sink) override {
    if (!directory_.Has(study)) return StudyNotFound(study);
    auto watcher = std::make_shared<Watcher>(std::move(sink));
    EngineCall call = WatchCall{std::move(study), watcher};
    TRY(Enqueue(call));
    return MakeSubscription(std::move(watcher));
  }

  void Shutdown(milliseconds drain) override {
    const MutexLock lock(shutdown_mutex_);  // A second caller waits for the first one's work.
    if (shut_down_) return;
    shut_down_ = true;
    const auto until = steady_clock::now() + drain;
    clock_.OnJump(nullptr);
    brain_.Close(until);
    if (thread_.joinable()) thread_.join();
    pool_.Stop(until);
    committer_.Stop();
  }

  bool healthy() const override { return committer_.healthy(); }

 private:
  Status Enqueue(EngineCall& call) {
    if (!committer_.healthy()) return StoreLost();
    switch (queue_.Push(call, SizeOf(call))) {
      case EngineQueue::Pushed::kYes:
        return {};
      case EngineQueue::Pushed::kFull:
        return QueueFull(options_.queue);
      case EngineQueue::Pushed::kTooManyBytes:
        return QueueTooLarge(options_.queue_bytes);
      case EngineQueue::Pushed::kClosed:
        break;
    }
    return ShuttingDown();
  }

  template <typename Call>
  void Submit(Call submitted) {
    EngineCall call = std::move(submitted);
    const Status enqueued = Enqueue(call);
    if (!enqueued.ok()) std::get<Call>(call).done(enqueued);
  }

  const std::unique_ptr<Store> store_;
  const EngineOptions options_;
  Clock& clock_;
  Directory directory_;
  EngineQueue queue_;
  Committer committer_;
  DecisionPool pool_;
  EngineThread brain_;
  std::thread thread_;

  Mutex shutdown_mutex_;
  bool shut_down_ GUARDED_BY(shutdown_mutex_) = false;
};

}  // namespace

StatusOr<std::unique_ptr<Engine>> Engine::Start(std::unique_ptr<Store> store, EngineOptions options,
                                                Clock& clock) {
  auto engine = std::make_unique<EngineOfThreads>(std::move(store), std::move(options), clock);
  TRY(engine->Begin());
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace jizi::tuner
