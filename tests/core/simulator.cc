#include "tests/core/simulator.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "tests/core/machine.h"
#include "tests/core/restless_scheduler.h"

namespace jizi::tuner::testing {
namespace {

struct Worker {
  explicit Worker(std::string called) : name(std::move(called)) {}
  std::string name;
  bool counts_waits = false;  // Both are allowed (docs/contracts.md, 12).
  int64_t sequence = 1;       // Of its next Suggest.
  // Of the trial that it believes to hold.
  std::optional<LeaseRef> lease;
  int64_t call = 1;
  int64_t step = 0;
  int64_t last_step = 0;
  double sent = 0;  // When its call in flight was last sent.
  double believes_until = 0;
  bool told_to_end = false;
  double silent_until = 0;
  // The one call in flight: repeated, the very same, until it is answered.
  std::optional<Command> in_flight;
  std::optional<SuggestCommand> in_flight_next;

  // Its program is over; only the call that says so is not answered yet.
  bool has_ended() const {
    return in_flight && (std::holds_alternative<CompleteCommand>(*in_flight) ||
                         std::holds_alternative<ReleaseCommand>(*in_flight));
  }
};

using Key = std::tuple<TrialId, int, int, int64_t>;  // Trial, attempt, rollback, step.

class World {
 public:
  explicit World(uint64_t seed) : rng_({seed}), machine_(SpecOf(seed), &scheduler_) {
    machine_.check_replay = seed % 50 == 0;  // All restarts compare; this is after every command.
    const uint64_t count = 1 + rng_.Below(4);
    for (uint64_t i = 0; i < count; ++i) workers_.emplace_back("w" + std::to_string(i));
    for (Worker& worker : workers_) worker.counts_waits = rng_.Below(2) == 0;
  }

  SimulationResult Run() {
    for (int step = 0; step < kMaxSteps && result_.failure.empty(); ++step) {
      faults_ = step < kFaultySteps;
      if (Over()) break;
      Step();
    }
    if (result_.failure.empty()) CheckTheEnd();
    return result_;
  }

 private:
  static constexpr int kFaultySteps = 400;
  static constexpr int kMaxSteps = 20'000;

  static StudySpec SpecOf(uint64_t seed) {
    Rng rng({seed, 1});
    StudySpec spec = SimpleSpec();
    spec.seed = seed;
    spec.budget.run_cap = 1 + static_cast<int64_t>(rng.Below(12));
    spec.retries.max_retries = static_cast<int>(rng.Below(3));
    spec.retries.max_lost_workers = static_cast<int>(rng.Below(4));
    spec.objective.kind = static_cast<ObjectiveKind>(rng.Below(3));
    spec.objective.last_k = 1 + static_cast<int>(rng.Below(3));
    if (rng.Below(3) == 0) spec.metrics[0].target = rng.Uniform() / 4;
    return spec;
  }

  bool Chance(uint64_t one_in) { return faults_ && rng_.Below(one_in) == 0; }
  void Fail(const std::string& what) {
    if (result_.failure.empty()) result_.failure = what;
  }
  void Pass(double seconds) {
    machine_.Advance(seconds);
    time_ += seconds;
  }

  bool Over() const {
    if (machine_.state.state != StudyState::kFinished || !late_.empty()) return false;
    return std::none_of(workers_.begin(), workers_.end(),
                        [](const Worker& worker) { return worker.lease || worker.in_flight; });
  }

  void Step() {
    Pass(static_cast<double>(rng_.Below(40)) / 10);
    if (Chance(60)) Restart();
    if (rng_.Below(4) == 0) Execute(TickCommand{});
    if (need_ && rng_.Below(2) == 0) AnswerNeed();
    if (!late_.empty() && rng_.Below(3) == 0) DeliverLate();
    if (Chance(80)) Execute(EnqueueCommand{AtX(rng_.Uniform()), "e" + std::to_string(++requests_)});
    if (Chance(80)) Execute(RetryCommand{{}, "r" + std::to_string(++requests_)});
    if (Chance(80)) Execute(SetStateCommand{StudyState::kPaused});
    const bool paused = machine_.state.state == StudyState::kPaused;
    if (paused && !Chance(2)) Execute(SetStateCommand{StudyState::kActive});
    if (Chance(10)) ComeWithAWrongToken();
    Act(workers_[rng_.Below(workers_.size())]);
  }

  // Its own refusals are the caller's to judge; bugs fail the world here.
  StatusOr<Outcome> Try(const Command& command) {
    ++result_.commands;
    StatusOr<Outcome> outcome = machine_.Run(command);
    if (!outcome.ok()) {
      if (outcome.status().code() == StatusCode::kInternal) {
        Fail("internal error: " + std::string(outcome.status().message()));
      }
      return outcome;
    }
    if (!outcome->scheduler_errors.empty()) {
      Fail("OnChange: " + std::string(outcome->scheduler_errors.front().message()));
    }
    for (const Event& event : outcome->events) Watch(event);
    return outcome;
  }

