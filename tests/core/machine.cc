#include "tests/core/machine.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace jizi::tuner::testing {

StatusOr<Decision> ScriptedScheduler::Suggest(const Study& study, int count, Rng rng, Memo&) const {
  if (suggest) return suggest(study, count);
  Decision decision;
  for (int i = 0; i < count; ++i) decision.start.push_back(ProposalAt(rng.Uniform()));
  return decision;
}

StatusOr<Decision> ScriptedScheduler::OnChange(const Study& study, TrialId trial,
                                               const Change& change, Rng, Memo&) const {
  if (on_change) return on_change(study, trial, change);
  return Decision{};
}

StudySpec SimpleSpec() {
  StudySpec spec;
  spec.name = "study";
  spec.space.parameters.push_back(
      {"x", NumericDomain{Uniform{0, 1, Scale::kLinear}, 0, false}, {}});
  spec.metrics.push_back({"loss", Goal::kMinimize, std::nullopt});
  spec.method = "random";
  return spec;
}

Params AtX(double x) {
  return {{"x", x}};
}

Proposal ProposalAt(double x) {
  Proposal proposal;
  proposal.params = AtX(x);
  proposal.why = "at random";
  return proposal;
}

Machine::Machine(StudySpec spec, const Scheduler* scheduler) : scheduler_(scheduler) {
  StatusOr<LogRecord> created = CreateStudy(1, std::move(spec), "create", now_);
  EXPECT_TRUE(created.ok()) << created.status();
  log.push_back(*created);
  Apply(state, log.back());
  Apply(replica_, log.back());
}

void Machine::Advance(double seconds) {
  const auto step = std::chrono::duration_cast<std::chrono::microseconds>(Seconds(seconds));
  now_ += step;
  steady_now_ += step;
}

Context Machine::context() {
  const Scheduler& scheduler = scheduler_ != nullptr ? *scheduler_ : script;
  return {now_, steady_now_, scheduler, memo_};
}

StatusOr<Outcome> Machine::Run(const Command& command) {
  const int64_t before = state.log_position;
  memo_.value.reset();  // The engine may drop it at any call.
  StatusOr<Outcome> outcome = Execute(state, command, context());
  const bool changed = outcome.ok() && !outcome->events.empty();
  EXPECT_EQ(state.log_position, before + (changed ? 1 : 0));
  if (changed) {
    log.push_back({state.id, state.log_position, state.last_event, outcome->events});
    if (check_replay) Apply(replica_, log.back());
  }
  if (check_replay) {
    EXPECT_TRUE(SameDurableState(state, replica_)) << "command " << command.index();
  }
  return outcome;
}

AnswerCommand Machine::Decide(const NeedDecision& need) {
  Memo memo;
  const Scheduler& scheduler = scheduler_ != nullptr ? *scheduler_ : script;
  const Rng rng = Rng::ForSuggest(state.study.spec->seed, need.decision);
  return {need.decision, need.log_position, need.count,
          scheduler.Suggest(state.study, need.count, rng, memo)};
}

StatusOr<Reply> Machine::Call(const Command& command) {
  StatusOr<Outcome> outcome = Run(command);
  std::optional<CompleteReply> completed;
  for (int round = 0; round < 100; ++round) {
    if (!outcome.ok()) return outcome.status();
    if (outcome->completed) completed = outcome->completed;
    if (outcome->reply) {
      if (!completed) return *outcome->reply;
      if (const auto* next = std::get_if<SuggestReply>(&*outcome->reply)) completed->next = *next;
      return Reply(*completed);
    }
    const SuggestCommand parked = *outcome->parked;
    if (outcome->need) {
      const StatusOr<Outcome> answered = Run(Decide(*outcome->need));
      if (!answered.ok()) return answered.status();
    }
    outcome = Run(parked);
  }
  ADD_FAILURE() << "decisions without an end";
  return Reply(DoneReply{});
}

void Machine::Restart() {
  StudyData rebuilt;
  for (const LogRecord& record : log) Apply(rebuilt, record);
  EXPECT_TRUE(SameDurableState(rebuilt, state));
  state = std::move(rebuilt);
  EXPECT_TRUE(Run(LoadedCommand{}).ok());
}

Token Machine::NewToken() {
  if (++last_token_[0] == 0) ++last_token_[1];
  return {last_token_[0], last_token_[1], 1};
}

SuggestCommand Machine::SuggestFor(const std::string& worker, int count) {
  SuggestCommand command;
  command.worker = worker;
  const auto last = state.workers.find(worker);
  command.call.sequence = last == state.workers.end() ? 1 : last->second.call.sequence + 1;
  command.call.digest = DigestOf(static_cast<uint64_t>(command.call.sequence));
  command.count = count;
  for (int i = 0; i < count; ++i) command.tokens.push_back(NewToken());
  return command;
}

SuggestReply Machine::Suggest(const std::string& worker, int count) {
  const StatusOr<Reply> reply = Call(SuggestFor(worker, count));
  EXPECT_TRUE(reply.ok()) << reply.status();
  return reply.ok() ? std::get<SuggestReply>(*reply) : SuggestReply(Wait{});
}

LeaseRef Machine::Take(const std::string& worker) {
  const SuggestReply reply = Suggest(worker);
  const auto* given = std::get_if<std::vector<Assigned>>(&reply);
  EXPECT_TRUE(given != nullptr && given->size() == 1);
  if (given == nullptr || given->empty()) return {};
  return {given->front().trial->id, given->front().attempt, given->front().token};
}

CallNumber Machine::NextCall(const LeaseRef& lease) {
  const auto last = state.attempts.find({lease.trial, lease.attempt});
  const int64_t sequence = last == state.attempts.end() ? 1 : last->second.call.sequence + 1;
  return {sequence, DigestOf(static_cast<uint64_t>(sequence))};
}

ReportCommand Machine::ReportOf(const LeaseRef& lease, int64_t step, double loss) {
  ReportCommand command;
  command.lease = lease;
  command.call = NextCall(lease);
  command.measurements.push_back({step, now_, {{"loss", loss}}, std::nullopt});
  return command;
}

ReportReply Machine::Report(const LeaseRef& lease, int64_t step, double loss) {
  const StatusOr<Reply> reply = Call(ReportOf(lease, step, loss));
  EXPECT_TRUE(reply.ok()) << reply.status();
  return reply.ok() ? std::get<ReportReply>(*reply) : ReportReply{};
}

CompleteCommand Machine::CompleteOf(const LeaseRef& lease) {
  return {lease, NextCall(lease), FinishedOutcome{}, std::nullopt, std::nullopt};
}

Digest DigestOf(uint64_t word) {
  Digest digest{};
  for (size_t i = 0; i < 8; ++i) digest[i] = static_cast<uint8_t>(word >> (8 * i));
  return digest;
}

std::string CodeOf(const Status& status) {
  return DetailOf(status).code;
}

std::vector<uint64_t> Seeds(uint64_t first, int count) {
  if (const char* one = std::getenv("JIZI_TEST_SEED")) return {std::strtoull(one, nullptr, 10)};
  std::vector<uint64_t> seeds;
  for (int i = 0; i < count; ++i) seeds.push_back(first + static_cast<uint64_t>(i));
  return seeds;
}

}  // namespace jizi::tuner::testing
