#include "tuner-service/engine/committer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/engine/engine_testing.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;

// Remembers what was appended; says what it was told to say.
class ListStore final : public Store {
 public:
  StatusOr<std::vector<StudyName>> List() override { return std::vector<StudyName>(); }
  StatusOr<StudyId> LastId() override { return 0; }
  StatusOr<StudyData> Load(StudyId) override { return absl::NotFoundError(""); }
  Status Append(std::span<const LogRecord> records) override {
    gate.Pass();
    const MutexLock lock(mutex);
    sizes.push_back(records.size());
    if (judge) TRY(judge(records));
    for (const LogRecord& record : records) written.emplace_back(record.study, record.position);
    return {};
  }
  Status Idle() override {
    idle.Pass();
    const MutexLock lock(mutex);
    return own_work;
  }
  Status AfterAnswers() override {
    after.Pass();
    const MutexLock lock(mutex);
    return own_work;
  }
  bool MoreToDo() const override { return --idles_left > 0; }

  std::vector<std::pair<StudyId, int64_t>> Written() {
    const MutexLock lock(mutex);
    return written;
  }

  Gate gate;
  Gate idle;
  Gate after;
  mutable std::atomic<int> idles_left{1};
  Mutex mutex;
  std::function<Status(std::span<const LogRecord>)> judge GUARDED_BY(mutex);
  Status own_work GUARDED_BY(mutex);  // What Idle and AfterAnswers say.
  std::vector<size_t> sizes GUARDED_BY(mutex);
  std::vector<std::pair<StudyId, int64_t>> written GUARDED_BY(mutex);
};

class CommitterTest : public testing::Test {
 protected:
  void Start(milliseconds retry = milliseconds(0), size_t lag = 100,
             size_t lag_bytes = size_t{1} << 30) {
    committer_ = std::make_unique<Committer>(
        store_, Committer::Options{.retry = retry,
                                   .lag = lag,
                                   .lag_bytes = lag_bytes,
                                   .wake_engine = [this] { woken_.Pass(); },
                                   .on_fatal = [this](const Status&) { fatal_.Pass(); }});
  }
  CommitItem Item(StudyId study, std::optional<int64_t> position, const std::string& name) {
    CommitItem item;
    item.study = study;
    if (position) item.record = LogRecord{study, *position, {}, {}};
    item.answer = [this, name](const Status& durable) {
      const MutexLock lock(mutex_);
      answers_.push_back(name + (durable.ok() ? " ok" : " " + DetailOf(durable).code));
    };
    return item;
  }
  template <typename... Items>
  void Push(Items... items) {
    std::vector<CommitItem> list;
    (list.push_back(std::move(items)), ...);
    committer_->Push(std::move(list));
  }
  std::vector<std::string> Answers() {
    const MutexLock lock(mutex_);
    return answers_;
  }
  bool HasAnswers(size_t n) {
    return Eventually([&] { return Answers().size() >= n; });
  }
  void Judge(std::function<Status(std::span<const LogRecord>)> judge) {
    const MutexLock lock(store_.mutex);
    store_.judge = std::move(judge);
  }

  ListStore store_;
  Gate woken_;
  Gate fatal_;
  Mutex mutex_;
  std::vector<std::string> answers_ GUARDED_BY(mutex_);
  std::unique_ptr<Committer> committer_;
};

TEST_F(CommitterTest, WhatWaitsIsOneGroupAndAnswersComeInOrderAfterIt) {
  Start();
  store_.gate.Shut();
  Push(Item(1, 1, "a"));
  ASSERT_TRUE(store_.gate.Arrived(1));
  Push(Item(1, 2, "b"), Item(1, std::nullopt, "read"));
  Push(Item(2, 1, "c"));
  EXPECT_TRUE(Answers().empty());
  store_.gate.Open();
  ASSERT_TRUE(HasAnswers(4));
  EXPECT_EQ(Answers(), (std::vector<std::string>{"a ok", "b ok", "read ok", "c ok"}));
  const MutexLock lock(store_.mutex);
  EXPECT_EQ(store_.sizes, (std::vector<size_t>{1, 2}));
}

TEST_F(CommitterTest, AnAnswerWithoutARecordWritesNothing) {
  Start();
  Push(Item(1, std::nullopt, "read"));
  ASSERT_TRUE(HasAnswers(1));
  EXPECT_EQ(store_.gate.arrivals(), 0);
}

