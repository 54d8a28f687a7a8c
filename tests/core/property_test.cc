// Random commands, sane and insane: after each one replay equals state and the invariants hold.
// Prints the seed that failed; JIZI_TEST_SEED runs that one alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/core/machine.h"

namespace jizi::tuner::testing {
namespace {

class Monkey {
 public:
  explicit Monkey(uint64_t seed) : rng_({seed, 7}), m_(SpecOf(seed)) {
    // A function of the study, as schedulers are, and as rude as they may be.
    m_.script.suggest = [](const Study& study, int count) -> StatusOr<Decision> {
      Rng rng({study.trials.size(), static_cast<uint64_t>(study.counts[TrialState::kRunning])});
      Decision decision;
      const uint64_t kind = rng.Below(10);
      if (kind == 0) return absl::InternalError("a bug");
      if (kind == 1) decision.next = Next::kWait;
      if (kind < 3) return decision;
      for (int i = 0; i < count; ++i) {
        decision.start.push_back(ProposalAt(kind == 3 ? 2 : rng.Uniform()));
      }
      return decision;
    };
    m_.script.on_change = [](const Study& study, TrialId id, const Change& change) {
      Rng rng({static_cast<uint64_t>(id), change.index(), study.Find(id)->measurements.size()});
      Decision decision;
      const uint64_t kind = rng.Below(12);
      if (kind == 0) decision.tell[id] = Stop{"stop"};
      if (kind == 1) decision.tell[id] = Pause{"pause"};
      if (kind == 2) decision.tell[id] = Continue{{{"x", 0.5}}, 1, "back"};
      if (kind == 3) decision.start.push_back(ProposalAt(rng.Uniform()));
      if (kind == 4) decision.resume.push_back(id);
      return decision;
    };
  }

  void Step() {
    m_.Advance(static_cast<double>(rng_.Below(25)));
    before_ = m_.state.study;
    StatusOr<Outcome> outcome = m_.Run(Any());
    if (outcome.ok() && outcome->need) need_ = outcome->need;
    if (outcome.ok() && outcome->reply) Learn(*outcome->reply);
    if (rng_.Below(50) == 0) {
      m_.Restart();
      need_.reset();
    }
    Check();
  }

 private:
  static StudySpec SpecOf(uint64_t seed) {
    Rng rng({seed, 8});
    StudySpec spec = SimpleSpec();
    spec.budget.run_cap = 5 + static_cast<int64_t>(rng.Below(20));
    if (rng.Below(3) == 0) spec.metrics[0].target = 0.1;
    spec.objective.kind = static_cast<ObjectiveKind>(rng.Below(3));
    spec.objective.last_k = 1 + static_cast<int>(rng.Below(3));
    if (rng.Below(3) == 0) spec.budget.wall_clock = Seconds(3000);
    if (rng.Below(4) == 0) spec.metrics.clear();
    spec.retries.max_retries = static_cast<int>(rng.Below(3));
    spec.retries.max_lost_workers = static_cast<int>(rng.Below(3));
    return spec;
  }

  void Learn(const Reply& reply) {
    const auto* suggested = std::get_if<SuggestReply>(&reply);
    const auto* given =
        suggested == nullptr ? nullptr : std::get_if<std::vector<Assigned>>(suggested);
    if (given == nullptr) return;
    for (const Assigned& one : *given) {
      leases_.push_back({one.trial->id, one.attempt, one.token});
    }
  }

