#include "tuner-service/engine/decision_pool.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/mutex.h"

namespace jizi::tuner {

namespace {

constexpr std::chrono::milliseconds kGrace{500};

}  // namespace

struct DecisionPool::Shared {
  Mutex mutex;
  CondVar changed;
  std::deque<DecisionJob> jobs GUARDED_BY(mutex);
  bool stopping GUARDED_BY(mutex) = false;
  bool ended GUARDED_BY(mutex) = false;

  Mutex finish_mutex;  // Held over a call, so that Stop knows that none goes on.
  std::function<void(DecisionResult)> finish GUARDED_BY(finish_mutex);
};

DecisionPool::DecisionPool(std::function<void(DecisionResult)> finish)
    : shared_(std::make_shared<Shared>()) {
  {
    const MutexLock lock(shared_->finish_mutex);
    shared_->finish = std::move(finish);
  }
  thread_ = std::thread([shared = shared_] { Run(shared); });
}

DecisionPool::~DecisionPool() {
  Stop(std::chrono::steady_clock::now());
}

void DecisionPool::Start(DecisionJob job) {
  const MutexLock lock(shared_->mutex);
  shared_->jobs.push_back(std::move(job));
  shared_->changed.NotifyAll();
}

void DecisionPool::Drop(StudyId study) {
  const MutexLock lock(shared_->mutex);
  std::erase_if(shared_->jobs, [&](const DecisionJob& job) { return job.study == study; });
}

void DecisionPool::Stop(std::chrono::steady_clock::time_point deadline) {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(shared_->finish_mutex);
    shared_->finish = nullptr;
  }
  bool ended = false;
  {
    const MutexLock lock(shared_->mutex);
    shared_->stopping = true;
    shared_->jobs.clear();
    shared_->changed.NotifyAll();
    // A moment is given even past the deadline: an idle thread only has to wake up.
    const auto until = std::max(deadline, std::chrono::steady_clock::now() + kGrace);
    while (!shared_->ended && shared_->changed.WaitUntil(shared_->mutex, until)) {
    }
    ended = shared_->ended;
  }
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void DecisionPool::Run(const std::shared_ptr<Shared>& shared) {
  for (;;) {
    DecisionJob job;
    {
      const MutexLock lock(shared->mutex);
      while (shared->jobs.empty() && !shared->stopping) shared->changed.Wait(shared->mutex);
      if (shared->stopping) {
        shared->ended = true;
        shared->changed.NotifyAll();
        return;
      }
      job = std::move(shared->jobs.front());
      shared->jobs.pop_front();
    }
    DecisionResult result{
        job.study,
        job.epoch,
        {job.need.decision, job.need.log_position, job.need.count,
         job.scheduler->Suggest(job.snapshot, job.need.count,
                                Rng::ForSuggest(job.snapshot.spec->seed, job.need.decision),
                                *job.memo)}};
    job = {};  // The snapshot goes before the engine writes on: it then need not copy.
    const MutexLock lock(shared->finish_mutex);
    if (shared->finish) shared->finish(std::move(result));
  }
}

}  // namespace jizi::tuner
