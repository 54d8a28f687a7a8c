// Suggestions are functions of the log: without memos, after a restart, and computed again
// (docs/contracts.md, 10, 13).

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "tests/engine/engine_testing.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;

class AgainTest : public testing::Test {
 protected:
  void Start(EngineOptions options = {}) {
    engine_.reset();
    auto engine = Engine::Start(ScriptedStore(script_), std::move(options), clock_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  FakeClock clock_;
  std::shared_ptr<StoreScript> script_ = std::make_shared<StoreScript>();
  std::unique_ptr<Engine> engine_;
};

using Contract10Again = AgainTest;
using Contract13 = AgainTest;

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
      Start();
      ASSERT_TRUE(Create(*engine_, spec, "r").ok());
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
    Start(std::move(options));
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

TEST_F(Contract10Again, TheStoredDecisionIsWhatComputingItAgainGives) {
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
  Start(std::move(options));
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
