#pragma once
// study_slot.h - what the engine thread keeps of one study: its state, its scheduler with two
// memos, and the calls that wait for a decision. Threads: the engine thread only; a DecisionJob and
// a StudyView may go elsewhere. Cost: Find O(1) by worker.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tuner-service/core/core.h"
#include "tuner-service/engine/decision_pool.h"
#include "tuner-service/engine/engine.h"
#include "tuner-service/engine/watch.h"

namespace jizi::tuner {

// Somebody who waits for the answer of a parked Suggest.
struct Waiter {
  Engine::Done<Reply> done;
  std::optional<CompleteReply> completed;  // The Suggest was the `next` of this Complete.
};

// The answer of one waiter. A Complete is done already: where its `next` failed it is answered
// without, and the worker asks again itself.
void AnswerWaiter(const Waiter& waiter, const StatusOr<Reply>& reply);

// A Suggest that waits for a decision, and every repeat of it: they get the same answer.
struct ParkedSuggest {
  SuggestCommand command;
  std::vector<Waiter> waiters;
};

// In the order of arrival; at most one of each worker (docs/contracts.md, 12).
class ParkedSuggests {
 public:
  ParkedSuggest* Find(const std::string& worker);
  void Park(SuggestCommand command, Waiter waiter);  // Joins an equal one.
  std::vector<ParkedSuggest> TakeAll();
  void ParkAgain(ParkedSuggest parked);
  bool empty() const { return in_order_.empty(); }
  int64_t TrialsAskedFor() const;

 private:
  int64_t next_ = 0;
  std::map<int64_t, ParkedSuggest> in_order_;
  std::unordered_map<std::string, int64_t> by_worker_;
};

struct StudySlot {
  StudyId id = 0;
  std::string name;
  int64_t epoch = 0;  // Of this copy in memory; never the same twice.
  StudyData state;
  std::shared_ptr<const Scheduler> scheduler;
  std::shared_ptr<const StudySpec> scheduler_spec;  // That it was made from.
  Memo change_memo;
  std::shared_ptr<Memo> suggest_memo = std::make_shared<Memo>();
  ParkedSuggests parked;
  std::optional<DecisionJob> starting;  // A decision that begins at the end of this batch of calls.
  std::shared_ptr<WatchList> watchers;
  std::optional<SteadyTime> tick_at;
  bool touched = false;  // In this batch: tick_at has to be found again.
};

StudyView ViewOf(const StudyData& state);

// How many trials to ask of the scheduler so that every parked call is served: what they want less
// what is queued, within the run cap and one call's limit, and at least what the core asked for.
int JoinedCount(const StudySlot& slot, int asked_by_core);

}  // namespace jizi::tuner
