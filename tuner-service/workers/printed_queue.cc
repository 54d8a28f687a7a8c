#include "tuner-service/workers/printed_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace jizi::tuner {

void PrintedQueue::Add(v1::Measurement measurement) {
  const size_t bytes = measurement.SpaceUsedLong();
  waiting_.push_back({std::move(measurement), bytes});
  bytes_ += bytes;
  while (bytes_ > kMostBytes && waiting_.size() > 1) DropOldest();
}

void PrintedQueue::DropOldest() {
  const v1::Measurement& oldest = waiting_.front().measurement;
  v1::Measurement at;
  at.set_step(oldest.step());
  *at.mutable_time() = oldest.time();
  for (const auto& [name, value] : oldest.metrics()) {
    if (kept_.size() < kMostKeptNames || kept_.contains(name)) kept_[name] = {at, value};
  }
  ++dropped_;
  bytes_ -= waiting_.front().bytes;
  waiting_.pop_front();
}

void PrintedQueue::Clear() {
  waiting_.clear();
  bytes_ = 0;
  kept_.clear();
  batch_.clear();
}

int64_t PrintedQueue::size() const {
  return static_cast<int64_t>(waiting_.size() + batch_.size());
}

// To the front, as they were printed.
void PrintedQueue::ReturnKept() {
  std::map<int64_t, v1::Measurement> by_step;
  for (const auto& [name, kept] : kept_) {
    v1::Measurement& measurement = by_step.emplace(kept.at.step(), kept.at).first->second;
    (*measurement.mutable_metrics())[name] = kept.value;
  }
  kept_.clear();
  for (auto item = by_step.rbegin(); item != by_step.rend(); ++item) {
    const size_t bytes = item->second.SpaceUsedLong();
    waiting_.push_front({std::move(item->second), bytes});
    bytes_ += bytes;
  }
}

const std::deque<v1::Measurement>& PrintedQueue::Batch() {
  if (!batch_.empty()) return batch_;
  ReturnKept();
  size_t batch_bytes = 0;
  while (!waiting_.empty() && batch_.size() < most_) {
    batch_bytes += waiting_.front().measurement.ByteSizeLong();
    if (!batch_.empty() && batch_bytes > kBatchBytes) break;
    bytes_ -= waiting_.front().bytes;
    batch_.push_back(std::move(waiting_.front().measurement));
    waiting_.pop_front();
  }
  return batch_;
}

void PrintedQueue::Answered() {
  batch_.clear();
  most_ = std::min(most_ * 2, kBatchCount);
}

void PrintedQueue::Halve() {
  most_ = std::max<size_t>(batch_.size() / 2, 1);
  while (!batch_.empty()) {
    const size_t bytes = batch_.back().SpaceUsedLong();
    waiting_.push_front({std::move(batch_.back()), bytes});
    bytes_ += bytes;
    batch_.pop_back();
  }
}

}  // namespace jizi::tuner
