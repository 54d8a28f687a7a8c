#pragma once
// tables.h - writes records: the log, the measurements, and what follows from them for the tables
// that people query. Everything is told by the events alone, so the tables can be rebuilt from the
// log. Fails: sqlite.h's; AlreadyExists for a key that is there. Threads: as the connection. Cost:
// a report is two rows (log, measurements) and one index entry for each metric.

#include <memory>
#include <utility>

#include "base/status.h"
#include "tuner-service/store/record.h"
#include "tuner-service/store/sqlite.h"

namespace jizi::tuner {

class Tables {
 public:
  // The schema must be there. The connection must outlive this.
  static StatusOr<std::unique_ptr<Tables>> Create(Connection& connection);
  ~Tables();

  // In the caller's transaction.
  Status Write(const LogRecord& record);

  // In the caller's transaction: derives every table but the log's own anew. Of a study whose log
  // is damaged, what comes before the damage: it is still listed (without a readable beginning
  // under a name that says so), and whoever loads it hears of the damage.
  Status Rebuild();

 private:
  struct Statements;
  struct Deriver;
  Tables(Connection& connection, std::unique_ptr<Statements> statements);
  Status Derive(const LogRecord& record);
  Status Rebuild(StudyId study, RecordDecoder& decoder);
  Status NameDamaged(StudyId study);

  Connection& connection_;
  std::unique_ptr<Statements> statements_;
};

// Reads a study's log from its beginning and its measurements beside it, in one pass over each.
class LogReader {
 public:
  static StatusOr<LogReader> Open(Connection& connection, StudyId study);
  // False after the last record.
  StatusOr<bool> Next(EncodedRecord& record);

 private:
  LogReader(Prepared log, Prepared rows) : log_(std::move(log)), rows_(std::move(rows)) {}
  Status ReadRows(EncodedRecord& record);

  Prepared log_;
  Prepared rows_;
  StudyId study_ = 0;
  bool row_waits_ = false;  // rows_ stands on a row that is not read yet.
};

}  // namespace jizi::tuner
