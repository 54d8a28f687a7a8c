// What a store that fails does to the engine (docs/contracts.md, 3).

#include <gtest/gtest.h>

#include "tests/engine/engine_testing.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Contract3 : public testing::Test {
 protected:
  void Start(EngineOptions options = {}) {
    engine_.reset();
    auto engine = Engine::Start(ScriptedStore(script_), std::move(options), clock_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  void StartWithStudies(EngineOptions options = {}) {
    Start(std::move(options));
    for (const char* name : {"a", "b"}) ASSERT_TRUE(Create(*engine_, SpecOf(name), name).ok());
  }
  Awaited<Reply> Enqueue(const std::string& study, const std::string& id) {
    return Send(*engine_, study, EnqueueCommand{{{"lr", 0.5}}, id});
  }
  size_t Trials(const std::string& study) {
    const auto view = Read(*engine_, study);
    EXPECT_TRUE(view.ok()) << view.status();
    return view.ok() ? view->study.trials.size() : 999;
  }
  // What is in memory is what is in the store.
  void ExpectSame(const std::string& study) {
    const auto view = Read(*engine_, study);
    ASSERT_TRUE(view.ok()) << view.status();
    const auto stored = script_->inner->Load(view->id);
    ASSERT_TRUE(stored.ok());
    EXPECT_EQ(stored->log_position, view->log_position);
    EXPECT_EQ(stored->study.trials, view->study.trials);
  }

  FakeClock clock_;
  std::shared_ptr<StoreScript> script_ = std::make_shared<StoreScript>();
  std::unique_ptr<Engine> engine_;
};

TEST_F(Contract3, BusyIsRetriedAndMemoryIsKept) {
  StartWithStudies({.commit_retry = seconds(20)});
  script_->OnAppend([](int number, auto) { return number < 3 ? Busy() : Status(); });
  EXPECT_TRUE(Enqueue("a", "r").Get().ok());
  EXPECT_EQ(script_->Appends(), 4);
  EXPECT_EQ(Trials("a"), 1u);
  ExpectSame("a");
}

TEST_F(Contract3, BusyBeyondTheDeadlineRollsBack) {
  StartWithStudies({.commit_retry = milliseconds(30)});
  script_->OnAppend([](int, auto) { return Busy(); });
  const auto lost = Enqueue("a", "r").Get();
  EXPECT_EQ(lost.status().code(), StatusCode::kUnavailable);
  script_->OnAppend(nullptr);
  EXPECT_EQ(Trials("a"), 0u);
  EXPECT_TRUE(Enqueue("a", "r").Get().ok());
  ExpectSame("a");
}

TEST_F(Contract3, FullRollsBackAnswersUnavailableAndGoesOnWhenThereIsRoom) {
  StartWithStudies();
  ASSERT_TRUE(Enqueue("a", "kept").Get().ok());
  script_->OnAppend([](int, auto) { return Full(); });
  script_->gate.Shut();
  const int before = script_->gate.arrivals();
  const auto first = Enqueue("a", "1");
  ASSERT_TRUE(script_->gate.Arrived(before + 1));
  const auto second = Enqueue("a", "2");
  const auto other = Enqueue("b", "3");
  script_->gate.Open();
  for (const auto* lost : {&first, &second, &other}) {
    const auto got = lost->Get();
    EXPECT_EQ(got.status().code(), StatusCode::kUnavailable);
    EXPECT_EQ(DetailOf(got.status()).code, "STORE_FULL");
  }
  EXPECT_EQ(Trials("a"), 1u);  // Reads go on while it is full.
  EXPECT_EQ(Trials("b"), 0u);
  EXPECT_EQ(Enqueue("a", "4").Get().status().code(), StatusCode::kUnavailable);
  script_->OnAppend(nullptr);
  EXPECT_TRUE(Enqueue("a", "1").Get().ok());
  EXPECT_EQ(Trials("a"), 2u);
  ExpectSame("a");
  ExpectSame("b");
  EXPECT_TRUE(engine_->healthy());
}

TEST_F(Contract3, FullAtACreateLeavesNoStudy) {
  StartWithStudies();
  script_->OnAppend([](int, auto) { return Full(); });
  EXPECT_EQ(Create(*engine_, SpecOf("c"), "c").status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(Read(*engine_, "c").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(engine_->Watch("c", [](const StudyChange&) {}).status().code(), StatusCode::kNotFound);
  script_->OnAppend(nullptr);
  EXPECT_TRUE(Create(*engine_, SpecOf("c"), "c").ok());
  ExpectSame("c");
}

TEST_F(Contract3, FullAtADeleteBringsTheStudyBack) {
  StartWithStudies();
  ASSERT_TRUE(Enqueue("a", "r").Get().ok());
  script_->OnAppend([](int, auto) { return Full(); });
  const Awaited<DoneReply> deleted;
  engine_->Delete("a", deleted.done());
  EXPECT_EQ(deleted.Get().status().code(), StatusCode::kUnavailable);
  script_->OnAppend(nullptr);
  EXPECT_EQ(Trials("a"), 1u);
  const Awaited<DoneReply> again;
  engine_->Delete("a", again.done());
  EXPECT_TRUE(again.Get().ok());
}

TEST_F(Contract3, ALeaseHandedOutInALostGroupIsNotHeld) {
  StartWithStudies();
  const Assigned kept = OnlyTrial(Suggest(*engine_, "a", SuggestOf("w", 1)));
  ASSERT_EQ(kept.trial->id, 1);
  script_->OnAppend([](int, auto) { return Full(); });
  EXPECT_FALSE(Suggest(*engine_, "a", SuggestOf("v", 1)).ok());
  script_->OnAppend(nullptr);
  EXPECT_EQ(Trials("a"), 1u);
  // The live lease of before goes on; the repeat of the lost call is a first one.
  EXPECT_TRUE(Execute(*engine_, "a", ReportOf(kept, 1, 0, 0.5)).ok());
  EXPECT_EQ(OnlyTrial(Suggest(*engine_, "a", SuggestOf("v", 1))).trial->id, 2);
  ExpectSame("a");
}

TEST_F(Contract3, ADecisionOfAnOlderEpochIsDroppedWithItsCallers) {
  const auto scheduler = std::make_shared<SchedulerScript>();
  StartWithStudies({.make_scheduler = ScriptedSchedulers(scheduler)});
  scheduler->gate.Shut();
  const auto parked = Send(*engine_, "a", SuggestOf("w", 1));
  ASSERT_TRUE(scheduler->gate.Arrived(1));
  script_->OnAppend([](int, auto) { return Full(); });
  EXPECT_FALSE(Enqueue("a", "r").Get().ok());
  EXPECT_EQ(parked.Get().status().code(), StatusCode::kUnavailable);
  script_->OnAppend(nullptr);
  scheduler->gate.Open();  // The old decision comes in, for a study that is no more.
  EXPECT_EQ(OnlyTrial(Suggest(*engine_, "a", SuggestOf("w", 1))).trial->id, 1);
  EXPECT_EQ(Trials("a"), 1u);
  EXPECT_EQ(parked.answers(), 1);
  ExpectSame("a");
}

TEST_F(Contract3, AWatcherLivesThroughARollBack) {
  StartWithStudies();
  Mutex mutex;
  std::vector<int64_t> positions;
  const auto subscription = engine_->Watch("a", [&](const StudyChange& change) {
    const MutexLock lock(mutex);
    positions.push_back(change.view.log_position);
  });
  ASSERT_TRUE(subscription.ok());
  ASSERT_TRUE(Enqueue("a", "1").Get().ok());
  script_->OnAppend([](int, auto) { return Full(); });
  ASSERT_FALSE(Enqueue("a", "2").Get().ok());
  script_->OnAppend(nullptr);
  ASSERT_TRUE(Enqueue("a", "3").Get().ok());
  ASSERT_TRUE(Eventually([&] {
    const MutexLock lock(mutex);
    return positions.size() == 3;
  }));
  const MutexLock lock(mutex);
  EXPECT_EQ(positions, (std::vector<int64_t>{1, 2, 3}));
}

TEST_F(Contract3, AConstraintGetsInternalForThatCommandAlone) {
  StartWithStudies();
  script_->OnAppend([](int, std::span<const LogRecord> records) {
    for (const LogRecord& record : records) {
      for (const Event& event : record.events) {
        const auto* created = std::get_if<TrialCreated>(&event);
        if (created != nullptr && created->request_id == "bad") return Constraint();
      }
    }
    return Status();
  });
  script_->gate.Shut();
  const int before = script_->gate.arrivals();
  const auto first = Enqueue("b", "first");
  ASSERT_TRUE(script_->gate.Arrived(before + 1));
  const auto good = Enqueue("b", "good");
  const auto bad = Enqueue("a", "bad");
  const auto after = Enqueue("b", "after");
  script_->gate.Open();
  EXPECT_TRUE(first.Get().ok());
  EXPECT_TRUE(good.Get().ok());
  EXPECT_EQ(bad.Get().status().code(), StatusCode::kInternal);
  EXPECT_TRUE(after.Get().ok());
  EXPECT_EQ(Trials("a"), 0u);
  EXPECT_EQ(Trials("b"), 3u);
  EXPECT_TRUE(Enqueue("a", "fine").Get().ok());
  ExpectSame("a");
  ExpectSame("b");
}

TEST_F(Contract3, DataLossIsFatalOnceAndEverythingIsUnavailable) {
  std::atomic<int> fatal{0};
  StartWithStudies({.on_fatal = [&](const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    ++fatal;
  }});
  EXPECT_TRUE(engine_->healthy());
  script_->OnAppend([](int, auto) { return Broken(); });
  EXPECT_EQ(Enqueue("a", "1").Get().status().code(), StatusCode::kUnavailable);
  EXPECT_FALSE(engine_->healthy());
  const int appends = script_->Appends();
  script_->OnAppend(nullptr);
  EXPECT_EQ(Enqueue("a", "2").Get().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(Read(*engine_, "a").status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(engine_->Watch("a", [](const StudyChange&) {}).status().code(),
            StatusCode::kUnavailable);
  EXPECT_EQ(appends, 1);
  EXPECT_EQ(script_->Appends(), 0);  // Without a retry.
  EXPECT_EQ(fatal.load(), 1);
}

TEST_F(Contract3, AStudyThatCannotBeReadAgainIsTriedAtTheNextCall) {
  StartWithStudies();
  ASSERT_TRUE(Enqueue("a", "kept").Get().ok());
  script_->SetLoad(Busy());
  script_->OnAppend([](int, auto) { return Full(); });
  EXPECT_FALSE(Enqueue("a", "lost").Get().ok());
  script_->OnAppend(nullptr);
  EXPECT_EQ(Read(*engine_, "a").status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(DetailOf(Read(*engine_, "a").status()).code, "STUDY_UNREADABLE");
  script_->SetLoad({});
  EXPECT_EQ(Trials("a"), 1u);
  ExpectSame("a");
}

TEST_F(Contract3, AStoreThatIsFullNowAndThenLosesAndDoublesNothing) {
  StartWithStudies({.commit_retry = milliseconds(0)});
  script_->OnAppend([](int number, auto) { return number % 3 == 2 ? Full() : Status(); });
  constexpr int kTrials = 60;
  for (int i = 0; i < kTrials; ++i) {
    ASSERT_TRUE(Eventually([&] { return Enqueue("a", std::to_string(i)).Get().ok(); }));
  }
  script_->OnAppend(nullptr);
  EXPECT_EQ(Trials("a"), static_cast<size_t>(kTrials));
  ExpectSame("a");
}

}  // namespace
}  // namespace jizi::tuner
