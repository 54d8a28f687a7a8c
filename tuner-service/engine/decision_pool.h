#pragma once
// decision_pool.h - one thread that runs Scheduler::Suggest on snapshots, so that a slow one (a GP
// fit) holds up nobody's report.
// Threads: Start and Drop from the engine thread; `finish` is called on the pool's thread.
// Cost: one decision at a time, in order.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "tuner-service/core/core.h"

namespace jizi::tuner {

struct DecisionJob {
  StudyId study = 0;
  int64_t epoch = 0;  // Of the study in memory: a result for an older one is dropped.
  NeedDecision need;
  Study snapshot;
  std::shared_ptr<const Scheduler> scheduler;
  std::shared_ptr<Memo> memo;  // Only the pool touches its value.
};

struct DecisionResult {
  StudyId study = 0;
  int64_t epoch = 0;
  AnswerCommand answer;
};

class DecisionPool {
 public:
  explicit DecisionPool(std::function<void(DecisionResult)> finish);
  ~DecisionPool();  // Stop(0).
  DecisionPool(const DecisionPool&) = delete;
  DecisionPool& operator=(const DecisionPool&) = delete;

  void Start(DecisionJob job);
  void Drop(StudyId study);  // Of what has not begun.

  // No call of finish once this returns. A decision that is being computed cannot be broken off:
  // past the deadline its thread is left to finish alone (it owns all that it reads), and what it
  // finds is dropped.
  void Stop(std::chrono::steady_clock::time_point deadline);

 private:
  struct Shared;
  static void Run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace jizi::tuner
