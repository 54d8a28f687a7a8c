// The rules of engine.h that hold without faults: order, durability, names, bounds, the change
// feed, the end.

#include "tuner-service/engine/engine.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/engine/engine_testing.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;

class EngineTest : public testing::Test {
 protected:
  void Start(EngineOptions options = {}) {
    engine_.reset();  // Before the next one has the store.
    auto engine = Engine::Start(ScriptedStore(script_), std::move(options), clock_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  void StartWithStudy(EngineOptions options = {}) {
    Start(std::move(options));
    ASSERT_TRUE(Create(*engine_, SpecOf("s"), "create-s").ok());
  }

  FakeClock clock_;
  std::shared_ptr<StoreScript> script_ = std::make_shared<StoreScript>();
  std::unique_ptr<Engine> engine_;
};

using Contract2 = EngineTest;
using Contract12 = EngineTest;
using Contract14 = EngineTest;
using Contract15 = EngineTest;

TEST_F(EngineTest, OneTrialFromSuggestToComplete) {
  StartWithStudy();
  const Assigned trial = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  ASSERT_EQ(trial.trial->id, 1);
  EXPECT_EQ(trial.trial->state, TrialState::kRunning);
  EXPECT_EQ(trial.trial->params.count("lr"), 1u);
  const auto reported = Execute(*engine_, "s", ReportOf(trial, 1, 0, 0.5));
  ASSERT_TRUE(reported.ok()) << reported.status();
  EXPECT_TRUE(std::get<ReportReply>(*reported).rejected.empty());
  const auto completed = Execute(*engine_, "s", CompleteOf(trial, 2));
  ASSERT_TRUE(completed.ok()) << completed.status();
  EXPECT_EQ(std::get<CompleteReply>(*completed).trial->state, TrialState::kCompleted);
  const auto view = Read(*engine_, "s");
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->study.best, 1);
  // And all of it is in the store.
  auto stored = script_->inner->Load(view->id);
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(stored->log_position, view->log_position);
  EXPECT_EQ(stored->study.trials, view->study.trials);
}

TEST_F(Contract2, AnAnswerWaitsUntilItsRecordIsDurable) {
  StartWithStudy();
  script_->gate.Shut();
  const int before = script_->gate.arrivals();
  const auto enqueued = Send(*engine_, "s", EnqueueCommand{{{"lr", 0.25}}, "r1"});
  ASSERT_TRUE(script_->gate.Arrived(before + 1));  // Decided, and held just before it is written.
  EXPECT_FALSE(enqueued.answered());
  script_->gate.Open();
  EXPECT_TRUE(enqueued.Get().ok());
}

TEST_F(Contract2, ReadsAndRefusalsAndListsWaitForWhatTheyWereDecidedOn) {
  const auto scheduler = std::make_shared<SchedulerScript>();
  StartWithStudy({.make_scheduler = ScriptedSchedulers(scheduler)});
  script_->gate.Shut();
  const int before = script_->gate.arrivals();
  const auto enqueued = Send(*engine_, "s", EnqueueCommand{{{"lr", 0.25}}, "r1"});
  ASSERT_TRUE(script_->gate.Arrived(before + 1));
  const Awaited<StudyView> read;
  engine_->Read("s", read.done());
  const auto refused = Send(*engine_, "s", EnqueueCommand{{{"nonsense", 0.25}}, "r2"});
  const Awaited<std::vector<StudyView>> list;
  engine_->List(list.done());
  const Awaited<Engine::Created> second;
  engine_->Create(SpecOf("s"), "another", false, second.done());
  // Two suggestions, one more than what is queued: once the scheduler is asked, all before it was
  // decided.
  const auto suggested = Send(*engine_, "s", SuggestOf("w", 1, 2));
  ASSERT_TRUE(scheduler->gate.Arrived(1));
  EXPECT_FALSE(suggested.answered());
  EXPECT_FALSE(read.answered() || refused.answered() || list.answered() || second.answered());
  script_->gate.Open();
  ASSERT_TRUE(read.Get().ok());
  EXPECT_EQ(read.Get()->study.trials.size(), 1u);
  EXPECT_EQ(refused.Get().status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(list.Get()->size(), 1u);
  EXPECT_EQ(DetailOf(second.Get().status()).code, "STUDY_EXISTS");
}

TEST_F(Contract2, ManyCallsThatWaitAreOneGroup) {
  StartWithStudy();
  script_->gate.Shut();
  const int before = script_->gate.arrivals();
  std::vector<Awaited<Reply>> replies;
  replies.push_back(Send(*engine_, "s", EnqueueCommand{{{"lr", 0.5}}, "first"}));
  ASSERT_TRUE(script_->gate.Arrived(before + 1));
  for (int i = 0; i < 50; ++i) {
    replies.push_back(Send(*engine_, "s", EnqueueCommand{{{"lr", 0.5}}, std::to_string(i)}));
  }
  const Awaited<StudyView> read;
  engine_->Read("s", read.done());
  script_->gate.Open();
  for (const auto& reply : replies) EXPECT_TRUE(reply.Get().ok());
  ASSERT_TRUE(read.Get().ok());
  EXPECT_LT(script_->gate.arrivals() - before, 25);  // 51 commands, a handful of transactions.
}

TEST_F(Contract12, TheLastNumberAgainGetsItsRecordedAnswer) {
  StartWithStudy();
  const Assigned first = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  const Assigned again = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  ASSERT_EQ(first.trial->id, 1);
  EXPECT_EQ(again.trial->id, 1);
  EXPECT_EQ(again.token, first.token);
  EXPECT_EQ(Read(*engine_, "s")->study.trials.size(), 1u);
}

TEST_F(Contract12, ARepeatOfACallThatIsNotYetDurableGetsTheSameAnswer) {
  StartWithStudy();
  const Assigned trial = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  ASSERT_EQ(trial.trial->id, 1);
  script_->gate.Shut();
  const auto first = Send(*engine_, "s", ReportOf(trial, 1, 0, 0.5));
  const auto repeat = Send(*engine_, "s", ReportOf(trial, 1, 0, 0.5));
  script_->gate.Open();
  EXPECT_TRUE(first.Get().ok());
  EXPECT_TRUE(repeat.Get().ok());
  EXPECT_EQ(Read(*engine_, "s")->study.trials[0]->measurements.size(), 1u);
}

TEST_F(Contract15, ANameIsTakenUnlessResumed) {
  StartWithStudy();
  const auto refused = Create(*engine_, SpecOf("s"), "other");
  EXPECT_EQ(refused.status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(DetailOf(refused.status()).code, "STUDY_EXISTS");
  EXPECT_NE(DetailOf(refused.status()).mend, "");
  StudySpec more = SpecOf("s");
  more.budget.run_cap = 50;
  const auto resumed = Create(*engine_, more, "resume-1", true);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_FALSE(resumed->created);
  EXPECT_EQ(resumed->view.study.spec->budget.run_cap, 50);
  StudySpec other = SpecOf("s");
  other.seed = 8;
  EXPECT_FALSE(Create(*engine_, other, "resume-2", true).ok());
  const auto fresh = Create(*engine_, SpecOf("new"), "resume-3", true);
  ASSERT_TRUE(fresh.ok());
  EXPECT_TRUE(fresh->created);
}

TEST_F(Contract12, CreateWithTheSameRequestIdGetsTheStudyItMade) {
  Start();
  const auto first = Create(*engine_, SpecOf("s"), "r");
  const auto again = Create(*engine_, SpecOf("s"), "r");
  ASSERT_TRUE(first.ok() && again.ok()) << again.status();
  EXPECT_EQ(again->view.id, first->view.id);
  EXPECT_TRUE(again->created);
  Start();  // Also after a restart.
  const auto later = Create(*engine_, SpecOf("s"), "r");
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(later->view.id, first->view.id);
}

TEST_F(EngineTest, DeletedStudiesAreGoneAndTheirIdsAreNotUsedAgain) {
  StartWithStudy();
  const StudyId first = Read(*engine_, "s")->id;
  const Awaited<DoneReply> deleted;
  engine_->Delete("s", deleted.done());
  EXPECT_TRUE(deleted.Get().ok());
  EXPECT_EQ(DetailOf(Read(*engine_, "s").status()).code, "STUDY_NOT_FOUND");
  EXPECT_EQ(Execute(*engine_, "s", SuggestOf("w", 1)).status().code(), StatusCode::kNotFound);
  const Awaited<DoneReply> again;
  engine_->Delete("s", again.done());
  EXPECT_EQ(again.Get().status().code(), StatusCode::kNotFound);
  Start();
  EXPECT_EQ(Read(*engine_, "s").status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(Create(*engine_, SpecOf("s"), "r2").ok());
  EXPECT_GT(Read(*engine_, "s")->id, first);
}

TEST_F(EngineTest, ListsEveryStudyById) {
  Start();
  for (const char* name : {"b", "a", "c"}) ASSERT_TRUE(Create(*engine_, SpecOf(name), name).ok());
  const Awaited<std::vector<StudyView>> list;
  engine_->List(list.done());
  const auto views = list.Get();
  ASSERT_TRUE(views.ok());
  ASSERT_EQ(views->size(), 3u);
  EXPECT_EQ((*views)[0].study.spec->name, "b");
  EXPECT_EQ((*views)[2].study.spec->name, "c");
}

TEST_F(EngineTest, EventTimeNeverFalls) {
  StartWithStudy();
  ASSERT_TRUE(Execute(*engine_, "s", EnqueueCommand{{{"lr", 0.1}}, "r1"}).ok());
  clock_.SetBackWall(std::chrono::hours(5));
  ASSERT_TRUE(Execute(*engine_, "s", EnqueueCommand{{{"lr", 0.2}}, "r2"}).ok());
  const auto view = Read(*engine_, "s");
  EXPECT_GE(view->study.trials[1]->created, view->study.trials[0]->created);
}

TEST_F(EngineTest, CallsBeyondTheQueueAreRefusedWithTheMend) {
  StartWithStudy({.queue = 5});
  script_->gate.Shut();
  const int before = script_->gate.arrivals();
  // Far more than the committer's lag and the queue can hold while nothing is written.
  std::vector<Awaited<Reply>> replies;
  for (int i = 0; i < 20'000; ++i) {
    replies.push_back(Send(*engine_, "s", SetAttributesCommand{0, {{"i", std::to_string(i)}}, {}}));
  }
  ASSERT_TRUE(script_->gate.Arrived(before + 1));
  script_->gate.Open();
  int refused = 0;
  for (const auto& reply : replies) {
    const auto got = reply.Get();
    if (got.ok()) continue;
    ++refused;
    ASSERT_EQ(got.status().code(), StatusCode::kResourceExhausted) << got.status();
    ASSERT_EQ(DetailOf(got.status()).code, "QUEUE_FULL");
    ASSERT_NE(DetailOf(got.status()).mend, "");
  }
  EXPECT_GT(refused, 10'000);  // 4,096 may lag and 5 may wait, and a batch or two is under way.
  EXPECT_TRUE(Execute(*engine_, "s", SetAttributesCommand{0, {{"i", "last"}}, {}}).ok());
}

// Watching.

class Seen {
 public:
  std::function<void(const StudyChange&)> sink() {
    return [this](const StudyChange& change) {
      const MutexLock lock(mutex_);
      changes_.push_back(change);
    };
  }
  std::vector<StudyChange> changes() {
    const MutexLock lock(mutex_);
    return changes_;
  }
  bool Has(size_t n) {
    return Eventually([&] { return changes().size() >= n; });
  }

 private:
  Mutex mutex_;
  std::vector<StudyChange> changes_ GUARDED_BY(mutex_);
};

TEST_F(Contract14, AWatcherGetsThePresentViewAndThenEveryDurableChangeInOrder) {
  StartWithStudy();
  Seen seen;
  const auto subscription = engine_->Watch("s", seen.sink());
  ASSERT_TRUE(subscription.ok());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Execute(*engine_, "s", EnqueueCommand{{{"lr", 0.1}}, std::to_string(i)}).ok());
  }
  ASSERT_TRUE(seen.Has(6));
  const auto changes = seen.changes();
  EXPECT_TRUE(changes[0].changed.empty());
  EXPECT_EQ(changes[0].view.study.trials.size(), 0u);
  for (size_t i = 1; i < changes.size(); ++i) {
    EXPECT_EQ(changes[i].view.log_position, changes[i - 1].view.log_position + 1);
    EXPECT_EQ(changes[i].changed, (std::vector<TrialId>{static_cast<TrialId>(i)}));
  }
}

TEST_F(Contract14, AWatcherSeesNothingThatIsNotDurable) {
  StartWithStudy();
  Seen seen;
  const auto subscription = engine_->Watch("s", seen.sink());
  ASSERT_TRUE(subscription.ok());
  ASSERT_TRUE(seen.Has(1));
  script_->gate.Shut();
  const int before = script_->gate.arrivals();
  const auto enqueued = Send(*engine_, "s", EnqueueCommand{{{"lr", 0.1}}, "r"});
  ASSERT_TRUE(script_->gate.Arrived(before + 1));
  EXPECT_EQ(seen.changes().size(), 1u);
  script_->gate.Open();
  EXPECT_TRUE(enqueued.Get().ok());
  EXPECT_TRUE(seen.Has(2));
}

TEST_F(Contract14, ADeletedStudySaysSoLast) {
  StartWithStudy();
  Seen seen;
  const auto subscription = engine_->Watch("s", seen.sink());
  ASSERT_TRUE(subscription.ok());
  const Awaited<DoneReply> deleted;
  engine_->Delete("s", deleted.done());
  ASSERT_TRUE(deleted.Get().ok());
  ASSERT_TRUE(Eventually([&] { return seen.changes().back().deleted; }));
  EXPECT_EQ(engine_->Watch("s", seen.sink()).status().code(), StatusCode::kNotFound);
}

TEST_F(Contract14, NoCallAfterASubscriptionEnded) {
  StartWithStudy();
  for (int i = 0; i < 50; ++i) {
    auto alive = std::make_shared<std::atomic<bool>>(true);
    auto subscription = engine_->Watch("s", [alive](const StudyChange&) { EXPECT_TRUE(*alive); });
    ASSERT_TRUE(subscription.ok());
    const auto sent = Send(*engine_, "s", SetAttributesCommand{0, {{"i", "x"}}, {}});
    subscription->reset();
    *alive = false;
    ASSERT_TRUE(sent.Get().ok());
  }
}

TEST_F(EngineTest, TheEngineSleepsWhileTheDiskIsBehind) {
  StartWithStudy();
  StudySpec brief = SpecOf("brief");
  brief.budget.wall_clock = std::chrono::seconds(100);
  ASSERT_TRUE(Create(*engine_, brief, "brief").ok());
  script_->gate.Shut();
  const int before = script_->gate.arrivals();
  std::vector<Awaited<Reply>> replies;
  replies.push_back(Send(*engine_, "s", EnqueueCommand{{{"lr", 0.5}}, "r"}));
  ASSERT_TRUE(script_->gate.Arrived(before + 1));
  for (int i = 0; i < 5000; ++i) {
    replies.push_back(Send(*engine_, "s", SetAttributesCommand{0, {{"i", "x"}}, {}}));
  }
  // It has stopped taking calls: each looks at the clock.
  int64_t looks = 0;
  ASSERT_TRUE(Eventually([&] { return std::exchange(looks, clock_.looks()) == clock_.looks(); }));
  clock_.Advance(std::chrono::seconds(101));  // A tick is due.
  const int64_t then = clock_.looks();
  std::this_thread::sleep_for(milliseconds(50));  // To see that nothing happens.
  EXPECT_LT(clock_.looks() - then, 20);
  script_->gate.Open();
  for (const auto& reply : replies) ASSERT_TRUE(reply.Get().ok());
  EXPECT_TRUE(Eventually([&] { return Read(*engine_, "brief")->state == StudyState::kFinished; }));
}

// The end.

TEST_F(EngineTest, ShutdownAnswersWhatWaitsAndRefusesWhatComes) {
  StartWithStudy();
  script_->gate.Shut();
  std::vector<Awaited<Reply>> replies;
  for (int i = 0; i < 20; ++i) {
    replies.push_back(Send(*engine_, "s", EnqueueCommand{{{"lr", 0.5}}, std::to_string(i)}));
  }
  std::thread shutdown([&] { engine_->Shutdown(milliseconds(30'000)); });
  const bool refused = Eventually([&] {
    const auto late = Send(*engine_, "s", SetAttributesCommand{0, {{"i", "x"}}, {}});
    return late.answered() && DetailOf(late.Get().status()).code == "SHUTTING_DOWN";
  });
  script_->gate.Open();
  shutdown.join();
  EXPECT_TRUE(refused);
  for (const auto& reply : replies) {
    EXPECT_EQ(reply.answers(), 1);
    EXPECT_TRUE(reply.Get().ok());
  }
  const auto again = Read(*engine_, "s");
  EXPECT_EQ(again.status().code(), StatusCode::kUnavailable);
  engine_->Shutdown(milliseconds(0));  // Twice is once.
  Start();
  EXPECT_GE(Read(*engine_, "s")->study.trials.size(), 20u);
}

}  // namespace
}  // namespace jizi::tuner