  void Execute(const Command& command) { Try(command).IgnoreError(); }

  // docs/contracts.md, 7: it is refused, whatever it asks, and changes nothing.
  void ComeWithAWrongToken() {
    const Worker& other = workers_[rng_.Below(workers_.size())];
    LeaseRef lease{static_cast<TrialId>(1 + rng_.Below(4)), static_cast<int>(1 + rng_.Below(3)),
                   machine_.NewToken()};
    if (other.lease && rng_.Below(4) > 0) {
      lease = *other.lease;
      lease.token[rng_.Below(lease.token.size())] ^= static_cast<uint8_t>(1U << rng_.Below(8));
    }
    const CallNumber number = Number(1 + static_cast<int64_t>(rng_.Below(6)));
    const NewMeasurement measured{1, Timestamp{}, {{"loss", 0.0}}, std::nullopt};
    const Command commands[] = {AttachCommand{lease, "", Capabilities{}, 7},
                                ReportCommand{lease, number, {measured}, std::nullopt, false},
                                RegisterCheckpointCommand{lease, number, {1, "c", "", 1, 0}},
                                ReleaseCommand{lease, number, "not mine"},
                                CompleteCommand{lease, number, FinishedOutcome{}, measured, {}},
                                RenewCommand{{lease}}};
    const Command& command = commands[rng_.Below(std::size(commands))];
    const int64_t before = machine_.state.log_position;
    const StatusOr<Outcome> outcome = Try(command);
    ++result_.wrong_tokens;
    const std::string code = outcome.ok() ? "" : CodeOf(outcome.status());
    const bool renewed = outcome.ok() && std::holds_alternative<RenewCommand>(command) &&
                         !std::get<RenewReply>(*outcome->reply).leases.front().held;
    if (!renewed && code != "LEASE_LOST" && code != "TRIAL_NOT_FOUND") {
      Fail("a wrong token was taken by command " + std::to_string(command.index()));
    }
    if (machine_.state.log_position != before) Fail("a wrong token changed something");
  }

  // Nothing may be run by two at once; nothing stored twice.
  void Watch(const Event& event) {
    if (const auto* assigned = std::get_if<TrialAssigned>(&event)) {
      for (const Worker& worker : workers_) {
        if (worker.lease && worker.lease->trial == assigned->trial &&
            worker.believes_until > time_ + 1e-6 && !worker.has_ended()) {
          Fail(worker.name + " still runs trial " + std::to_string(assigned->trial));
        }
      }
    } else if (const auto* reported = std::get_if<MeasurementsReported>(&event)) {
      for (const Measurement& m : reported->measurements) {
        if (!stored_.insert({reported->trial, m.attempt, m.rollback, m.step}).second) {
          Fail("a measurement of trial " + std::to_string(reported->trial) + " is stored twice");
        }
      }
    } else if (std::holds_alternative<AttemptReclaimed>(event)) {
      ++result_.reclaimed;
    } else if (const auto* ended = std::get_if<AttemptEnded>(&event)) {
      if (ended->end == AttemptEnd::kLost) ++result_.lost;
    }
  }

  void Restart() {
    ++result_.restarts;
    machine_.Restart();
    need_.reset();
    parked_.clear();  // Their callers will repeat.
    if (rng_.Below(2) == 0) Pass(static_cast<double>(rng_.Below(100)));
  }

  void AnswerNeed() {
    const NeedDecision need = *std::exchange(need_, std::nullopt);
    Memo memo;
    const Rng rng = Rng::ForSuggest(machine_.state.study.spec->seed, need.decision);
    Execute(AnswerCommand{need.decision, need.log_position, need.count,
                          scheduler_.Suggest(snapshot_, need.count, rng, memo)});
    std::vector<size_t> again;
    std::swap(again, parked_);
    for (const size_t index : again) {
      Worker& worker = workers_[index];
      if (worker.in_flight_next) Deliver(worker, *worker.in_flight_next);
    }
  }

  void DeliverLate() {  // Copies of old calls arrive whenever the network likes.
    const size_t index = rng_.Below(late_.size());
    const Command command = late_[index];
    late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(index));
    const StatusOr<Outcome> outcome = Try(command);
    if (outcome.ok() && outcome->need) {
      need_ = outcome->need;
      snapshot_ = machine_.state.study;
    }
  }

  void Act(Worker& worker) {
    if (time_ < worker.silent_until) return;
    if (worker.lease && Chance(40)) return Crash(worker);
    if (Chance(25)) {
      worker.silent_until = time_ + static_cast<double>(rng_.Below(150));
      return;
    }
    if (!worker.in_flight) Compose(worker);
    if (worker.in_flight) Send(worker);
  }