TEST_F(CommitterTest, BusyIsTriedAgainAndNothingIsLost) {
  Start(milliseconds(20'000));
  int times = 0;
  Judge([&times](auto) { return ++times < 4 ? Busy() : Status(); });
  Push(Item(1, 1, "a"));
  ASSERT_TRUE(HasAnswers(1));
  EXPECT_EQ(Answers().front(), "a ok");
  EXPECT_FALSE(committer_->TakeLoss());
}

TEST_F(CommitterTest, BusyForTooLongIsALoss) {
  Start(milliseconds(20));
  Judge([](auto) { return Busy(); });
  Push(Item(1, 1, "a"));
  ASSERT_TRUE(woken_.Arrived(1));
  EXPECT_EQ(committer_->TakeLoss()->studies, (std::set<StudyId>{1}));
  EXPECT_TRUE(Answers().empty());  // Not before the study is loaded again.
  committer_->Resume();
  ASSERT_TRUE(HasAnswers(1));
  EXPECT_EQ(Answers().front(), "a STORE_BUSY");
}

TEST_F(CommitterTest, FullLosesEveryRecordAndWhatStandsOnIt) {
  Start();
  Judge([](auto) { return Full(); });
  store_.gate.Shut();
  Push(Item(1, 1, "a"));
  ASSERT_TRUE(store_.gate.Arrived(1));
  Push(Item(1, std::nullopt, "read 1"), Item(2, std::nullopt, "read 2"), Item(3, 1, "c"),
       Item(kAllStudies, std::nullopt, "list"));
  store_.gate.Open();
  ASSERT_TRUE(woken_.Arrived(1));
  EXPECT_EQ(store_.gate.arrivals(), 1);  // It rests.
  const auto loss = committer_->TakeLoss();
  ASSERT_TRUE(loss.has_value());
  EXPECT_EQ(loss->studies, (std::set<StudyId>{1, 3}));
  EXPECT_EQ(DetailOf(loss->why).code, "STORE_FULL");
  EXPECT_FALSE(committer_->TakeLoss());
  Judge(nullptr);
  Push(Item(1, 1, "again"));
  committer_->Resume();
  ASSERT_TRUE(HasAnswers(6));
  EXPECT_EQ(Answers(), (std::vector<std::string>{"a STORE_FULL", "read 1 STORE_FULL", "read 2 ok",
                                                 "c STORE_FULL", "list STORE_FULL", "again ok"}));
}

TEST_F(CommitterTest, FullLosesNoReadThatStandsBeforeTheFirstLostRecord) {
  Start();
  Judge([](auto) { return Full(); });
  store_.gate.Shut();
  Push(Item(9, 1, "first"));
  ASSERT_TRUE(store_.gate.Arrived(1));
  store_.gate.Open();
  ASSERT_TRUE(woken_.Arrived(1));
  ASSERT_TRUE(committer_->TakeLoss().has_value());
  // It rests: these are one group.
  Push(Item(kAllStudies, std::nullopt, "list"), Item(1, std::nullopt, "before"), Item(1, 1, "a"),
       Item(1, std::nullopt, "after"), Item(kAllStudies, std::nullopt, "list after"));
  committer_->Resume();
  ASSERT_TRUE(woken_.Arrived(2));
  EXPECT_EQ(committer_->TakeLoss()->studies, (std::set<StudyId>{1}));
  committer_->Resume();
  ASSERT_TRUE(HasAnswers(6));
  EXPECT_EQ(Answers(),
            (std::vector<std::string>{"first STORE_FULL", "list ok", "before ok", "a STORE_FULL",
                                      "after STORE_FULL", "list after STORE_FULL"}));
}

TEST_F(CommitterTest, AConstraintIsFoundOneByOneAndOnlyItsStudyIsLost) {
  Start();
  Judge([](std::span<const LogRecord> records) {
    for (const LogRecord& record : records) {
      if (record.study == 2) return Constraint();
    }
    return Status();
  });
  store_.gate.Shut();
  Push(Item(9, 1, "first"));
  ASSERT_TRUE(store_.gate.Arrived(1));
  Push(Item(1, 1, "a"), Item(2, 1, "b"), Item(3, 1, "c"), Item(2, 2, "d"),
       Item(2, std::nullopt, "read"));
  store_.gate.Open();
  ASSERT_TRUE(woken_.Arrived(1));
  EXPECT_EQ(committer_->TakeLoss()->studies, (std::set<StudyId>{2}));
  committer_->Resume();
  ASSERT_TRUE(HasAnswers(6));
  EXPECT_EQ(Answers(), (std::vector<std::string>{"first ok", "a ok", "b CONSTRAINT", "c ok",
                                                 "d STORE_FAILED", "read STORE_FAILED"}));
  EXPECT_EQ(store_.Written(), (std::vector<std::pair<StudyId, int64_t>>{{9, 1}, {1, 1}, {3, 1}}));
}

TEST_F(CommitterTest, DataLossIsSaidOnceAndAnswersEverythingWithUnavailable) {
  Start();
  Judge([](auto) { return Broken(); });
  Push(Item(1, 1, "a"));
  ASSERT_TRUE(HasAnswers(1));
  EXPECT_FALSE(committer_->healthy());
  Push(Item(1, 2, "b"), Item(2, std::nullopt, "read"));
  ASSERT_TRUE(HasAnswers(3));
  EXPECT_EQ(Answers(),
            (std::vector<std::string>{"a STORE_LOST", "b STORE_LOST", "read STORE_LOST"}));
  EXPECT_EQ(fatal_.arrivals(), 1);
  EXPECT_EQ(store_.gate.arrivals(), 1);  // Not tried again.
}

TEST_F(CommitterTest, Contract3ALossInTheStoresOwnWorkIsSaidWithoutAWaitingCall) {
  for (Gate* own : {&store_.idle, &store_.after}) {
    const int before = fatal_.arrivals();
    const int works = own->arrivals();
    own->Shut();
    Start();
    Push(Item(1, 1, "a"));
    ASSERT_TRUE(own->Arrived(works + 1));
    {
      const MutexLock lock(store_.mutex);
      store_.own_work = Broken();
    }
    own->Open();
    ASSERT_TRUE(fatal_.Arrived(before + 1));
    EXPECT_FALSE(committer_->healthy());
    committer_.reset();
    EXPECT_EQ(fatal_.arrivals(), before + 1);
    const MutexLock lock(store_.mutex);
    store_.own_work = {};
  }
}

TEST_F(CommitterTest, TheStoresOwnWorkKeepsNoCallerOfItsGroupWaiting) {
  Start();
  store_.after.Shut();
  Push(Item(1, 1, "a"));
  ASSERT_TRUE(store_.after.Arrived(1));  // The store is at its work ...
  EXPECT_EQ(Answers(), (std::vector<std::string>{"a ok"}));
  store_.after.Open();
}

TEST_F(CommitterTest, LagsAboveItsBoundAndWakesTheEngineBelowIt) {
  Start(milliseconds(0), 2);
  store_.gate.Shut();
  Push(Item(1, 1, "a"));
  ASSERT_TRUE(store_.gate.Arrived(1));
  EXPECT_FALSE(committer_->lagging());
  Push(Item(1, 2, "b"), Item(1, 3, "c"));
  EXPECT_TRUE(committer_->lagging());
  store_.gate.Open();
  ASSERT_TRUE(woken_.Arrived(1));
  EXPECT_FALSE(committer_->lagging());
}

TEST_F(CommitterTest, LagsAboveItsBytesTooAndWakesTheEngineBelowThem) {
  Start(milliseconds(0), 100, 100'000);
  store_.gate.Shut();
  Push(Item(1, 1, "a"));
  ASSERT_TRUE(store_.gate.Arrived(1));
  CommitItem large = Item(1, 2, "b");
  large.record->events.push_back(AttributesSet{0, {{"a", std::string(100'000, 'x')}}, {}});
  EXPECT_FALSE(committer_->lagging());
  Push(std::move(large));
  EXPECT_TRUE(committer_->lagging());
  store_.gate.Open();
  ASSERT_TRUE(woken_.Arrived(1));
  EXPECT_FALSE(committer_->lagging());
}

TEST_F(CommitterTest, StopWritesWhatWaitsAndEndsARest) {
  Start();
  store_.gate.Shut();
  int times = 0;
  Judge([&times](auto) { return ++times == 2 ? Full() : Status(); });
  Push(Item(1, 1, "a"));
  ASSERT_TRUE(store_.gate.Arrived(1));
  Push(Item(1, 2, "b"));
  store_.gate.Open();
  ASSERT_TRUE(woken_.Arrived(1));  // It rests, and no engine comes.
  Push(Item(1, 3, "c"), Item(2, std::nullopt, "read"));
  committer_->Stop();
  EXPECT_EQ(Answers(),
            (std::vector<std::string>{"a ok", "b STORE_FULL", "c STORE_FULL", "read ok"}));
}

TEST_F(CommitterTest, CallsIdleOnceWhenNothingWaits) {
  Start();
  Push(Item(1, 1, "a"));
  ASSERT_TRUE(store_.idle.Arrived(1));
  EXPECT_EQ(Answers().size(), 1u);
  std::this_thread::sleep_for(milliseconds(500));  // To see that nothing happens.
  EXPECT_EQ(store_.idle.arrivals(), 1);
}

TEST_F(CommitterTest, CallsIdleUntilTheStoreHasNothingMoreToDo) {
  store_.idles_left = 3;
  Start();
  Push(Item(1, 1, "a"));
  EXPECT_TRUE(store_.idle.Arrived(3));
}

}  // namespace
}  // namespace jizi::tuner
