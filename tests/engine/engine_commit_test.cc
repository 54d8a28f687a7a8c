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

TEST_F(Contract3, AnIoErrorWhileNobodyCallsEndsTheServiceAllTheSame) {
  Gate fatal;
  StartWithStudies({.on_fatal = [&fatal](const Status&) { fatal.Pass(); }});
  {
    const MutexLock lock(script_->mutex);
    script_->idle = Broken();
  }
  ASSERT_TRUE(Enqueue("a", "r").Get().ok());  // Idle comes after it.
  EXPECT_TRUE(fatal.Arrived(1));
  EXPECT_FALSE(engine_->healthy());
  engine_.reset();
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
  scheduler->Instead(StatusOr<Decision>(ProposalOf(0.125)));
  scheduler->gate.Shut();
  const auto parked = Send(*engine_, "a", SuggestOf("w", 1));
  ASSERT_TRUE(scheduler->gate.Arrived(1));
  script_->OnAppend([](int, auto) { return Full(); });
  EXPECT_FALSE(Enqueue("a", "r").Get().ok());
  EXPECT_EQ(parked.Get().status().code(), StatusCode::kUnavailable);
  script_->OnAppend(nullptr);
  scheduler->Instead(StatusOr<Decision>(ProposalOf(0.875)));
  const auto again = Send(*engine_, "a", SuggestOf("w", 1));
  ASSERT_TRUE(Read(*engine_, "a").ok());  // It is parked, for a decision of the same number.
  scheduler->gate.Open();  // The old decision comes in first, for a study that is no more.
  const Assigned got = OnlyTrial(again.Get());
  EXPECT_EQ(got.trial->id, 1);
  EXPECT_EQ(got.trial->params, (Params{{"lr", 0.875}}));
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

// What the store has of a name counts, whatever was decided on the deletion that was lost.
TEST_F(Contract3, ADeletionAndANewStudyOfItsNameAreLostTogether) {
  for (const bool unreadable : {false, true}) {
    SCOPED_TRACE(unreadable);
    const auto scheduler = std::make_shared<SchedulerScript>();
    script_ = std::make_shared<StoreScript>();
    StartWithStudies({.make_scheduler = ScriptedSchedulers(scheduler)});
    ASSERT_TRUE(Enqueue("a", "kept").Get().ok());
    script_->OnAppend([](int, auto) { return Full(); });
    script_->gate.Shut();
    scheduler->gate.Shut();
    const Awaited<DoneReply> deleted;
    engine_->Delete("a", deleted.done());
    const Awaited<Engine::Created> created;
    engine_->Create(SpecOf("a"), "again", false, created.done());
    const auto parked = Send(*engine_, "a", SuggestOf("w", 1));
    ASSERT_TRUE(scheduler->gate.Arrived(1));
    if (unreadable) script_->SetLoad(Busy());
    script_->gate.Open();
    EXPECT_EQ(deleted.Get().status().code(), StatusCode::kUnavailable);
    EXPECT_EQ(created.Get().status().code(), StatusCode::kUnavailable);
    EXPECT_EQ(parked.Get().status().code(), StatusCode::kUnavailable);
    if (unreadable) {
      EXPECT_EQ(DetailOf(Read(*engine_, "a").status()).code, "STUDY_UNREADABLE");
      script_->SetLoad({});
    }
    script_->OnAppend(nullptr);
    EXPECT_EQ(Trials("a"), 1u);
    ExpectSame("a");
    scheduler->gate.Open();
    const auto began = std::chrono::steady_clock::now();
    engine_->Shutdown(seconds(60));  // Nobody waits: it does not either.
    EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(30));
  }
}

TEST_F(Contract3, AWatcherIsNotToldOfADeletionThatWasLost) {
  StartWithStudies();
  script_->OnAppend([](int, auto) { return Full(); });
  script_->gate.Shut();
  const Awaited<DoneReply> deleted;
  engine_->Delete("a", deleted.done());
  const int before = script_->gate.arrivals();
  ASSERT_TRUE(script_->gate.Arrived(std::max(before, 1)));
  Mutex mutex;
  std::vector<StudyChange> changes;
  const auto subscription = engine_->Watch("a", [&](const StudyChange& change) {
    const MutexLock lock(mutex);
    changes.push_back(change);
  });
  ASSERT_TRUE(subscription.ok());
  const auto parked_behind = Send(*engine_, "a", EnqueueCommand{{{"lr", 0.5}}, "r"});
  script_->gate.Open();
  EXPECT_EQ(deleted.Get().status().code(), StatusCode::kUnavailable);
  // Nor is a call refused for it: NOT_FOUND would be final.
  EXPECT_EQ(parked_behind.Get().status().code(), StatusCode::kUnavailable);
  ASSERT_TRUE(Eventually([&] {
    const MutexLock lock(mutex);
    return !changes.empty();
  }));
  const MutexLock lock(mutex);
  EXPECT_FALSE(changes.front().deleted);
  EXPECT_EQ(changes.front().view.id, 1);
}