  void Crash(Worker& worker) {
    worker.lease.reset();
    worker.in_flight.reset();
    worker.in_flight_next.reset();
    // It comes back under a new name: who it was is gone with it.
    worker.name += "'";
    worker.sequence = 1;
    if (rng_.Below(2) == 0) worker.silent_until = time_ + static_cast<double>(rng_.Below(100));
  }

  CallNumber Number(int64_t sequence) { return {sequence, DigestOf(rng_.Next())}; }

  SuggestCommand NextSuggest(Worker& worker) {
    SuggestCommand suggest;
    suggest.worker = worker.name;
    // The same request as long as the number is the same.
    suggest.call = {worker.sequence, DigestOf(static_cast<uint64_t>(worker.sequence))};
    suggest.lease = Seconds(20);
    suggest.tokens = {machine_.NewToken()};
    return suggest;
  }

  void Compose(Worker& worker) {
    if (!worker.lease) {
      const SuggestCommand suggest = NextSuggest(worker);
      worker.in_flight = suggest;
      worker.in_flight_next = suggest;
      return;
    }
    const CallNumber number = Number(worker.call);
    if (worker.told_to_end || worker.step >= worker.last_step) return ComposeEnd(worker, number);
    if (rng_.Below(8) == 0 && worker.step > 0) {
      worker.in_flight = RegisterCheckpointCommand{
          *worker.lease, number, {worker.step, "c" + std::to_string(worker.step), "", 1, 0}};
      return;
    }
    if (Chance(50)) {
      worker.in_flight = ReleaseCommand{*worker.lease, number, "tired"};
      return;
    }
    if (rng_.Below(10) == 0) {
      worker.in_flight = RenewCommand{{*worker.lease}};
      return;
    }
    ReportCommand report;
    report.lease = *worker.lease;
    report.call = number;
    const uint64_t count = 1 + rng_.Below(3);
    for (uint64_t i = 0; i < count && worker.step < worker.last_step; ++i) {
      report.measurements.push_back(
          {++worker.step, Timestamp{}, {{"loss", rng_.Uniform()}}, std::nullopt});
    }
    worker.in_flight = std::move(report);
  }

  void ComposeEnd(Worker& worker, const CallNumber& number) {
    CompleteCommand complete;
    complete.lease = *worker.lease;
    complete.call = number;
    if (rng_.Below(6) == 0) complete.outcome = FailedOutcome{"exit code 1"};
    if (rng_.Below(20) == 0) complete.outcome = InfeasibleOutcome{"diverged"};
    if (rng_.Below(2) == 0) complete.next = NextSuggest(worker);
    worker.in_flight_next = complete.next;
    worker.in_flight = std::move(complete);
  }

  void Send(Worker& worker) {
    worker.sent = time_;
    if (Chance(12)) return;  // Lost on the way.
    const Command command = *worker.in_flight;
    if (Chance(10)) {
      late_.push_back(command);
      ++result_.repeated;
    }
    Deliver(worker, command);
  }

  void Deliver(Worker& worker, const Command& command) {
    const StatusOr<Outcome> outcome = Try(command);
    if (!outcome.ok()) return Refused(worker, outcome.status());
    if (outcome->need) {
      need_ = outcome->need;
      snapshot_ = machine_.state.study;
    }
    if (!outcome->reply) {
      const size_t index = static_cast<size_t>(&worker - workers_.data());
      if (std::find(parked_.begin(), parked_.end(), index) == parked_.end()) {
        parked_.push_back(index);
      }
      if (outcome->completed) worker.lease.reset();  // The process has ended.
      return;
    }
    if (Chance(12)) {  // The answer is lost: it will be asked again, with the same number.
      ++result_.repeated;
      return;
    }
    Answered(worker, *outcome->reply);
  }

  void Refused(Worker& worker, const Status& status) {
    const std::string code = CodeOf(status);
    if (code != "LEASE_LOST" && code != "TRIAL_ENDED") {
      return Fail(worker.name + " was refused: " + std::string(status.message()));
    }
    worker.lease.reset();
    worker.in_flight.reset();
    worker.in_flight_next.reset();
  }

