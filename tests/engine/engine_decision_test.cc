// Suggests that wait for a scheduler: off the engine thread, joined, exactly once, the same
// after a restart (docs/contracts.md, 1, 10, 12, 13).

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "tests/engine/engine_testing.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;

class DecisionTest : public testing::Test {
 protected:
  void Start(EngineOptions options = {}) {
    engine_.reset();
    options.make_scheduler = ScriptedSchedulers(scheduler_);
    StartWith(std::move(options));
  }
  void StartWith(EngineOptions options) {
    engine_.reset();
    auto engine = Engine::Start(ScriptedStore(script_), std::move(options), clock_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  void StartWithStudy(StudySpec spec = SpecOf("s")) {
    Start();
    ASSERT_TRUE(Create(*engine_, std::move(spec), "r").ok());
  }

  FakeClock clock_;
  std::shared_ptr<SchedulerScript> scheduler_ = std::make_shared<SchedulerScript>();
  std::shared_ptr<StoreScript> script_ = std::make_shared<StoreScript>();
  std::unique_ptr<Engine> engine_;
};

using Contract1 = DecisionTest;
using Contract10 = DecisionTest;
using Contract12InFlight = DecisionTest;
using Contract13 = DecisionTest;

TEST_F(Contract1, ASlowSchedulerHoldsUpNobodysReport) {
  StartWithStudy();
  const Assigned held = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  ASSERT_EQ(held.trial->id, 1);
  scheduler_->gate.Shut();
  const auto slow = Send(*engine_, "s", SuggestOf("v", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(2));
  for (int step = 0; step < 20; ++step) {
    ASSERT_TRUE(Execute(*engine_, "s", ReportOf(held, step + 1, step, 0.5)).ok());
  }
  ASSERT_TRUE(Read(*engine_, "s").ok());
  EXPECT_FALSE(slow.answered());
  scheduler_->gate.Open();
  EXPECT_EQ(OnlyTrial(slow.Get()).trial->id, 2);
}

TEST_F(Contract10, TheAnswerIsAcceptedWhateverWasReportedInBetween) {
  StartWithStudy();
  const Assigned held = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  scheduler_->gate.Shut();
  const auto slow = Send(*engine_, "s", SuggestOf("v", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(2));
  ASSERT_TRUE(Execute(*engine_, "s", ReportOf(held, 1, 0, 0.5)).ok());
  scheduler_->gate.Open();
  const Assigned second = OnlyTrial(slow.Get());
  ASSERT_EQ(second.trial->id, 2);
  EXPECT_EQ(second.trial->decision, 2);
}

TEST_F(Contract10, CallsThatWaitAreJoinedIntoOneCount) {
  StartWithStudy();
  scheduler_->gate.Shut();
  std::vector<Awaited<Reply>> replies;
  replies.push_back(Send(*engine_, "s", SuggestOf("w0", 1)));
  ASSERT_TRUE(scheduler_->gate.Arrived(1));
  for (int i = 1; i <= 10; ++i) {
    replies.push_back(Send(*engine_, "s", SuggestOf("w" + std::to_string(i), 1, 2)));
  }
  ASSERT_TRUE(Read(*engine_, "s").ok());  // All are parked by now.
  scheduler_->gate.Open();
  for (const auto& reply : replies) ASSERT_TRUE(reply.Get().ok()) << reply.Get().status();
  EXPECT_EQ(scheduler_->Counts(), (std::vector<int>{1, 20}));
  EXPECT_EQ(Read(*engine_, "s")->study.trials.size(), 21u);
}

TEST_F(Contract10, OneDecisionAStudyAtATime) {
  StartWithStudy();
  scheduler_->gate.Shut();
  const auto first = Send(*engine_, "s", SuggestOf("w", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(1));
  const auto second = Send(*engine_, "s", SuggestOf("v", 1));
  ASSERT_TRUE(Read(*engine_, "s").ok());
  EXPECT_EQ(scheduler_->gate.arrivals(), 1);
  scheduler_->gate.Open();
  // They are served in order.
  EXPECT_EQ(OnlyTrial(first.Get()).trial->id, 1);
  EXPECT_EQ(OnlyTrial(second.Get()).trial->id, 2);
}

TEST_F(Contract10, TheJoinedCountKeepsToTheRunCap) {
  StudySpec spec = SpecOf("s");
  spec.budget.run_cap = 4;
  StartWithStudy(spec);
  scheduler_->gate.Shut();
  std::vector<Awaited<Reply>> replies;
  for (int i = 0; i < 10; ++i) {
    replies.push_back(Send(*engine_, "s", SuggestOf("w" + std::to_string(i), 1)));
  }
  ASSERT_TRUE(Read(*engine_, "s").ok());
  scheduler_->gate.Open();
  int trials = 0;
  for (const auto& reply : replies) {
    const auto got = reply.Get();
    ASSERT_TRUE(got.ok()) << got.status();
    if (OnlyTrial(got).trial->id != 0) ++trials;
  }
  EXPECT_EQ(trials, 4);
  EXPECT_EQ(Read(*engine_, "s")->study.trials.size(), 4u);
  int asked = 0;
  for (const int count : scheduler_->Counts()) asked += count;
  EXPECT_LE(asked, 4);
}

TEST_F(Contract10, AStudyThatIsPausedMeanwhileHandsOutNothing) {
  StartWithStudy();
  scheduler_->gate.Shut();
  const auto waiting = Send(*engine_, "s", SuggestOf("w", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(1));
  ASSERT_TRUE(Execute(*engine_, "s", SetStateCommand{StudyState::kPaused}).ok());
  scheduler_->gate.Open();
  const auto got = waiting.Get();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(std::holds_alternative<Wait>(std::get<SuggestReply>(*got)));
}

TEST_F(Contract12InFlight, ARepeatJoinsAndGetsTheSameAnswer) {
  StartWithStudy();
  scheduler_->gate.Shut();
  const auto first = Send(*engine_, "s", SuggestOf("w", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(1));
  const auto repeat = Send(*engine_, "s", SuggestOf("w", 1));  // Other tokens, the same body.
  ASSERT_TRUE(Read(*engine_, "s").ok());
  scheduler_->gate.Open();
  const Assigned a = OnlyTrial(first.Get());
  const Assigned b = OnlyTrial(repeat.Get());
  EXPECT_EQ(a.trial->id, 1);
  EXPECT_EQ(b.trial->id, 1);
  EXPECT_EQ(a.token, b.token);
  EXPECT_EQ(Read(*engine_, "s")->study.trials.size(), 1u);
}

TEST_F(Contract12InFlight, AnotherBodyOrAnotherNumberIsRefusedWhileOneWaits) {
  StartWithStudy();
  scheduler_->gate.Shut();
  const auto first = Send(*engine_, "s", SuggestOf("w", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(1));
  const auto other_body = Execute(*engine_, "s", SuggestOf("w", 1, 2));
  EXPECT_EQ(other_body.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf(other_body.status()).code, "SEQUENCE_REUSED");
  const auto next = Execute(*engine_, "s", SuggestOf("w", 2));
  EXPECT_EQ(next.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailOf(next.status()).code, "CALL_IN_FLIGHT");
  scheduler_->gate.Open();
  EXPECT_EQ(OnlyTrial(first.Get()).trial->id, 1);
  EXPECT_EQ(OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 2))).trial->id, 2);
}

TEST_F(Contract12InFlight, ACompleteThatWaitsForItsNextIsJoinedByItsRepeat) {
  StartWithStudy();
  const Assigned held = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  ASSERT_TRUE(Execute(*engine_, "s", ReportOf(held, 1, 0, 0.5)).ok());
  scheduler_->gate.Shut();
  CompleteCommand complete = CompleteOf(held, 2);
  complete.next = SuggestOf("w", 2);
  const auto first = Send(*engine_, "s", complete);
  ASSERT_TRUE(scheduler_->gate.Arrived(2));
  const auto repeat = Send(*engine_, "s", complete);
  EXPECT_EQ(Read(*engine_, "s")->study.trials[0]->state,
            TrialState::kCompleted);  // That half is done.
  scheduler_->gate.Open();
  for (const auto& reply : {first.Get(), repeat.Get()}) {
    ASSERT_TRUE(reply.ok()) << reply.status();
    const auto& completed = std::get<CompleteReply>(*reply);
    EXPECT_EQ(completed.trial->state, TrialState::kCompleted);
    ASSERT_TRUE(completed.next.has_value());
    EXPECT_EQ(OnlyTrial(StatusOr<SuggestReply>(*completed.next)).trial->id, 2);
  }
  EXPECT_EQ(Read(*engine_, "s")->study.trials.size(), 2u);
}

TEST_F(DecisionTest, AFailedDecisionAnswersItsCallersAndTheNextOneIsTakenAnew) {
  StartWithStudy();
  scheduler_->Instead(StatusOr<Decision>(absl::InternalError("no root found")));
  const auto failed = Suggest(*engine_, "s", SuggestOf("w", 1));
  EXPECT_EQ(failed.status().code(), StatusCode::kInternal) << failed.status();
  scheduler_->Instead(std::nullopt);
  EXPECT_EQ(OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1))).trial->id, 1);
}

TEST_F(DecisionTest, AFailedDecisionLeavesACompleteDone) {
  StartWithStudy();
  const Assigned held = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  ASSERT_TRUE(Execute(*engine_, "s", ReportOf(held, 1, 0, 0.5)).ok());
  scheduler_->Instead(StatusOr<Decision>(absl::InternalError("no root found")));
  CompleteCommand complete = CompleteOf(held, 2);
  complete.next = SuggestOf("w", 2);
  const auto reply = Execute(*engine_, "s", complete);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_FALSE(std::get<CompleteReply>(*reply).next.has_value());
  scheduler_->Instead(std::nullopt);
  EXPECT_EQ(OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 2))).trial->id, 2);
}

