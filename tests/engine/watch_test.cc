#include "tuner-service/engine/watch.h"

#include <gtest/gtest.h>

namespace jizi::tuner {
namespace {

StudyChange ChangeAt(int64_t position) {
  StudyChange change;
  change.view.log_position = position;
  return change;
}

TEST(WatchListTest, DeliversThePresentAndThenEveryChange) {
  WatchList list;
  std::vector<int64_t> seen;
  const auto watcher = std::make_shared<Watcher>(
      [&](const StudyChange& change) { seen.push_back(change.view.log_position); });
  EXPECT_FALSE(list.watched());
  list.Expect();
  EXPECT_TRUE(list.watched());
  list.Add(watcher, ChangeAt(3));
  list.Deliver(ChangeAt(4));
  list.Deliver(ChangeAt(5));
  EXPECT_EQ(seen, (std::vector<int64_t>{3, 4, 5}));
}

TEST(WatchListTest, ASubscriptionThatEndedHearsNothingAndIsForgotten) {
  WatchList list;
  int calls = 0;
  auto watcher = std::make_shared<Watcher>([&](const StudyChange&) { ++calls; });
  auto subscription = MakeSubscription(watcher);
  list.Expect();
  list.Add(watcher, ChangeAt(1));
  subscription.reset();
  list.Deliver(ChangeAt(2));
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(list.watched());
}

TEST(WatchListTest, WatchersThatComeAndGoOnAQuietStudyAreForgotten) {
  WatchList list;
  for (int i = 0; i < 100; ++i) {
    auto watcher = std::make_shared<Watcher>([](const StudyChange&) {});
    const auto subscription = MakeSubscription(watcher);
    list.Expect();
    list.Add(std::move(watcher), ChangeAt(1));
    EXPECT_LE(list.size(), 1u);
  }
  list.Deliver(ChangeAt(2));
  EXPECT_FALSE(list.watched());
}

TEST(WatchListTest, AnEndBeforeTheFirstViewIsNoError) {
  WatchList list;
  auto watcher = std::make_shared<Watcher>([](const StudyChange&) { FAIL(); });
  list.Expect();
  MakeSubscription(watcher).reset();
  list.Add(watcher, ChangeAt(1));
  EXPECT_FALSE(list.watched());
}

TEST(ChangedTrialsTest, NamesEachTrialOnceAndNoneForTheStudy) {
  CallAnswered answered;
  answered.trial = 9;  // A recorded answer changes nothing that is seen.
  const std::vector<Event> events = {TrialTold{4, Stop{}}, AttemptReclaimed{2, 1},
                                     AttributesSet{0, {}, {}}, AttributesSet{4, {}, {}}, answered};
  EXPECT_EQ(ChangedTrials(events), (std::vector<TrialId>{2, 4}));
  EXPECT_TRUE(ChangedTrials({StudyDeleted{}}).empty());
}

}  // namespace
}  // namespace jizi::tuner
