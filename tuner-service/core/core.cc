#include "tuner-service/core/core.h"

#include <algorithm>

#include "tuner-service/core/draft.h"

namespace jizi::tuner {

StatusOr<Outcome> Execute(StudyData& state, const Command& command, const Context& context) {
  Draft draft(state, context);
  return std::visit([&draft](const auto& asked) { return Decide(draft, asked); }, command);
}

StatusOr<LogRecord> CreateStudy(StudyId id, StudySpec spec, std::string request_id, Timestamp now) {
  TRY(CheckId(request_id, "request_id", true));
  TRY(Validate(spec));
  TRY(CheckAttributes(spec.attributes, "the study"));
  TRY(MakeScheduler(spec));
  LogRecord record;
  record.study = id;
  record.position = 1;
  record.time = now;
  record.events.push_back(StudyCreated{std::move(spec), std::move(request_id)});
  return record;
}

std::optional<SteadyTime> NextDeadline(const StudyData& state, const Context& context) {
  std::optional<SteadyTime> next;
  const auto consider = [&next](SteadyTime time) { next = next ? std::min(*next, time) : time; };
  for (const auto& [trial, lease] : state.leases) {
    if (lease.deadline != SteadyTime::max()) consider(lease.deadline);
  }
  const bool idle = state.study.counts[TrialState::kRunning] == 0 && state.queue.empty();
  if (state.state != StudyState::kActive || state.pending || !idle) return next;
  // Nothing else would wake an idle study at the end of its wall-clock budget.
  if (NothingMore(state, context.now)) {
    consider(context.steady_now);
  } else if (const std::optional<Seconds>& budget = state.study.spec->budget.wall_clock) {
    const Seconds left = *budget - Seconds(context.now - state.created);
    constexpr Seconds kFar{1e8};  // Three years: beyond what the clock's ticks need to hold.
    const Seconds wait = std::clamp(left, Seconds(0), kFar);
    consider(context.steady_now + std::chrono::ceil<SteadyTime::duration>(wait));
  }
  return next;
}

}  // namespace jizi::tuner