TEST_F(DecisionTest, ASchedulerThatSaysNothingIsNoLoop) {
  StartWithStudy();
  scheduler_->Instead(StatusOr<Decision>(Decision{}));
  EXPECT_TRUE(Suggest(*engine_, "s", SuggestOf("w", 1)).ok());
  EXPECT_LE(scheduler_->Counts().size(), 2u);
}

TEST_F(DecisionTest, ASchedulerThatWaitsIsAWait) {
  StartWithStudy();
  ASSERT_EQ(OnlyTrial(Suggest(*engine_, "s", SuggestOf("v", 1))).trial->id,
            1);  // May bring a change.
  Decision wait;
  wait.next = Next::kWait;
  wait.why = "for the other members";
  scheduler_->Instead(StatusOr<Decision>(wait));
  const auto reply = Suggest(*engine_, "s", SuggestOf("w", 1));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(std::holds_alternative<Wait>(*reply));
}

TEST_F(DecisionTest, ShutdownPastItsDeadlineLeavesASlowSchedulerBehind) {
  StartWithStudy();
  scheduler_->gate.Shut();
  const auto waiting = Send(*engine_, "s", SuggestOf("w", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(1));
  engine_->Shutdown(milliseconds(10));
  EXPECT_EQ(waiting.Get().status().code(), StatusCode::kUnavailable);
  engine_.reset();
  scheduler_->gate.Open();  // It ends by itself and touches nothing of the engine.
  Start();
  EXPECT_EQ(OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1))).trial->id, 1);
}

