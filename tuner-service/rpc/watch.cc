#include "tuner-service/rpc/watch.h"

#include "tuner-service/rpc/convert.h"
#include "tuner-service/rpc/limits.h"

namespace jizi::tuner {
namespace {

constexpr int kPieceTrials = 500;
constexpr size_t kPieceBytes = 1 << 20;

}  // namespace

void WatchBuffer::Take(const StudyChange& change) {
  MutexLock lock(mutex_);
  if (ended_) return;
  if (!change.why.ok()) {  // It is there, and cannot be read.
    ended_ = change.why;
    return;
  }
  if (change.deleted) {
    ended_ = Error(
        StatusCode::kNotFound, "the study was deleted",
        {"STUDY_NOT_FOUND", change.view.study.spec == nullptr ? "" : change.view.study.spec->name,
         "there is nothing more to watch"});
    return;
  }
  // Without a history, only the present position can be continued from.
  if (!view_) snapshot_ = after_ != change.view.log_position;
  view_ = change.view;
  fresh_ = true;
  if (snapshot_) return;  // It will hold all of them.
  if (!change.changed.empty() && ++buffered_ > kMaxBufferedChanges) {
    snapshot_ = true;
    changed_.clear();
    return;
  }
  changed_.insert(change.changed.begin(), change.changed.end());
}

void WatchBuffer::End(const Status& status) {
  MutexLock lock(mutex_);
  if (!ended_) ended_ = status;
}

std::optional<Status> WatchBuffer::ended() const {
  MutexLock lock(mutex_);
  return ended_;
}

std::optional<v1::WatchStudyResponse> WatchBuffer::Next() {
  {
    MutexLock lock(mutex_);
    if (ended_) return std::nullopt;
    if (!sending_) {
      if (!fresh_) return std::nullopt;
      sending_.emplace();
      sending_->view = *view_;
      sending_->snapshot = snapshot_;
      sending_->trials.assign(changed_.begin(), changed_.end());
      fresh_ = false;
      snapshot_ = false;
      buffered_ = 0;
      changed_.clear();
    }
  }
  return Piece();
}

v1::WatchStudyResponse WatchBuffer::Piece() {
  WatchSending& now = *sending_;
  v1::WatchStudyResponse response;
  response.set_log_position(now.view.log_position);
  // A change of one trial may come a thousand times a second, and a spec be a megabyte.
  const bool begins = now.snapshot && now.next == 1;
  const bool known = !begins && now.view.study.spec == spec_sent_;
  *response.mutable_study() = known ? WithoutSpec(now.view) : ToWire(now.view);
  spec_sent_ = now.view.study.spec;
  response.set_snapshot(now.snapshot);
  size_t bytes = 0;
  const auto left = [&now] {
    return now.snapshot ? static_cast<size_t>(now.next) <= now.view.study.trials.size()
                        : now.next_index < now.trials.size();
  };
  while (left() && response.trials_size() < kPieceTrials && bytes < kPieceBytes) {
    const TrialId id = now.snapshot ? now.next++ : now.trials[now.next_index++];
    const Trial* trial = now.view.study.Find(id);
    if (trial == nullptr) continue;
    *response.add_trials() = ToWire(*trial);
    bytes += response.trials(response.trials_size() - 1).ByteSizeLong();
  }
  response.set_more(left());
  if (!response.more()) sending_.reset();
  return response;
}

}  // namespace jizi::tuner
