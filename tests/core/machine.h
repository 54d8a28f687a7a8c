#pragma once
// machine.h - the core with a fake clock, a log in memory and an engine's patience, for tests.
// After every command the log's replay is compared with the state (Machine::check_replay).

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tuner-service/core/core.h"

namespace jizi::tuner::testing {

// A scheduler that does what the test says; without a word of it, uniform random points.
class ScriptedScheduler : public Scheduler {
 public:
  std::function<StatusOr<Decision>(const Study&, int)> suggest;
  std::function<StatusOr<Decision>(const Study&, TrialId, const Change&)> on_change;

  StatusOr<Decision> Suggest(const Study& study, int count, Rng rng, Memo& memo) const override;
  StatusOr<Decision> OnChange(const Study& study, TrialId trial, const Change& change, Rng rng,
                              Memo& memo) const override;
};

// x in [0, 1], loss to be minimised, no budget.
StudySpec SimpleSpec();
Params AtX(double x);
Proposal ProposalAt(double x);

class Machine {
 public:
  explicit Machine(StudySpec spec, const Scheduler* scheduler = nullptr);

  ScriptedScheduler script;
  StudyData state;
  std::vector<LogRecord> log;
  bool check_replay = true;

  void Advance(double seconds);
  Context context();

  // One command, as it is.
  StatusOr<Outcome> Run(const Command& command);
  // As the engine does it: decisions are made and parked calls executed again.
  StatusOr<Reply> Call(const Command& command);
  // Of a NeedDecision: what the scheduler says now.
  AnswerCommand Decide(const NeedDecision& need);
  // A new process: the state is rebuilt from the log.
  void Restart();

  // ---- short for what tests do most; each takes the next number of its caller ----
  Token NewToken();
  SuggestCommand SuggestFor(const std::string& worker, int count = 1);
  SuggestReply Suggest(const std::string& worker, int count = 1);
  LeaseRef Take(const std::string& worker);  // The one trial that Suggest gives.
  CallNumber NextCall(const LeaseRef& lease);
  ReportCommand ReportOf(const LeaseRef& lease, int64_t step, double loss);
  ReportReply Report(const LeaseRef& lease, int64_t step, double loss);
  CompleteCommand CompleteOf(const LeaseRef& lease);
  const Trial& At(TrialId trial) const { return *state.study.Find(trial); }
  TrialState StateOf(TrialId trial) const { return At(trial).state; }

 private:
  const Scheduler* scheduler_ = nullptr;
  Memo memo_;
  Timestamp now_{std::chrono::hours(500'000)};
  SteadyTime steady_now_{std::chrono::hours(1)};
  StudyData replica_;
  uint8_t last_token_[2] = {0, 0};
};

Digest DigestOf(uint64_t word);
std::string CodeOf(const Status& status);

// The seed of a random test: JIZI_TEST_SEED alone, if it is set; otherwise first, first + 1, ...
std::vector<uint64_t> Seeds(uint64_t first, int count);

}  // namespace jizi::tuner::testing