  void Answered(Worker& worker, const Reply& reply) {
    const Command command = *std::exchange(worker.in_flight, std::nullopt);
    worker.in_flight_next.reset();
    // A recorded answer says by a lease of 0 that the attempt has gone to another since.
    worker.believes_until = worker.sent + (IsOver(reply) ? 0 : 20);
    if (const auto* suggested = std::get_if<SuggestReply>(&reply)) {
      if (std::holds_alternative<CompleteCommand>(command)) worker.lease.reset();
      return Begin(worker, *suggested);
    }
    if (const auto* completed = std::get_if<CompleteReply>(&reply)) {
      worker.lease.reset();
      if (completed->next) Begin(worker, *completed->next);
      return;
    }
    if (std::holds_alternative<ReleaseReply>(reply)) {
      worker.lease.reset();
    } else if (const auto* renewed = std::get_if<RenewReply>(&reply)) {
      if (!renewed->leases.front().held) worker.lease.reset();
    } else if (const auto* report = std::get_if<ReportReply>(&reply)) {
      ++worker.call;
      Reported(worker, std::get<ReportCommand>(command), *report);
    } else {
      ++worker.call;
    }
  }

  static bool IsOver(const Reply& reply) {
    if (const auto* report = std::get_if<ReportReply>(&reply)) return report->lease.count() == 0;
    const auto* registered = std::get_if<RegisterCheckpointReply>(&reply);
    return registered != nullptr && registered->lease.count() == 0;
  }

  void Begin(Worker& worker, const SuggestReply& reply) {
    if (worker.counts_waits || !std::holds_alternative<Wait>(reply)) ++worker.sequence;
    worker.lease.reset();
    const auto* given = std::get_if<std::vector<Assigned>>(&reply);
    if (given == nullptr) {
      if (std::holds_alternative<Finished>(reply)) worker.silent_until = time_ + 50;
      return;
    }
    const Assigned& assigned = given->front();
    if (assigned.lease.count() == 0) return;  // The answer came too late.
    worker.lease = LeaseRef{assigned.trial->id, assigned.attempt, assigned.token};
    worker.call = 1;
    worker.step = assigned.start ? assigned.start->checkpoint.step : 0;
    worker.last_step = worker.step + static_cast<int64_t>(rng_.Below(8));
    worker.told_to_end = false;
    if (rng_.Below(3) == 0) return;  // A program that only prints.
    Capabilities all;
    all.stop = all.pause = all.roll_back = true;
    const StatusOr<Outcome> attached = Try(AttachCommand{worker.lease, "", all, std::nullopt});
    if (!attached.ok()) worker.lease.reset();  // The answer came too late.
  }

  void Reported(Worker& worker, const ReportCommand& command, const ReportReply& reply) {
    if (!reply.rejected.empty()) Fail("rejected: " + reply.rejected.front().why);
    for (const NewMeasurement& m : command.measurements) {
      acknowledged_.insert({command.lease.trial, command.lease.attempt, m.step});
    }
    if (const auto* go_on = std::get_if<Continue>(&reply.directive)) {
      if (go_on->roll_back_to) worker.step = *go_on->roll_back_to;
    } else {
      worker.told_to_end = true;
    }
  }

  void CheckTheEnd() {
    if (!Over()) return Fail("the study never ended");
    const Study& study = machine_.state.study;
    const bool on_target = machine_.state.target_reached.has_value();
    result_.on_target += on_target;
    int64_t proposed = 0;
    for (const Cow<Trial>& trial : study.trials) {
      // Nobody resumes a paused one once the target is reached.
      const bool left = on_target && trial->state == TrialState::kPaused;
      if (!IsEnded(trial->state) && !left)
        Fail("trial " + std::to_string(trial->id) + " never ended");
      if (trial->decision != 0) ++proposed;
    }
    if (proposed > *study.spec->budget.run_cap) Fail("run_cap exceeded");
    if (!on_target && static_cast<int64_t>(study.trials.size()) < *study.spec->budget.run_cap) {
      Fail("run_cap not used: " + machine_.state.state_why);
    }
    if (!machine_.state.leases.empty()) Fail("a lease is left over");
    for (const auto& [trial, attempt, step] : acknowledged_) {
      const auto first = stored_.lower_bound({trial, attempt, 0, INT64_MIN});
      const bool there = std::any_of(first, stored_.end(), [&](const Key& key) {
        return std::get<0>(key) == trial && std::get<1>(key) == attempt && std::get<3>(key) == step;
      });
      if (!there) Fail("an acknowledged measurement is lost");
    }
    machine_.Restart();
  }

  Rng rng_;
  RestlessScheduler scheduler_;
  Machine machine_;
  std::vector<Worker> workers_;
  double time_ = 0;
  bool faults_ = true;
  int requests_ = 0;
  std::optional<NeedDecision> need_;
  Study snapshot_;
  std::vector<size_t> parked_;  // Workers whose Suggest waits for a decision.
  std::deque<Command> late_;
  std::set<Key> stored_;
  std::set<std::tuple<TrialId, int, int64_t>> acknowledged_;
  SimulationResult result_;
};

}  // namespace

SimulationResult Simulate(uint64_t seed) {
  return World(seed).Run();
}

}  // namespace jizi::tuner::testing
