#pragma once
// store.h - where studies are kept: a log of records per study, and nothing that cannot be rebuilt
// from it. Fails: Unavailable (busy, full: nothing was written, try again), FailedPrecondition
// (newer version, read-only), InvalidArgument (not a database of ours), AlreadyExists CONSTRAINT
// (one command of the group clashes: retry them one by one), DataLoss (I/O error, failed sync,
// corruption: stop using the store; contract 3).
// Threads: Append from one thread at a time (the committer); Load and List from any.

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tuner-service/core/core.h"

namespace jizi::tuner {

struct StudyName {
  StudyId id = 0;
  std::string name;
};

class Store {
 public:
  virtual ~Store() = default;

  // All studies that are not deleted, by id.
  virtual StatusOr<std::vector<StudyName>> List() = 0;

  // The largest id ever given, deleted studies included; 0 if none.
  virtual StatusOr<StudyId> LastId() = 0;

  // The state after the last record: the log replayed. Fails: NotFound.
  virtual StatusOr<StudyData> Load(StudyId study) = 0;

  // Makes all records durable, in order, or none.
  virtual Status Append(std::span<const LogRecord> records) = 0;

  // Called by the committer after each Append, once its answers have left: what would have kept
  // their callers waiting. Not OK (DataLoss): stop using the store.
  virtual Status AfterAnswers() { return {}; }

  // Called by the committer when nothing waits: checkpoint the write-ahead log, and the like. Cheap
  // when there is nothing to do. Not OK (DataLoss): stop using the store.
  virtual Status Idle() { return {}; }

  // Did the last Idle leave work for another one? It then stopped only so that a commit need not
  // wait for it.
  virtual bool MoreToDo() const { return false; }
};

std::unique_ptr<Store> MakeMemoryStore();

struct SqliteOptions {
  std::string path;
  std::chrono::milliseconds busy_timeout{5000};
  std::string vfs;  // Empty: SQLite's own. Tests name one that fails.
  bool read_only = false;
};
StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteOptions& options);

// What OpenSqliteStore would refuse at first sight, judged without making or changing anything: a
// missing folder, a file that is no database of ours or of a newer version, one that may not be
// read, and, to write, one that may not be written, or whose folder may not. What only a real
// opening shows (a lock, damage) is left to it.
enum class Opening { kToRead, kToWrite };
Status JudgeDatabase(const std::string& path, Opening opening);

}  // namespace jizi::tuner