TEST_F(DecisionTest, ShutdownWaitsForADecisionWithinItsDeadline) {
  StartWithStudy();
  scheduler_->gate.Shut();
  const auto waiting = Send(*engine_, "s", SuggestOf("w", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(1));
  std::thread shutdown([&] { engine_->Shutdown(milliseconds(30'000)); });
  const bool begun = Eventually([&] {
    const auto late = Send(*engine_, "s", SetAttributesCommand{0, {{"i", "x"}}, {}});
    return late.answered() && DetailOf(late.Get().status()).code == "SHUTTING_DOWN";
  });
  EXPECT_FALSE(waiting.answered());
  scheduler_->gate.Open();
  EXPECT_EQ(OnlyTrial(waiting.Get()).trial->id, 1);
  shutdown.join();
  EXPECT_TRUE(begun);
}

TEST_F(DecisionTest, AboveTheBoundACompleteIsDoneWithoutItsNext) {
  Start({.queue = 2});
  ASSERT_TRUE(Create(*engine_, SpecOf("s"), "r").ok());
  const Assigned held = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  ASSERT_TRUE(Execute(*engine_, "s", ReportOf(held, 1, 0, 0.5)).ok());
  scheduler_->gate.Shut();
  const auto first = Send(*engine_, "s", SuggestOf("u", 1));
  ASSERT_TRUE(scheduler_->gate.Arrived(2));
  const auto second = Send(*engine_, "s", SuggestOf("v", 1));
  ASSERT_TRUE(Read(*engine_, "s").ok());  // Both are parked.
  const auto refused = Execute(*engine_, "s", SuggestOf("x", 1));
  EXPECT_EQ(DetailOf(refused.status()).code, "QUEUE_FULL");
  CompleteCommand complete = CompleteOf(held, 2);
  complete.next = SuggestOf("w", 2);
  for (int i = 0; i < 2; ++i) {  // It, and its repeat.
    const auto reply = Execute(*engine_, "s", complete);
    ASSERT_TRUE(reply.ok()) << reply.status();
    const auto& completed = std::get<CompleteReply>(*reply);
    EXPECT_EQ(completed.trial->state, TrialState::kCompleted);
    EXPECT_FALSE(completed.next.has_value());
  }
  scheduler_->gate.Open();
  ASSERT_TRUE(first.Get().ok());
  ASSERT_TRUE(second.Get().ok());
  EXPECT_EQ(OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 2))).trial->id, 4);
}

// Proposes what nothing but the history says; remembers in its memos how often it was asked.
class Historian final : public Scheduler {
 public:
  explicit Historian(std::shared_ptr<std::atomic<int>> warm) : warm_(std::move(warm)) {}

  StatusOr<Decision> Suggest(const Study& study, int count, Rng rng, Memo& memo) const override {
    Count(memo);
    double sum = 0;
    for (const Cow<Trial>& trial : study.trials) {
      for (const Measurement& measurement : trial->measurements)
        sum += measurement.metrics.at(0).value;
    }
    Decision decision;
    for (int i = 0; i < count; ++i) {
      const double lr =
          sum / 8 + 0.01 * static_cast<double>(study.trials.size()) + 0.1 * rng.Uniform();
      decision.start.push_back({{{"lr", lr - std::floor(lr)}}, {}, {}, {}, ""});
    }
    return decision;
  }
  StatusOr<Decision> OnChange(const Study&, TrialId, const Change&, Rng,
                              Memo& memo) const override {
    Count(memo);
    return Decision{};
  }

 private:
  void Count(Memo& memo) const {
    if (memo.value.has_value()) ++*warm_;
    memo.value = 1;
  }
  std::shared_ptr<std::atomic<int>> warm_;
};

// The same calls give the same suggestions, whether the engine lives through them or is started
// anew before each: what a memo holds is lost then, and so is everything else that is not in the
// log.
std::vector<Params> Suggestions(Engine& engine) {
  std::vector<Params> all;
  const auto view = Read(engine, "s");
  if (!view.ok()) return all;
  for (const Cow<Trial>& trial : view->study.trials) all.push_back(trial->params);
  return all;
}

TEST_F(Contract13, MemosDroppedAtEveryCallGiveTheSameAnswers) {
  for (const char* method : {"random", "grid"}) {
    SCOPED_TRACE(method);
    StudySpec spec = SpecOf("s");
    spec.method = method;
    spec.space.parameters = {
        {"units", NumericDomain{Uniform{1, 50}, 1, true}, {}},
        {"kind", CategoricalDomain{{std::string("a"), std::string("b")}, {}}, {}}};
    std::vector<Params> without;
    for (const bool restart : {false, true}) {
      script_ = std::make_shared<StoreScript>();
      StartWithStudy(spec);
      for (int i = 0; i < 12; ++i) {
        if (restart) Start();
        const Assigned held = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", i + 1)));
        ASSERT_EQ(held.trial->id, i + 1);
        if (restart) Start();
        ASSERT_TRUE(Execute(*engine_, "s", ReportOf(held, 1, 0, 1.0 / (i + 1))).ok());
        if (restart) Start();
        ASSERT_TRUE(Execute(*engine_, "s", CompleteOf(held, 2)).ok());
      }
      if (!restart) {
        without = Suggestions(*engine_);
        ASSERT_EQ(without.size(), 12u);
      } else {
        EXPECT_EQ(Suggestions(*engine_), without);
      }
    }
  }
}

// Workers that suggest, report and complete, so that decisions of several sizes and changes mix.
void RunHistory(Engine& engine) {
  std::vector<Assigned> held;
  for (int i = 0; i < 6; ++i) {
    const auto reply =
        Suggest(engine, "s", SuggestOf("w" + std::to_string(i % 2), i / 2 + 1, 1 + i % 3));
    ASSERT_TRUE(reply.ok()) << reply.status();
    const auto& trials = std::get<std::vector<Assigned>>(*reply);
    held.insert(held.end(), trials.begin(), trials.end());
    const Assigned first = held.front();
    held.erase(held.begin());
    ASSERT_TRUE(Execute(engine, "s", ReportOf(first, 1, 0, 0.3 * (i + 1))).ok());
    ASSERT_TRUE(Execute(engine, "s", ReportOf(first, 2, 1, 0.7 / (i + 1))).ok());
    ASSERT_TRUE(Execute(engine, "s", CompleteOf(first, 3)).ok());
  }
}

TEST_F(Contract13, WithoutMemosEachCallBeginsWithAnEmptyOneAndAnswersTheSame) {
  std::vector<Params> kept;
  for (const bool keep : {true, false}) {
    SCOPED_TRACE(keep);
    script_ = std::make_shared<StoreScript>();
    const auto warm = std::make_shared<std::atomic<int>>(0);
    EngineOptions options;
    options.keep_memos = keep;
    options.make_scheduler = [warm](const StudySpec&) -> StatusOr<std::unique_ptr<Scheduler>> {
      return std::unique_ptr<Scheduler>(std::make_unique<Historian>(warm));
    };
    StartWith(std::move(options));
    ASSERT_TRUE(Create(*engine_, SpecOf("s"), "r").ok());
    RunHistory(*engine_);
    if (keep) {
      kept = Suggestions(*engine_);
      EXPECT_GT(*warm, 10);
    } else {
      EXPECT_EQ(Suggestions(*engine_), kept);
      EXPECT_EQ(*warm, 0);
    }
  }
}

// What the log says of each decision is enough to take it again.
void ExpectDecisionsOf(const std::vector<LogRecord>& log, const Scheduler& scheduler) {
  int compared = 0;
  for (const LogRecord& record : log) {
    const Decided* decided = nullptr;
    std::vector<Proposal> stored;
    for (const Event& event : record.events) {
      if (const auto* each = std::get_if<Decided>(&event)) decided = each;
      const auto* created = std::get_if<TrialCreated>(&event);
      if (created != nullptr && created->decision > 0) stored.push_back(created->proposal);
    }
    if (decided == nullptr) continue;
    StudyData then;
    for (const LogRecord& before : log) {
      if (before.position <= decided->log_position) Apply(then, before);
    }
    Memo memo;
    const auto again =
        scheduler.Suggest(then.study, decided->count,
                          Rng::ForSuggest(then.study.spec->seed, decided->decision), memo);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->start, stored) << "decision " << decided->decision;
    ++compared;
  }
  EXPECT_GE(compared, 3);
}

TEST_F(Contract10, TheStoredDecisionIsWhatComputingItAgainGives) {
  const Historian scheduler(std::make_shared<std::atomic<int>>(0));
  EngineOptions options;
  options.make_scheduler = [](const StudySpec&) -> StatusOr<std::unique_ptr<Scheduler>> {
    return std::unique_ptr<Scheduler>(
        std::make_unique<Historian>(std::make_shared<std::atomic<int>>(0)));
  };
  Mutex mutex;
  std::vector<LogRecord> log;
  script_->OnAppend([&](int, std::span<const LogRecord> records) {
    const MutexLock lock(mutex);
    log.insert(log.end(), records.begin(), records.end());
    return Status();
  });
  StartWith(std::move(options));
  ASSERT_TRUE(Create(*engine_, SpecOf("s"), "r").ok());
  RunHistory(*engine_);
  // Calls that arrive together are joined into one count, and reports come in between.
  const Assigned held = OnlyTrial(Suggest(*engine_, "s", SuggestOf("reporter", 1)));
  std::vector<Awaited<Reply>> replies;
  for (int i = 0; i < 8; ++i) {
    replies.push_back(Send(*engine_, "s", SuggestOf("many" + std::to_string(i), 1)));
    replies.push_back(Send(*engine_, "s", ReportOf(held, i + 1, i, 0.11 * i)));
  }
  for (const auto& reply : replies) ASSERT_TRUE(reply.Get().ok()) << reply.Get().status();
  engine_->Shutdown(milliseconds(10'000));
  const MutexLock lock(mutex);
  ExpectDecisionsOf(log, scheduler);
}

}  // namespace
}  // namespace jizi::tuner
