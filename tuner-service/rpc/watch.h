#pragma once
// watch.h - one WatchStudy stream's changes between the engine and the wire (docs/contracts.md,
// 14). Knows no gRPC. Changes that wait are merged: one response carries the study now and each
// trial that changed, once; the spec goes along where a snapshot begins and when it is another.
// More than kMaxBufferedChanges of them become a snapshot. A response of many trials is cut in
// pieces; all but the last carry `more`, and a log position counts only once a piece without it has
// come. Threads: Take and End from any; Next from one at a time.   Cost: Take O(trials changed).

#include <optional>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "jizi/v1/tune_service.pb.h"
#include "tuner-service/engine/engine.h"

namespace jizi::tuner {

// What a stream is sending, in pieces.
struct WatchSending {
  StudyView view;
  bool snapshot = false;
  TrialId next = 1;             // Of a snapshot.
  std::vector<TrialId> trials;  // Else, from `next_index` on.
  size_t next_index = 0;
};

class WatchBuffer {
 public:
  // The log position that the client has seen; -1: none.
  explicit WatchBuffer(int64_t after) : after_(after) {}

  void Take(const StudyChange& change);  // The first is the present view, a change of nothing.
  void End(
      const Status& status);  // Nothing more comes; what waits is not sent. The first end counts.

  // The next response, if there is one now.
  std::optional<v1::WatchStudyResponse> Next();
  std::optional<Status> ended() const;

 private:
  v1::WatchStudyResponse Piece();

  const int64_t after_;
  std::optional<WatchSending> sending_;  // Of Next's thread alone, as the next one.
  std::shared_ptr<const StudySpec> spec_sent_;

  mutable Mutex mutex_;
  std::optional<StudyView> view_ GUARDED_BY(mutex_);  // The latest; empty before the first change.
  bool fresh_ GUARDED_BY(mutex_) = false;             // view_ was not sent yet.
  bool snapshot_ GUARDED_BY(mutex_) = false;
  int buffered_ GUARDED_BY(mutex_) = 0;
  std::set<TrialId> changed_ GUARDED_BY(mutex_);
  std::optional<Status> ended_ GUARDED_BY(mutex_);
};

}  // namespace jizi::tuner
