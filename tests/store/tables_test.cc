// The tables that people query say what the state says, and follow from the log alone.

#include <gtest/gtest.h>

#include <set>

#include "tests/core/machine.h"
#include "tests/store/history.h"
#include "tuner-service/store/purge.h"
#include "tuner-service/store/store.h"

namespace jizi::tuner {
namespace {

using testing::EditFile;
using testing::OpenOrFail;
using testing::RichHistory;
using testing::Rows;
using testing::StateAfter;

class TablesTest : public ::testing::Test {
 protected:
  TablesTest() : history_(RichHistory(1, "rich")), state_(StateAfter(history_)) {
    EXPECT_TRUE(OpenOrFail(path_)->Append(history_).ok());
  }
  std::vector<std::string> Query(const std::string& sql) { return Rows(path_, sql); }
  std::vector<std::string> DumpDerived() {
    std::vector<std::string> all;
    for (const char* table :
         {"studies", "trials", "params", "attempts", "checkpoints", "attributes", "measurements"}) {
      all.push_back(table);
      for (std::string& row :
           Query(std::string("SELECT * FROM ") + table + " ORDER BY 1, 2, 3, 4")) {
        all.push_back(std::move(row));
      }
    }
    return all;
  }

  testing::TemporaryFolder folder_;
  const std::string path_ = folder_.File("studies.db");
  const std::vector<LogRecord> history_;
  const StudyData state_;
};

TEST_F(TablesTest, TheHistoryHasEveryEvent) {
  std::set<size_t> seen;
  for (const LogRecord& record : history_) {
    for (const Event& event : record.events) seen.insert(event.index());
  }
  // All but StudyDeleted.
  EXPECT_EQ(seen.size(), std::variant_size_v<Event> - 1);
}

TEST_F(TablesTest, TrialsAgreeWithTheState) {
  const char* const kStates[] = {"Queued",  "Running",    "Paused", "Completed",
                                 "Stopped", "Infeasible", "Failed"};
  const std::vector<std::string> rows =
      Query("SELECT trial, state, coalesce(objective, 'none') FROM trials ORDER BY trial");
  ASSERT_EQ(rows.size(), state_.study.trials.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const Trial& trial = *state_.study.trials[i];
    const std::string expected =
        std::to_string(trial.id) + "|" + kStates[static_cast<int>(trial.state)] + "|";
    EXPECT_EQ(rows[i].substr(0, expected.size()), expected);
    EXPECT_EQ(rows[i] == expected + "none", !trial.objective.has_value());
  }
  for (const auto& cow : state_.study.trials) {
    const std::string id = std::to_string(cow->id);
    EXPECT_EQ(Query("SELECT count(*) FROM params WHERE trial = " + id)[0],
              std::to_string(cow->params.size()));
    EXPECT_EQ(Query("SELECT count(*) FROM attempts WHERE trial = " + id)[0],
              std::to_string(cow->attempts.size()));
    EXPECT_EQ(Query("SELECT count(*) FROM attributes WHERE trial = " + id)[0],
              std::to_string(cow->attributes.size()));
    EXPECT_EQ(Query("SELECT count(*) FROM checkpoints WHERE trial = " + id)[0],
              std::to_string(cow->checkpoints.size()));
  }
}

// docs/contracts.md, 7: what a later attempt or a roll-back gave up is kept and no longer counts.
TEST_F(TablesTest, Contract7CountingMeasurementsAreThoseOfTheState) {
  for (const auto& trial : state_.study.trials) {
    std::vector<std::string> expected;
    for (const Measurement& measurement : trial->measurements) {
      for (size_t i = 0; i < measurement.metrics.size(); ++i) {
        expected.push_back(std::to_string(measurement.attempt) + "|" +
                           std::to_string(measurement.rollback) + "|" +
                           std::to_string(measurement.step) + "|" + measurement.metrics[i].name);
      }
    }
    EXPECT_EQ(Query("SELECT attempt, rollback, step, metric FROM measurements WHERE counts = 1 "
                    "AND trial = " +
                    std::to_string(trial->id) + " ORDER BY position, item"),
              expected);
  }
  EXPECT_NE(Query("SELECT count(*) FROM measurements WHERE counts = 0")[0], "0");
}

TEST_F(TablesTest, StudiesAgreeWithTheState) {
  EXPECT_EQ(Query("SELECT name, state, metric, goal, run_cap, wall_clock_s, seed FROM studies")[0],
            "rich|Active|loss|minimize|60|3600.5|18446744073709551615");
  EXPECT_EQ(Query("SELECT name, value FROM attributes WHERE trial = 0")[0], "owner|me");
}

// docs/contracts.md, 6.
TEST_F(TablesTest, Contract6AKindStandsBesideEveryValue) {
  EXPECT_EQ(
      Query("SELECT metric, kind, value IS NULL FROM measurements WHERE trial = 1 AND step = 1 "
            "ORDER BY item"),
      (std::vector<std::string>{"loss|finite|0", "accuracy|nan|1", "up|+inf|0", "down|-inf|0",
                                "zero|finite|0"}));
}

// docs/contracts.md, 5: drops the derived tables, opens, compares.
TEST_F(TablesTest, Contract5DroppedTablesAreRebuiltFromTheLog) {
  const std::vector<std::string> before = DumpDerived();
  EditFile(path_,
           "DROP TABLE studies; DROP TABLE trials; DROP TABLE params; DROP TABLE attempts; "
           "DROP TABLE checkpoints; DROP TABLE attributes; UPDATE measurements SET counts = 1;");
  EXPECT_TRUE(SameDurableState(OpenOrFail(path_)->Load(1).value(), state_));
  EXPECT_EQ(DumpDerived(), before);
  // One is enough.
  EditFile(path_, "DROP TABLE params; UPDATE trials SET state = 'Nonsense';");
  OpenOrFail(path_);
  EXPECT_EQ(DumpDerived(), before);
}

// docs/contracts.md, 3: one damaged study keeps neither the file nor the others from opening.
TEST_F(TablesTest, Contract3ARebuildGoesPastADamagedStudyAndStillListsIt) {
  for (const char* damaged : {"5", "1"}) {
    SCOPED_TRACE(damaged);
    const testing::TemporaryFolder folder;
    const std::string path = folder.File("studies.db");
    const std::vector<LogRecord> other = testing::PlainHistory(2, "other", 3, 2);
    {
      const std::unique_ptr<Store> store = OpenOrFail(path);
      ASSERT_TRUE(store->Append(history_).ok());
      ASSERT_TRUE(store->Append(other).ok());
    }
    EditFile(path, std::string("UPDATE log SET payload = x'00' WHERE study = 1 AND position = ") +
                       damaged + "; DROP TABLE studies; DROP TABLE trials;");
    const std::unique_ptr<Store> store = OpenOrFail(path);
    EXPECT_TRUE(SameDurableState(store->Load(2).value(), StateAfter(other)));
    const auto names = store->List().value();
    ASSERT_EQ(names.size(), 2u);
    EXPECT_EQ(names[0].id, 1);
    EXPECT_EQ(names[0].name, std::string(damaged) == "1" ? "damaged study 1" : "rich");
    EXPECT_EQ(testing::CodeOf(store->Load(1).status()), "LOG_DAMAGED");
    EXPECT_EQ(Rows(path, "SELECT count(*) FROM trials WHERE study = 2")[0], "3");
  }
}

// A batched report is one record of up to a million measurements.
TEST_F(TablesTest, ASliceOfWhatADeletedStudyLeftIsBoundedByRowsAndNotByRecords) {
  testing::TemporaryFolder folder;
  const std::string path = folder.File("studies.db");
  {
    const std::unique_ptr<Store> store = OpenOrFail(path);
    std::vector<LogRecord> history = testing::PlainHistory(1, "batched", 1, 1);
    for (LogRecord& record : history) {
      for (Event& event : record.events) {
        auto* reported = std::get_if<MeasurementsReported>(&event);
        if (reported == nullptr || reported->measurements.empty()) continue;
        std::vector<Metric>& metrics = reported->measurements[0].metrics;
        for (int i = 0; i < 4500; ++i) metrics.push_back({"m" + std::to_string(i), 0.5});
      }
    }
    history.push_back(testing::Deletion(history));
    ASSERT_TRUE(store->Append(history).ok());
  }
  const auto connection = *Connection::Open({path, Access::kReadWrite, 5000, ""});
  const char* const left = "SELECT count(*) FROM measurements";
  int64_t before = connection->Query(left).value();
  EXPECT_GT(before, 4500);
  int slices = 0;
  for (; PurgeSlice(*connection).value(); ++slices) {
    const int64_t now = connection->Query(left).value();
    EXPECT_LE(before - now, kPurgeRows);
    before = now;
  }
  EXPECT_EQ(before, 0);
  EXPECT_EQ(slices, 6);  // Five with rows, and one that finds none.
  EXPECT_EQ(connection->Query("SELECT purged FROM deleted").value(), 1);
}

TEST_F(TablesTest, ADeletedStudyLeavesItsTablesBitByBit) {
  const std::unique_ptr<Store> store = OpenOrFail(path_);
  const LogRecord deletion = testing::Deletion(history_);
  ASSERT_TRUE(store->Append({&deletion, 1}).ok());
  EXPECT_TRUE(Query("SELECT * FROM studies").empty());
  EXPECT_FALSE(Query("SELECT * FROM trials").empty());
  const std::string left = "SELECT count(*) FROM deleted WHERE purged = 0";
  for (int i = 0; i < 1000 && Query(left)[0] != "0"; ++i) EXPECT_TRUE(store->Idle().ok());
  for (const char* table :
       {"log", "measurements", "trials", "params", "attempts", "checkpoints", "attributes"}) {
    EXPECT_EQ(Query(std::string("SELECT count(*) FROM ") + table)[0], "0") << table;
  }
  EXPECT_EQ(Query("SELECT study, purged FROM deleted")[0], "1|1");
  EXPECT_TRUE(store->Idle().ok());
  EXPECT_FALSE(store->MoreToDo());
}

// Whoever calls Idle while MoreToDo says so ends with nothing left, without a write in between.
TEST_F(TablesTest, IdleSaysWhetherADeletedStudyHasLeftMore) {
  const std::unique_ptr<Store> store = OpenOrFail(path_);
  EXPECT_FALSE(store->MoreToDo());
  std::vector<LogRecord> large = testing::PlainHistory(2, "large", 1000, 100);
  ASSERT_TRUE(store->Append(large).ok());
  const LogRecord deletion = testing::Deletion(large);
  ASSERT_TRUE(store->Append({&deletion, 1}).ok());
  EXPECT_TRUE(store->Idle().ok());
  EXPECT_TRUE(store->MoreToDo());  // A slice of 50 ms does not hold 100,000 reports.
  for (int i = 0; i < 10'000 && store->MoreToDo(); ++i) EXPECT_TRUE(store->Idle().ok());
  EXPECT_EQ(Query("SELECT count(*) FROM log WHERE study = 2")[0], "0");
  EXPECT_EQ(Query("SELECT purged FROM deleted WHERE study = 2")[0], "1");
}

}  // namespace
}  // namespace jizi::tuner
