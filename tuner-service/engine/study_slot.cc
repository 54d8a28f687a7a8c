#include "tuner-service/engine/study_slot.h"

#include <algorithm>
#include <utility>

namespace jizi::tuner {

void AnswerWaiter(const Waiter& waiter, const StatusOr<Reply>& reply) {
  if (!waiter.completed) {
    waiter.done(reply);
    return;
  }
  CompleteReply completed = *waiter.completed;
  if (reply.ok()) {
    if (const auto* next = std::get_if<SuggestReply>(&*reply)) completed.next = *next;
  }
  waiter.done(Reply(std::move(completed)));
}

ParkedSuggest* ParkedSuggests::Find(const std::string& worker) {
  const auto found = by_worker_.find(worker);
  return found == by_worker_.end() ? nullptr : &in_order_.at(found->second);
}

void ParkedSuggests::Park(SuggestCommand command, Waiter waiter) {
  if (ParkedSuggest* same = Find(command.worker)) {
    same->waiters.push_back(std::move(waiter));
    return;
  }
  by_worker_.emplace(command.worker, next_);
  ParkedSuggest& parked = in_order_[next_++];
  parked.command = std::move(command);
  parked.waiters.push_back(std::move(waiter));
}

std::vector<ParkedSuggest> ParkedSuggests::TakeAll() {
  std::vector<ParkedSuggest> all;
  all.reserve(in_order_.size());
  for (auto& [order, parked] : in_order_) all.push_back(std::move(parked));
  in_order_.clear();
  by_worker_.clear();
  return all;
}

void ParkedSuggests::ParkAgain(ParkedSuggest parked) {
  by_worker_.emplace(parked.command.worker, next_);
  in_order_.emplace(next_++, std::move(parked));
}

int64_t ParkedSuggests::TrialsAskedFor() const {
  int64_t sum = 0;
  for (const auto& [order, parked] : in_order_) sum += parked.command.count;
  return sum;
}

StudyView ViewOf(const StudyData& state) {
  return {state.id, state.study, state.state, state.state_why, state.created, state.log_position};
}

int JoinedCount(const StudySlot& slot, int asked_by_core) {
  const StudyData& state = slot.state;
  int64_t count = slot.parked.TrialsAskedFor() - static_cast<int64_t>(state.queue.size());
  if (const auto cap = state.study.spec->budget.run_cap) {
    count = std::min(count, *cap - static_cast<int64_t>(state.study.trials.size()));
  }
  count = std::min<int64_t>(count, kMaxSuggestions);
  return std::max(static_cast<int>(count), asked_by_core);
}

}  // namespace jizi::tuner
