#include "tuner-service/core/core.h"

namespace jizi::tuner {
namespace {

bool Same(const std::optional<Wait>& a, const std::optional<Wait>& b) {
  if (!a || !b) return !a && !b;
  return a->retry_after == b->retry_after && a->why == b->why;
}
bool Same(const std::optional<Finished>& a, const std::optional<Finished>& b) {
  if (!a || !b) return !a && !b;
  return a->why == b->why;
}

bool Same(const RecordedSuggestion& a, const RecordedSuggestion& b) {
  return a.assigned == b.assigned && Same(a.wait, b.wait) && Same(a.finished, b.finished);
}
bool Same(const RecordedReport& a, const RecordedReport& b) {
  return a.directive == b.directive && a.rejected == b.rejected;
}
bool Same(const RecordedDone&, const RecordedDone&) {
  return true;
}

bool Same(const LastCall& a, const LastCall& b) {
  if (a.call.sequence != b.call.sequence || a.call.digest != b.call.digest) return false;
  if (a.reply.index() != b.reply.index()) return false;
  return std::visit(
      [&b](const auto& reply) {
        return Same(reply, std::get<std::decay_t<decltype(reply)>>(b.reply));
      },
      a.reply);
}

template <typename Key>
bool Same(const std::map<Key, LastCall>& a, const std::map<Key, LastCall>& b) {
  if (a.size() != b.size()) return false;
  for (auto left = a.begin(), right = b.begin(); left != a.end(); ++left, ++right) {
    if (left->first != right->first || !Same(left->second, right->second)) return false;
  }
  return true;
}

bool Same(const Study& a, const Study& b) {
  if (static_cast<bool>(a.spec) != static_cast<bool>(b.spec)) return false;
  return (a.spec == b.spec || *a.spec == *b.spec) && a.trials == b.trials && a.counts == b.counts &&
         a.best == b.best;
}

}  // namespace

bool SameDurableState(const StudyData& a, const StudyData& b) {
  return a.id == b.id && Same(a.study, b.study) && a.state == b.state &&
         a.state_why == b.state_why && a.created == b.created && a.last_event == b.last_event &&
         a.log_position == b.log_position && a.decisions == b.decisions &&
         a.exhausted == b.exhausted && a.exhausted_why == b.exhausted_why &&
         a.scheduler_waits == b.scheduler_waits && a.target_reached == b.target_reached &&
         a.queue == b.queue && a.queue_first == b.queue_first && Same(a.workers, b.workers) &&
         Same(a.attempts, b.attempts) && a.requests == b.requests;
}

}  // namespace jizi::tuner
