// What becomes of files that are locked, read-only, damaged, of a newer version, or no database of
// ours.

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>

#include "tests/core/machine.h"
#include "tests/store/history.h"
#include "tuner-service/store/sqlite_store.h"

namespace jizi::tuner {
namespace {

using testing::CodeOf;
using testing::EditFile;
using testing::OpenOrFail;
using testing::PlainHistory;
using testing::StateAfter;

class FileTest : public ::testing::Test {
 protected:
  StatusOr<std::unique_ptr<Store>> Open(bool read_only = false) {
    SqliteOptions options;
    options.path = path_;
    options.busy_timeout = std::chrono::milliseconds(20);
    options.read_only = read_only;
    return OpenSqliteStore(options);
  }
  // The refusal of an open that has to fail; its mend must say something.
  Status Refusal(bool read_only = false) {
    const Status status = Open(read_only).status();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(DetailOf(status).mend, "");
    EXPECT_NE(std::string(status.message()).find(path_.substr(0, 5)), std::string::npos) << status;
    return status;
  }
  void Fill() { ASSERT_TRUE(OpenOrFail(path_)->Append(history_).ok()); }

  testing::TemporaryFolder folder_;
  std::string path_ = folder_.File("studies.db");
  const std::vector<LogRecord> history_ = PlainHistory(1, "a", 20, 5);
};

TEST_F(FileTest, AFileOfTextIsNotADatabase) {
  testing::WriteFile(path_, std::string(10'000, 'x'));
  EXPECT_EQ(CodeOf(Refusal()), "STORE_NOT_A_DATABASE");
  EXPECT_EQ(Refusal(true).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(testing::ReadFile(path_), std::string(10'000, 'x'));
}

TEST_F(FileTest, AnotherProgramsDatabaseIsLeftAlone) {
  EditFile(path_, "CREATE TABLE theirs (a)");
  const std::string before = testing::ReadFile(path_);
  EXPECT_EQ(CodeOf(Refusal()), "STORE_NOT_OURS");
  EXPECT_EQ(testing::ReadFile(path_), before);
}

TEST_F(FileTest, ANewerVersionIsRefusedWithItsMend) {
  Fill();
  EditFile(path_, "PRAGMA user_version = 99");
  const Status status = Refusal();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf(status), "STORE_NEWER");
  EXPECT_EQ(CodeOf(Refusal(true)), "STORE_NEWER");
}

// What stands in the folder, by name.
std::set<std::string> NamesIn(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

TEST_F(FileTest, JudgingSaysWhatOpeningWouldAndLeavesNothingBehind) {
  const auto judged = [&](const std::string& name, Opening opening = Opening::kToWrite) {
    return CodeOf(JudgeDatabase(folder_.File(name), opening));
  };
  testing::WriteFile(folder_.File("text.db"), std::string(10'000, 'x'));
  EditFile(folder_.File("theirs.db"), "CREATE TABLE theirs (a)");
  Fill();
  const std::string odd = folder_.File("50% of #1?.db");
  ASSERT_TRUE(OpenOrFail(odd)->Append(history_).ok());
  EditFile(odd, "PRAGMA user_version = 99");
  for (const char* file : {"studies.db", "50% of #1?.db"}) {
    for (const char* suffix : {"-wal", "-shm"})
      std::filesystem::remove(folder_.File(file) + suffix);
  }
  const std::set<std::string> before = NamesIn(folder_.path());
  for (const Opening opening : {Opening::kToRead, Opening::kToWrite}) {
    EXPECT_EQ(judged("text.db", opening), "STORE_NOT_A_DATABASE");
    EXPECT_EQ(judged("theirs.db", opening), "STORE_NOT_OURS");
    EXPECT_EQ(judged("50% of #1?.db", opening), "STORE_NEWER");
    EXPECT_EQ(judged("studies.db", opening), "");
    EXPECT_EQ(judged("no/such.db", opening), "STORE_NO_FOLDER");
  }
  EXPECT_EQ(judged("new.db"), "");
  EXPECT_EQ(judged("new.db", Opening::kToRead), "STORE_MISSING");
  EXPECT_EQ(NamesIn(folder_.path()), before);
}

TEST_F(FileTest, MissingFoldersAndFilesAndFoldersAreNamed) {
  EXPECT_EQ(CodeOf(Refusal(true)), "STORE_MISSING");
  EXPECT_FALSE(std::filesystem::exists(path_));
  path_ = folder_.path();
  EXPECT_EQ(CodeOf(Refusal()), "STORE_CANNOT_OPEN");
  path_ = folder_.File("no/such/studies.db");
  EXPECT_EQ(CodeOf(Refusal()), "STORE_NO_FOLDER");
  path_ = "";
  EXPECT_EQ(Open().status().code(), StatusCode::kInvalidArgument);
}

TEST_F(FileTest, ALockedFileIsUnavailableAndGoesOnAfterwards) {
  const std::unique_ptr<Store> store = *Open();
  ASSERT_TRUE(store->Append(std::span(history_).first(1)).ok());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const Status busy = store->Append(std::span(history_).subspan(1));
  EXPECT_EQ(busy.code(), StatusCode::kUnavailable);
  EXPECT_EQ(CodeOf(busy), "STORE_BUSY");
  EXPECT_EQ(CodeOf(Refusal()), "STORE_BUSY");
  EXPECT_TRUE(store->Load(1).ok());  // Readers do not mind.
  sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  EXPECT_TRUE(store->Append(std::span(history_).subspan(1)).ok());
}

TEST_F(FileTest, AReadOnlyStoreReadsBesideTheOwnerAndRefusesToWrite) {
  const std::unique_ptr<Store> owner = *Open();
  ASSERT_TRUE(owner->Append(history_).ok());
  const std::unique_ptr<Store> reader = *Open(true);
  EXPECT_TRUE(SameDurableState(reader->Load(1).value(), StateAfter(history_)));
  EXPECT_EQ(reader->List().value().size(), 1u);
  const LogRecord more = testing::Deletion(history_);
  EXPECT_EQ(CodeOf(reader->Append({&more, 1})), "STORE_READ_ONLY");
  EXPECT_TRUE(reader->Idle().ok());
}

// docs/contracts.md, 4: a reader does not checkpoint, also not as the last to close.
TEST_F(FileTest, Contract4AReaderLeavesTheWriteAheadLogAlone) {
  {
    const std::unique_ptr<Store> owner = *Open();
    ASSERT_TRUE(owner->Append(history_).ok());
    // As a crash leaves it: the log is not in the file yet.
    std::filesystem::copy(path_, folder_.File("crashed.db"));
    std::filesystem::copy(path_ + "-wal", folder_.File("crashed.db-wal"));
  }
  path_ = folder_.File("crashed.db");
  const std::string before = testing::ReadFile(path_);
  const std::string log = testing::ReadFile(path_ + "-wal");
  EXPECT_GT(log.size(), 1000u);
  EXPECT_TRUE(SameDurableState((*Open(true))->Load(1).value(), StateAfter(history_)));
  EXPECT_EQ(testing::ReadFile(path_), before);
  EXPECT_EQ(testing::ReadFile(path_ + "-wal"), log);
}

TEST_F(FileTest, Contract4ALongLogIsCheckpointedAndAnEndlessReaderStopsWrites) {
  SqliteOptions options;
  options.path = path_;
  const WalLimits limits{20'000, 200'000};
  const std::unique_ptr<Store> store = *OpenSqliteStore(options, limits);
  const std::vector<LogRecord> history = PlainHistory(1, "a", 60, 5);
  size_t next = 0;
  for (; next < history.size() / 2; ++next) {
    ASSERT_TRUE(store->Append({&history[next], 1}).ok());
    ASSERT_TRUE(store->AfterAnswers().ok());
  }
  EXPECT_LT(std::filesystem::file_size(path_ + "-wal"), 100'000u);
  sqlite3* reader = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &reader), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM log", nullptr, nullptr, nullptr),
            SQLITE_OK);
  Status status;
  for (; next < history.size() && status.ok(); ++next) {
    status = store->Append({&history[next], 1});
    ASSERT_TRUE(store->AfterAnswers().ok());
  }
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(CodeOf(status), "STORE_WAL_LIMIT") << status;
  sqlite3_exec(reader, "COMMIT", nullptr, nullptr, nullptr);
  for (--next; next < history.size(); ++next) {
    const Status again = store->Append({&history[next], 1});
    ASSERT_TRUE(again.ok()) << again;
  }
  sqlite3_close(reader);
  EXPECT_TRUE(SameDurableState(store->Load(1).value(), StateAfter(history)));
}

// docs/contracts.md, 24.
TEST_F(FileTest, Contract24TheFileAndItsCompanionsAreTheOwnersAlone) {
  const std::unique_ptr<Store> store = *Open();
  ASSERT_TRUE(store->Append(history_).ok());
  for (const char* suffix : {"", "-wal", "-shm"}) {
    struct stat status{};
    ASSERT_EQ(stat((path_ + suffix).c_str(), &status), 0) << suffix;
    EXPECT_EQ(status.st_mode & 0777, 0600u) << suffix;
  }
}

TEST_F(FileTest, AnEditedLogIsNoticed) {
  Fill();
  const std::string clean = testing::ReadFile(path_);
  for (const char* edit :
       {"UPDATE measurements SET value = value + 1 WHERE position = 7",
        "DELETE FROM measurements WHERE position = 7", "DELETE FROM log WHERE position = 7",
        "UPDATE log SET payload = x'00' WHERE position = 7",
        "UPDATE log SET time_us = time_us + 1 WHERE position = 7",
        "UPDATE measurements SET kind = 'strange' WHERE position = 7",
        "UPDATE measurements SET item = 5 WHERE position = 7",
        "DELETE FROM log WHERE position = (SELECT max(position) FROM measurements)"}) {
    testing::WriteFile(path_, clean);
    EditFile(path_, edit);
    const Status status = OpenOrFail(path_)->Load(1).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << edit << ": " << status;
    EXPECT_NE(DetailOf(status).mend, "") << edit;
  }
}

TEST_F(FileTest, DamageAtRandomBytesIsNeverACrash) {
  Fill();
  const std::string clean = testing::ReadFile(path_);
  const StudyData expected = StateAfter(history_);
  int noticed = 0;
  for (const uint64_t seed : testing::Seeds(1, 60)) {
    SCOPED_TRACE(::testing::Message() << "JIZI_TEST_SEED=" << seed);
    std::mt19937_64 random(seed);
    std::string damaged = clean;
    for (uint64_t i = 0; i < 1 + random() % 40; ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) damaged.resize(random() % damaged.size());
    std::filesystem::remove(path_ + "-wal");
    std::filesystem::remove(path_ + "-shm");
    testing::WriteFile(path_, damaged);
    StatusOr<std::unique_ptr<Store>> store = Open();
    if (!store.ok()) {
      ++noticed;
      continue;
    }
    const StatusOr<StudyData> loaded = (*store)->Load(1);
    if (loaded.ok()) {
      // What loads is a beginning of the truth.
      const auto records = static_cast<size_t>(loaded->log_position);
      ASSERT_LE(records, history_.size());
      EXPECT_TRUE(SameDurableState(*loaded, StateAfter(history_, records)));
    } else {
      ++noticed;
    }
    (*store)->List().status().IgnoreError();
    const LogRecord more = testing::Deletion(history_);
    (*store)->Append({&more, 1}).IgnoreError();
    (*store)->Idle().IgnoreError();
  }
  EXPECT_TRUE(noticed > 10 || std::getenv("JIZI_TEST_SEED") != nullptr);
}

// Without shared memory SQLite would stay with its old journal, and the limits of the log would
// never apply.
TEST_F(FileTest, Contract4AFileSystemWithoutAWriteAheadLogIsRefused) {
  SqliteOptions options;
  options.path = path_;
  options.vfs = "unix-none";
  const auto store = OpenSqliteStore(options);
  EXPECT_EQ(store.status().code(), StatusCode::kFailedPrecondition) << store.status();
  EXPECT_EQ(testing::CodeOf(store.status()), "STORE_CANNOT_OPEN");
}

}  // namespace
}  // namespace jizi::tuner
