// Numbered migrations, and every released version's file.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/core/machine.h"
#include "tests/store/history.h"
#include "tuner-service/store/schema.h"

namespace jizi::tuner {
namespace {

using testing::CodeOf;
using testing::Rows;

std::unique_ptr<Connection> Connect(const std::string& path) {
  auto connection = Connection::Open({path, Access::kReadWrite, 1000, ""});
  EXPECT_TRUE(connection.ok()) << connection.status();
  return *std::move(connection);
}

StatusOr<Derived> MigrateAll(Connection& connection, std::span<const Migration> migrations) {
  TRY(connection.Begin());
  const StatusOr<Derived> derived = Migrate(connection, "file", migrations);
  if (derived.ok()) {
    TRY(connection.Commit());
  } else {
    connection.Rollback();
  }
  return derived;
}

TEST(MigrationTest, EachStepRunsOnceAndThenTheTablesAreRebuilt) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.File("studies.db");
  const Migration steps[] = {Migrations()[0], {"ALTER TABLE log ADD COLUMN added TEXT"}};
  {
    const auto connection = Connect(path);
    EXPECT_EQ(MigrateAll(*connection, std::span(steps).first(1)).value(), Derived::kMustRebuild);
    EXPECT_EQ(MigrateAll(*connection, std::span(steps).first(1)).value(), Derived::kComplete);
    EXPECT_EQ(MigrateAll(*connection, steps).value(), Derived::kMustRebuild);
    EXPECT_EQ(MigrateAll(*connection, steps).value(), Derived::kComplete);
    EXPECT_EQ(CodeOf(MigrateAll(*connection, std::span(steps).first(1)).status()), "STORE_NEWER");
    EXPECT_TRUE(CheckFileForReading(*connection, path, 2).ok());
    EXPECT_EQ(CodeOf(CheckFileForReading(*connection, path, 3)), "STORE_OLDER");
  }
  EXPECT_EQ(Rows(path, "PRAGMA user_version"), std::vector<std::string>{"2"});
  EXPECT_EQ(Rows(path, "SELECT count(added) FROM log"), std::vector<std::string>{"0"});
}

TEST(MigrationTest, AStepThatFailsChangesNothing) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.File("studies.db");
  const Migration steps[] = {Migrations()[0],
                             {"CREATE TABLE extra (a); INSERT INTO nowhere VALUES (1)"}};
  {
    const auto connection = Connect(path);
    EXPECT_TRUE(MigrateAll(*connection, std::span(steps).first(1)).ok());
    EXPECT_FALSE(MigrateAll(*connection, steps).ok());
  }
  EXPECT_EQ(Rows(path, "PRAGMA user_version"), std::vector<std::string>{"1"});
  EXPECT_EQ(Rows(path, "SELECT count(*) FROM sqlite_master WHERE name = 'extra'")[0], "0");
}

// tests/store/data holds a file of each version; store_fixture writes that of the present one.
TEST(MigrationTest, Contract5EveryVersionsFileOpens) {
  const char* source = std::getenv("JIZI_SOURCE_DIR");
  const std::filesystem::path data =
      std::filesystem::path(source == nullptr ? "." : source) / "tests/store/data";
  int opened = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data)) {
    if (entry.path().extension() != ".db") continue;
    SCOPED_TRACE(entry.path());
    const testing::TemporaryFolder folder;
    const std::string path = folder.File("studies.db");
    std::filesystem::copy_file(entry.path(), path);
    const std::unique_ptr<Store> store = testing::OpenOrFail(path);
    const auto studies = store->List();
    ASSERT_TRUE(studies.ok());
    ASSERT_EQ(studies->size(), 1u);
    const StatusOr<StudyData> loaded = store->Load((*studies)[0].id);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ((*studies)[0].name, "fixture");
    EXPECT_EQ(loaded->study.trials.size(), 5u);
    EXPECT_EQ(loaded->study.Find(1)->state, TrialState::kCompleted);
    EXPECT_EQ(loaded->study.Find(1)->objective, 0.0625);
    EXPECT_EQ(loaded->study.Find(1)->measurements.size(), 4u);
    EXPECT_EQ(Rows(path, "SELECT count(*) FROM params")[0], "5");
    ++opened;
  }
  EXPECT_EQ(opened, static_cast<int>(Migrations().size()));
}

}  // namespace
}  // namespace jizi::tuner
