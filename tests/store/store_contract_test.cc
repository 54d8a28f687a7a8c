// What store.h promises, for every store.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "tests/core/machine.h"
#include "tests/store/history.h"
#include "tuner-service/store/store.h"

namespace jizi::tuner {
namespace {

using testing::CodeOf;
using testing::Deletion;
using testing::PlainHistory;
using testing::RichHistory;
using testing::StateAfter;

enum class Kind { kMemory, kSqlite };

class StoreContract : public ::testing::TestWithParam<Kind> {
 protected:
  StoreContract() { Reopen(); }
  // A store that forgets nothing: the file opened again, or the memory kept.
  void Reopen() {
    if (GetParam() == Kind::kMemory) {
      if (store_ == nullptr) store_ = MakeMemoryStore();
      return;
    }
    store_.reset();
    store_ = testing::OpenOrFail(folder_.File("studies.db"));
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const auto list = store_->List();
    EXPECT_TRUE(list.ok()) << list.status();
    for (const StudyName& study : *list) {
      names.push_back(std::to_string(study.id) + " " + study.name);
    }
    return names;
  }
  void ExpectState(StudyId study, const StudyData& expected) {
    const StatusOr<StudyData> loaded = store_->Load(study);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_TRUE(SameDurableState(*loaded, expected));
    EXPECT_EQ(loaded->log_position, expected.log_position);
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

TEST_P(StoreContract, AnEmptyStoreHasNothing) {
  EXPECT_TRUE(Names().empty());
  EXPECT_EQ(store_->LastId().value(), 0);
  EXPECT_EQ(store_->Load(1).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(store_->Append({}).ok());
}

TEST_P(StoreContract, LoadIsTheReplayOfWhatWasAppended) {
  const std::vector<LogRecord> history = RichHistory(1, "a study, \"quoted\" ünïcode");
  ASSERT_TRUE(store_->Append(history).ok());
  ExpectState(1, StateAfter(history));
  Reopen();
  ExpectState(1, StateAfter(history));
  EXPECT_EQ(Names(), std::vector<std::string>{"1 a study, \"quoted\" ünïcode"});
}

TEST_P(StoreContract, StudiesInOneGroupAndAcrossGroupsStayApart) {
  const std::vector<LogRecord> a = RichHistory(1, "a");
  const std::vector<LogRecord> b = PlainHistory(7, "b", 3, 2);
  std::vector<LogRecord> mixed;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size()) mixed.push_back(a[i]);
    if (i < b.size()) mixed.push_back(b[i]);
  }
  const size_t middle = mixed.size() / 2;
  ASSERT_TRUE(store_->Append(std::span(mixed).first(middle)).ok());
  Reopen();
  ASSERT_TRUE(store_->Append(std::span(mixed).subspan(middle)).ok());
  Reopen();
  ExpectState(1, StateAfter(a));
  ExpectState(7, StateAfter(b));
  EXPECT_EQ(Names(), (std::vector<std::string>{"1 a", "7 b"}));
  EXPECT_EQ(store_->LastId().value(), 7);
}

TEST_P(StoreContract, AGroupThatClashesLeavesNothingBehind) {
  const std::vector<LogRecord> a = PlainHistory(1, "a", 1, 1);
  const std::vector<LogRecord> b = PlainHistory(2, "b", 1, 1);
  ASSERT_TRUE(store_->Append(a).ok());
  std::vector<LogRecord> group = b;
  group.push_back(a.back());  // A second time.
  const Status clash = store_->Append(group);
  EXPECT_EQ(clash.code(), StatusCode::kAlreadyExists) << clash;
  EXPECT_EQ(CodeOf(clash), "CONSTRAINT");
  EXPECT_EQ(Names(), std::vector<std::string>{"1 a"});
  EXPECT_EQ(store_->Load(2).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(store_->Append(b).ok());  // One by one, what is right goes through.
  ExpectState(2, StateAfter(b));
}

TEST_P(StoreContract, ARecordMustFollowTheLastOfItsStudy) {
  const std::vector<LogRecord> a = PlainHistory(1, "a", 2, 1);
  EXPECT_EQ(CodeOf(store_->Append(std::span(a).subspan(1, 1))), "CONSTRAINT");
  ASSERT_TRUE(store_->Append(std::span(a).first(2)).ok());
  EXPECT_EQ(CodeOf(store_->Append(std::span(a).subspan(3, 1))), "CONSTRAINT");
  ASSERT_TRUE(store_->Append(std::span(a).subspan(2)).ok());
}

TEST_P(StoreContract, ANameIsTakenUntilItsStudyIsDeleted) {
  const std::vector<LogRecord> first = PlainHistory(1, "name", 1, 1);
  const std::vector<LogRecord> second = PlainHistory(2, "name", 2, 1);
  ASSERT_TRUE(store_->Append(first).ok());
  EXPECT_EQ(CodeOf(store_->Append(second)), "CONSTRAINT");
  std::vector<LogRecord> group = {Deletion(first)};
  group.insert(group.end(), second.begin(), second.end());
  ASSERT_TRUE(store_->Append(group).ok());
  EXPECT_EQ(Names(), std::vector<std::string>{"2 name"});
  const std::vector<LogRecord> third = PlainHistory(3, "name", 1, 1);
  EXPECT_EQ(CodeOf(store_->Append(third)), "CONSTRAINT");
}

TEST_P(StoreContract, ADeletedStudyIsGoneAndItsIdIsNotGivenAgain) {
  const std::vector<LogRecord> a = PlainHistory(1, "a", 1, 1);
  std::vector<LogRecord> b = RichHistory(2, "b");
  ASSERT_TRUE(store_->Append(a).ok());
  ASSERT_TRUE(store_->Append(b).ok());
  b.push_back(Deletion(b));
  ASSERT_TRUE(store_->Append(std::span(b).last(1)).ok());
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(Names(), std::vector<std::string>{"1 a"});
    EXPECT_EQ(store_->LastId().value(), 2);
    EXPECT_EQ(store_->Load(2).status().code(), StatusCode::kNotFound);
    const LogRecord late = Deletion(b);
    EXPECT_EQ(CodeOf(store_->Append({&late, 1})), "CONSTRAINT");
    EXPECT_TRUE(store_->Idle().ok());  // Removes what it left.
    Reopen();
  }
  ExpectState(1, StateAfter(a));
}

TEST_P(StoreContract, AMeasurementIsStoredOnce) {
  std::vector<LogRecord> a = PlainHistory(1, "a", 1, 3);
  ASSERT_TRUE(store_->Append(a).ok());
  LogRecord again = a[a.size() - 2];  // The last report.
  again.position = a.back().position + 1;
  EXPECT_EQ(CodeOf(store_->Append({&again, 1})), "CONSTRAINT");
  ExpectState(1, StateAfter(a));
}

// docs/contracts.md, 6.
TEST_P(StoreContract, Contract6NanAndInfinitiesComeBackAsTheyWere) {
  const std::vector<LogRecord> history = RichHistory(1, "a");
  ASSERT_TRUE(store_->Append(history).ok());
  Reopen();
  const StatusOr<StudyData> loaded = store_->Load(1);
  ASSERT_TRUE(loaded.ok());
  const Measurement& measured = loaded->study.Find(1)->measurements[0];
  EXPECT_TRUE(std::isnan(*Find(measured, "accuracy")));
  EXPECT_EQ(*Find(measured, "up"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(*Find(measured, "down"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(measured.gradient, (GradientStatistics{1, 2, 32, 256}));
  EXPECT_EQ(*Find(loaded->study.Find(1)->measurements[1], "loss"), 1e-300);
}

TEST_P(StoreContract, LoadAndListRunBesideAppend) {
  const std::vector<LogRecord> a = PlainHistory(1, "a", 20, 5);
  ASSERT_TRUE(store_->Append(std::span(a).first(1)).ok());
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      const StatusOr<StudyData> loaded = store_->Load(1);
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      const auto records = static_cast<size_t>(loaded->log_position);
      EXPECT_TRUE(SameDurableState(*loaded, StateAfter(a, records)));
      EXPECT_TRUE(store_->List().ok());
    }
  });
  for (size_t i = 1; i < a.size(); ++i)
    ASSERT_TRUE(store_->Append(std::span(a).subspan(i, 1)).ok());
  done = true;
  reader.join();
  ExpectState(1, StateAfter(a));
}

INSTANTIATE_TEST_SUITE_P(EveryStore, StoreContract, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& made) {
                           return made.param == Kind::kMemory ? "Memory" : "Sqlite";
                         });

}  // namespace
}  // namespace jizi::tuner