  LeaseRef Lease() {
    if (leases_.empty() || rng_.Below(30) == 0) {
      return {static_cast<TrialId>(rng_.Below(8)), static_cast<int>(rng_.Below(4)), m_.NewToken()};
    }
    // Mostly a recent one.
    const uint64_t back = std::min<uint64_t>(leases_.size(), 1 + rng_.Below(4));
    return leases_[leases_.size() - (rng_.Below(10) == 0 ? 1 + rng_.Below(leases_.size()) : back)];
  }
  CallNumber Number(const LeaseRef& lease) {
    CallNumber call = m_.NextCall(lease);
    const uint64_t kind = rng_.Below(8);
    if (kind == 0) --call.sequence;
    if (kind == 1) call.digest[9] = 1;
    if (kind == 2) call.sequence += static_cast<int64_t>(rng_.Below(4)) - 2;
    return call;
  }
  double Value() {
    const uint64_t kind = rng_.Below(12);
    if (kind == 0) return std::numeric_limits<double>::quiet_NaN();
    if (kind == 1) return std::numeric_limits<double>::infinity();
    return rng_.Uniform();
  }
  NewMeasurement Measure(const LeaseRef& lease) {
    const Trial* trial = m_.state.study.Find(lease.trial);
    const bool any = trial == nullptr || trial->measurements.empty();
    const int64_t last = any ? 0 : trial->measurements.back().step;
    return {last + static_cast<int64_t>(rng_.Below(4)) - 1, {}, {{"loss", Value()}}, std::nullopt};
  }
  SuggestCommand Suggest() {
    SuggestCommand command =
        m_.SuggestFor("w" + std::to_string(rng_.Below(4)), 1 + static_cast<int>(rng_.Below(3)));
    if (rng_.Below(6) == 0) --command.call.sequence;
    return command;
  }
  Command Complete(const LeaseRef& lease) {
    CompleteCommand command{lease, Number(lease), FinishedOutcome{}, std::nullopt, std::nullopt};
    if (rng_.Below(3) == 0) command.outcome = FailedOutcome{"exit code 1"};
    if (rng_.Below(9) == 0) command.outcome = InfeasibleOutcome{""};
    if (rng_.Below(2) == 0) command.final_measurement = Measure(lease);
    if (rng_.Below(2) == 0) command.next = Suggest();
    return command;
  }
  Command Any() {
    if (need_ && rng_.Below(3) == 0) return m_.Decide(*std::exchange(need_, std::nullopt));
    const LeaseRef lease = Lease();
    const std::string id = rng_.Below(3) == 0 ? "" : "r" + std::to_string(rng_.Below(20));
    const auto trial = static_cast<TrialId>(rng_.Below(10));
    switch (rng_.Below(30)) {
      case 0:
        return EnqueueCommand{AtX(rng_.Uniform() * 1.2), id};
      case 1:
        return RetryCommand{{trial}, id};
      case 2:
        return RetryCommand{{}, id};
      case 3:
        return SetStateCommand{static_cast<StudyState>(rng_.Below(4))};
      case 4:
        return SetStateCommand{StudyState::kActive};
      case 5:
        return SetAttributesCommand{trial, {{id, "value"}}, {"r1"}};
      case 6: {
        StudySpec spec = SpecOf(m_.state.study.spec->seed);
        spec.metrics = m_.state.study.spec->metrics;
        spec.objective = m_.state.study.spec->objective;
        spec.budget.run_cap = m_.state.study.spec->budget.run_cap.value_or(0) + 1;
        return ResumeCommand{spec, id};
      }
      case 7:
        return TickCommand{};
      case 8:
        return LoadedCommand{};
      case 9:
        return RenewCommand{{lease, Lease()}};
      case 10:
        return ReleaseCommand{lease, Number(lease), ""};
      case 11:
        return AttachCommand{lease, "",
                             Capabilities{true, rng_.Below(3) > 0, rng_.Below(3) > 0, {"x"}}, 10};
      case 12:
        return AttachCommand{std::nullopt, "w1", std::nullopt, std::nullopt};
      case 13: {
        const int64_t step = static_cast<int64_t>(rng_.Below(6));
        return RegisterCheckpointCommand{lease, Number(lease), {step, "c", "", 1, 0}};
      }
      case 14:
      case 15:
      case 16:
        return Complete(lease);
      case 17:
      case 18:
      case 19:
      case 20:
      case 21:
      case 22:
        return Suggest();
      default: {
        ReportCommand report{lease, Number(lease), {}, std::nullopt, rng_.Below(4) == 0};
        for (uint64_t i = rng_.Below(4); i > 0; --i) report.measurements.push_back(Measure(lease));
        return report;
      }
    }
  }

  void Check() {
    const StudyData& state = m_.state;
    TrialCounts counts;
    int64_t proposed = 0;
    std::vector<TrialId> queued(state.queue.begin(), state.queue.end());
    std::sort(queued.begin(), queued.end());
    std::vector<TrialId> expected;
    for (size_t i = 0; i < state.study.trials.size(); ++i) {
      const Trial& trial = *state.study.trials[i];
      ASSERT_EQ(trial.id, static_cast<TrialId>(i) + 1);  // Dense.
      ++counts[trial.state];
      if (trial.decision != 0) ++proposed;
      if (trial.state == TrialState::kQueued) expected.push_back(trial.id);
      CheckTrial(trial);
      if (i >= before_.trials.size()) continue;
      const Trial& earlier = *before_.trials[i];
      if (!IsEnded(earlier.state)) continue;
      if (earlier.state == TrialState::kFailed && trial.state == TrialState::kQueued) continue;
      Trial frozen = trial;
      frozen.attributes = earlier.attributes;
      ASSERT_EQ(frozen, earlier) << "an ended trial changed";
    }
    ASSERT_EQ(counts, state.study.counts);
    ASSERT_EQ(queued, expected);
    ASSERT_LE(state.queue_first, state.queue.size());
    ASSERT_LE(proposed, state.study.spec->budget.run_cap.value_or(proposed));
    if (state.state == StudyState::kFinished) {
      ASSERT_EQ(counts[TrialState::kRunning] + counts[TrialState::kQueued], 0);
    }
    ASSERT_TRUE(!state.study.best || std::isfinite(*m_.At(*state.study.best).objective));
  }

  void CheckTrial(const Trial& trial) {
    int live = 0;
    for (const Attempt& attempt : trial.attempts) live += attempt.end == AttemptEnd::kRunning;
    ASSERT_EQ(live, trial.state == TrialState::kRunning ? 1 : 0);  // One live lease a trial.
    const bool leased = m_.state.leases.contains(trial.id);
    ASSERT_TRUE(leased || trial.state != TrialState::kRunning);
    ASSERT_TRUE(!leased || trial.state <= TrialState::kRunning);
    for (size_t i = 1; i < trial.measurements.size(); ++i) {
      ASSERT_LE(trial.measurements[i - 1].step, trial.measurements[i].step);
    }
    ASSERT_TRUE(!trial.objective || std::isfinite(*trial.objective));
  }

  Rng rng_;
  Machine m_;
  Study before_;
  std::vector<LeaseRef> leases_;
  std::optional<NeedDecision> need_;
};

TEST(Property, AfterEveryCommandReplayIsStateAndTheInvariantsHold) {
  for (const uint64_t seed : Seeds(1, 60)) {
    SCOPED_TRACE(::testing::Message() << "JIZI_TEST_SEED=" << seed);
    Monkey monkey(seed);
    for (int step = 0; step < 400; ++step) {
      monkey.Step();
      ASSERT_FALSE(HasFailure()) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace jizi::tuner::testing