TEST_F(Contract3, AStudyThatCannotBeReadIsNotSaidToBeGone) {
  StartWithStudies();
  script_->SetLoad(Busy());
  script_->OnAppend([](int, auto) { return Full(); });
  EXPECT_FALSE(Enqueue("a", "lost").Get().ok());
  script_->OnAppend(nullptr);
  Mutex mutex;
  std::vector<StudyChange> changes;
  const auto subscription = engine_->Watch("a", [&](const StudyChange& change) {
    const MutexLock lock(mutex);
    changes.push_back(change);
  });
  ASSERT_TRUE(subscription.ok());
  ASSERT_TRUE(Eventually([&] {
    const MutexLock lock(mutex);
    return !changes.empty();
  }));
  {
    const MutexLock lock(mutex);
    EXPECT_TRUE(changes.front().deleted);
    EXPECT_EQ(DetailOf(changes.front().why).code, "STUDY_UNREADABLE");
  }
  const Awaited<std::vector<StudyView>> list;
  engine_->List(list.done());
  EXPECT_EQ(DetailOf(list.Get().status()).code, "STUDY_UNREADABLE");
  script_->SetLoad({});
  const Awaited<std::vector<StudyView>> again;
  engine_->List(again.done());
  const auto views = again.Get();
  ASSERT_TRUE(views.ok()) << views.status();
  EXPECT_EQ(views->size(), 2u);
}

TEST_F(Contract3, OneDamagedStudyDoesNotKeepTheOthersFromStarting) {
  StartWithStudies();
  ASSERT_TRUE(Enqueue("b", "r").Get().ok());
  script_->SetLoad(Damaged(), 1);
  std::vector<std::string> said;
  Start({.on_error = [&](const Status& error) { said.push_back(DetailOf(error).code); }});
  EXPECT_EQ(said, (std::vector<std::string>{"LOG_DAMAGED"}));
  EXPECT_EQ(Trials("b"), 1u);
  EXPECT_EQ(DetailOf(Read(*engine_, "a").status()).code, "LOG_DAMAGED");
  EXPECT_EQ(DetailOf(Create(*engine_, SpecOf("a"), "new", true).status()).code, "LOG_DAMAGED");
  EXPECT_EQ(said.size(), 1u);  // It is not read again at each call.
}

// A study at the end of its wall clock, which no call touches.
StudySpec Brief(const std::string& name) {
  StudySpec spec = SpecOf(name);
  spec.budget.wall_clock = seconds(100);
  return spec;
}

TEST_F(Contract3, ATickThatCannotBeStoredWaitsBeforeItIsTriedAgain) {
  Start();
  ASSERT_TRUE(Create(*engine_, Brief("a"), "a").ok());
  script_->OnAppend([](int, auto) { return Full(); });
  clock_.Advance(seconds(101));
  ASSERT_TRUE(Eventually([&] { return script_->Appends() == 1; }));
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(Read(*engine_, "a").ok());  // The loss is over.
    clock_.Advance(milliseconds(100));
  }
  ASSERT_TRUE(Read(*engine_, "a").ok());
  ASSERT_TRUE(Read(*engine_, "a").ok());
  EXPECT_EQ(script_->Appends(), 1);
  script_->OnAppend(nullptr);
  clock_.Advance(seconds(100));
  EXPECT_TRUE(Eventually([&] { return Read(*engine_, "a")->state == StudyState::kFinished; }));
}

TEST_F(Contract3, AReadOnlyStoreIsNotTicked) {
  Start();
  ASSERT_TRUE(Create(*engine_, Brief("a"), "a").ok());
  Start({.read_only = true});
  script_->OnAppend([](int, auto) { return Full(); });
  clock_.Advance(seconds(200));
  ASSERT_TRUE(Read(*engine_, "a").ok());
  ASSERT_TRUE(Read(*engine_, "a").ok());
  EXPECT_EQ(script_->Appends(), 0);
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
