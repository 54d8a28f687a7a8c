#pragma once
// sqlite.h - SQLite connections and statements without exceptions: the one place that calls
// SQLiteCpp (sqlite.cc). Fails: every error is what SQLite says, mapped once:
//   Unavailable STORE_BUSY        another connection holds the lock: try again
//   Unavailable STORE_FULL        no room on the disk: the transaction is undone
//   AlreadyExists CONSTRAINT      a key clashes: the transaction should be rolled back
//   FailedPrecondition            STORE_READ_ONLY, STORE_CANNOT_OPEN
//   InvalidArgument STORE_NOT_A_DATABASE
//   DataLoss STORE_LOST           I/O error, failed sync, corruption, a file that was moved away,
//   anything else
// Threads: a connection and its statements by one thread at a time.   Cost: that of SQLite.

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace SQLite {
class Database;
class Statement;
}  // namespace SQLite

namespace jizi::tuner {

enum class Access {
  kReadOnly,
  kImmutable,  // Read-only, of the file alone: no lock, no write-ahead log, nothing is made beside
               // it. For a file that nobody writes meanwhile, or whose header alone is asked for.
  kReadWrite,
};

class Connection;

// A prepared statement. Bind from 1, Step until false, then Reset; columns from 0.
class Prepared {
 public:
  Prepared();
  Prepared(Prepared&&) noexcept;
  Prepared& operator=(Prepared&&) noexcept;
  ~Prepared();

  Prepared& Bind(int index, int64_t value);
  Prepared& Bind(int index, int value) { return Bind(index, static_cast<int64_t>(value)); }
  Prepared& Bind(int index, double value);  // NaN becomes NULL.
  Prepared& Bind(int index, const std::string& text);
  Prepared& Bind(int index, const char* text);
  Prepared& BindBlob(int index, const std::string& bytes);
  Prepared& BindNull(int index);
  template <typename Optional>
  Prepared& BindIf(int index, const Optional& value) {
    return value ? Bind(index, *value) : BindNull(index);
  }

  StatusOr<bool> Step();  // True: a row is there.
  Status Run();  // For a statement without rows: step once and reset. Errors of Bind come out here
                 // or in Step.
  void Reset();

  int64_t Int(int column) const;
  double Double(int column) const;
  std::string Text(int column) const;
  void Text(int column, std::string& into) const;  // Keeps the memory of `into`.
  bool IsNull(int column) const;

 private:
  friend class Connection;
  Prepared(std::unique_ptr<SQLite::Statement> statement, std::string path);
  template <typename Value>
  Prepared& TryBind(int index, const Value& value);

  std::unique_ptr<SQLite::Statement> statement_;
  Status bind_error_;
  std::string path_;
};

class Connection {
 public:
  struct Options {
    std::string path;
    Access access = Access::kReadOnly;
    int busy_timeout_ms = 5000;
    std::string vfs;
  };
  // A read-only connection never checkpoints, also not when it is the last to close
  // (docs/contracts.md, 4).
  static StatusOr<std::unique_ptr<Connection>> Open(const Options& options);
  ~Connection();

  Status Run(const std::string& script);  // Statements of ours, never built from input.
  StatusOr<Prepared> Prepare(const char* sql);
  StatusOr<int64_t> Query(const char* sql);  // The first column of the first row.

  Status Begin();   // Takes the write lock at once.
  Status Commit();  // Undone if it fails.
  void Rollback();  // Harmless when SQLite has rolled back already.

  // SQLite opens a file that it may not write all the same, and only reads.
  bool read_only() const;

  int64_t changes() const;  // Rows that the last statement changed.

  // The write-ahead log: its size after the last commit of this connection, and copying it into the
  // file as far as readers let it.
  int64_t wal_bytes() const { return wal_pages_ * page_bytes_; }
  Status Checkpoint();

 private:
  Connection();

  std::string path_;
  std::unique_ptr<SQLite::Database> database_;
  int64_t wal_pages_ = 0;  // Written by SQLite's hook.
  int64_t page_bytes_ = 4096;
};

}  // namespace jizi::tuner
