#include "tuner-service/cli/watcher.h"

#include <utility>

namespace jizi::tuner {
namespace {

constexpr std::chrono::milliseconds kRetry{500};
constexpr size_t kMostArrived = 1000;
constexpr std::chrono::seconds kFullLook{1};
constexpr std::chrono::hours kStream{
    24};  // Every wait has an end; then the stream is opened again.

}  // namespace

StudyWatcher::StudyWatcher(Client& client, std::string study)
    : client_(client), study_(std::move(study)) {
  thread_ = std::thread([this] { Run(); });
}

StudyWatcher::~StudyWatcher() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    if (context_ != nullptr) context_->TryCancel();
    changed_.NotifyAll();
  }
  thread_.join();
}

std::vector<v1::WatchStudyResponse> StudyWatcher::Take() {
  const MutexLock lock(mutex_);
  changed_.NotifyAll();
  return std::exchange(arrived_, {});
}

Status StudyWatcher::ended() {
  const MutexLock lock(mutex_);
  return ended_;
}

bool StudyWatcher::away() {
  const MutexLock lock(mutex_);
  return away_;
}

void StudyWatcher::Run() {
  int64_t position = -1;
  while (Stream(position) && Sleep(kRetry)) {
  }
}

bool StudyWatcher::Sleep(std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  const MutexLock lock(mutex_);
  while (!stopped_ && changed_.WaitUntil(mutex_, deadline)) {
  }
  return !stopped_;
}

bool StudyWatcher::Stream(int64_t& position) {
  grpc::ClientContext context;
  client_.Prepare(context, kStream);
  {
    const MutexLock lock(mutex_);
    if (stopped_) return false;
    context_ = &context;
  }
  v1::WatchStudyRequest request;
  request.set_study(study_);
  request.set_after_log_position(position);
  const auto reader = client_.stub().WatchStudy(&context, request);
  v1::WatchStudyResponse response;
  while (reader->Read(&response)) {
    // A place inside a snapshot is none to go on from: the rest of it would never come.
    if (!response.more()) position = response.log_position();
    const MutexLock lock(mutex_);
    away_ = false;
    arrived_.push_back(std::move(response));
    while (!stopped_ && arrived_.size() >= kMostArrived) {
      changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kFullLook);
    }
  }
  const grpc::Status finished = reader->Finish();
  const Status status = Client::Check(context, finished);
  const MutexLock lock(mutex_);
  context_ = nullptr;
  if (stopped_) return false;
  // A stream that ends for another reason than the service's absence will end again.
  const bool again = status.ok() || IsAway(status) || status.code() == StatusCode::kCancelled;
  away_ = again && !status.ok();
  if (!again) ended_ = status;
  return again;
}

}  // namespace jizi::tuner
