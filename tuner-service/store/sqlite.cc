#include "tuner-service/store/sqlite.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <utility>

namespace jizi::tuner {
namespace {

struct Blob {
  const std::string& bytes;
};

Status FromSqlite(const SQLite::Exception& failure, const std::string& path) {
  const std::string what = path + ": " + failure.what();
  switch (failure.getErrorCode() & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return Error(StatusCode::kUnavailable, what,
                   {"STORE_BUSY", path, "another program is writing to the file; try again"});
    case SQLITE_FULL:
      return Error(StatusCode::kUnavailable, what,
                   {"STORE_FULL", path, "make room on the disk, then try again"});
    case SQLITE_NOMEM:
      return Error(StatusCode::kUnavailable, what, {"STORE_NO_MEMORY", path, "try again"});
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
      return Error(StatusCode::kAlreadyExists, what, {"CONSTRAINT", path, "retry one by one"});
    case SQLITE_READONLY:
      if (failure.getExtendedErrorCode() == SQLITE_READONLY_DBMOVED) break;
      return Error(StatusCode::kFailedPrecondition, what,
                   {"STORE_READ_ONLY", path, "make the file and its folder writable"});
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Error(StatusCode::kFailedPrecondition, what,
                   {"STORE_CANNOT_OPEN", path,
                    "check that the path names a file, and that you may read and write it and its "
                    "folder"});
    case SQLITE_NOTADB:
      return Error(StatusCode::kInvalidArgument, what,
                   {"STORE_NOT_A_DATABASE", path, "name a database of Jizi, or a new file"});
    default:
      break;
  }
  return Error(StatusCode::kDataLoss, what,
               {"STORE_LOST", path,
                "check the disk and the file (sqlite3 FILE 'pragma integrity_check'), then start "
                "again"});
}

int KeepWalPages(void* pages, sqlite3*, const char*, int count) {
  *static_cast<int64_t*>(pages) = count;
  return SQLITE_OK;
}

// Every byte of the path by its number: any character may stand in it.
std::string ImmutableUri(const std::string& path) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    // After a slash another one would begin the name of a host.
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       (c == '/' && uri.back() != '/') || c == '.' || c == '-' || c == '_';
    if (plain) {
      uri += c;
    } else {
      uri += {'%', kHex[byte >> 4U], kHex[byte & 0xFU]};
    }
  }
  return uri + "?immutable=1";
}

}  // namespace

Prepared::Prepared(std::unique_ptr<SQLite::Statement> statement, std::string path)
    : statement_(std::move(statement)), path_(std::move(path)) {}
Prepared::Prepared() = default;
Prepared::Prepared(Prepared&&) noexcept = default;
Prepared& Prepared::operator=(Prepared&&) noexcept = default;
Prepared::~Prepared() = default;

template <typename Value>
Prepared& Prepared::TryBind(int index, const Value& value) {
  try {
    if constexpr (std::is_same_v<Value, Blob>) {
      statement_->bind(index, value.bytes.data(), static_cast<int>(value.bytes.size()));
    } else if constexpr (std::is_same_v<Value, std::nullptr_t>) {
      statement_->bind(index);
    } else {
      statement_->bind(index, value);
    }
  } catch (const SQLite::Exception& failure) {
    bind_error_ = FromSqlite(failure, path_);
  }
  return *this;
}

Prepared& Prepared::Bind(int index, int64_t value) {
  return TryBind(index, value);
}
Prepared& Prepared::Bind(int index, double value) {
  return TryBind(index, value);
}
Prepared& Prepared::Bind(int index, const std::string& text) {
  return TryBind(index, text);
}
Prepared& Prepared::Bind(int index, const char* text) {
  return TryBind(index, text);
}
Prepared& Prepared::BindBlob(int index, const std::string& bytes) {
  return TryBind(index, Blob{bytes});
}
Prepared& Prepared::BindNull(int index) {
  return TryBind(index, nullptr);
}

StatusOr<bool> Prepared::Step() {
  if (!bind_error_.ok()) return std::exchange(bind_error_, absl::OkStatus());
  try {
    return statement_->executeStep();
  } catch (const SQLite::Exception& failure) {
    return FromSqlite(failure, path_);
  }
}

Status Prepared::Run() {
  const StatusOr<bool> stepped = Step();
  Reset();
  return stepped.status();
}

void Prepared::Reset() {
  statement_->tryReset();
}

int64_t Prepared::Int(int column) const {
  return statement_->getColumn(column).getInt64();
}
double Prepared::Double(int column) const {
  return statement_->getColumn(column).getDouble();
}
bool Prepared::IsNull(int column) const {
  return statement_->getColumn(column).isNull();
}
std::string Prepared::Text(int column) const {
  std::string text;
  Text(column, text);
  return text;
}
void Prepared::Text(int column, std::string& into) const {
  const SQLite::Column cell = statement_->getColumn(column);
  const void* bytes = cell.getBlob();  // Before getBytes: it may convert.
  into.assign(static_cast<const char*>(bytes == nullptr ? "" : bytes),
              bytes == nullptr ? 0 : static_cast<size_t>(cell.getBytes()));
}

Connection::Connection() = default;
Connection::~Connection() = default;

StatusOr<std::unique_ptr<Connection>> Connection::Open(const Options& options) {
  std::unique_ptr<Connection> connection(new Connection);
  connection->path_ = options.path;
  const bool read_only = options.access != Access::kReadWrite;
  const bool immutable = options.access == Access::kImmutable;
  const int flags = immutable   ? SQLite::OPEN_READONLY | SQLite::OPEN_URI
                    : read_only ? SQLite::OPEN_READONLY
                                : SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE;
  try {
    connection->database_ =
        std::make_unique<SQLite::Database>(immutable ? ImmutableUri(options.path) : options.path,
                                           flags, options.busy_timeout_ms, options.vfs);
    sqlite3* handle = connection->database_->getHandle();
    sqlite3_extended_result_codes(handle, 1);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    if (read_only) {
      sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    } else {
      // Takes the place of SQLite's own checkpoints, too: it has one hook.
      sqlite3_wal_hook(handle, KeepWalPages, &connection->wal_pages_);
    }
  } catch (const SQLite::Exception& failure) {
    return FromSqlite(failure, options.path);
  }
  TRY(connection->Run("PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;"));
  return connection;
}

Status Connection::Run(const std::string& script) {
  try {
    database_->exec(script);
    return absl::OkStatus();
  } catch (const SQLite::Exception& failure) {
    return FromSqlite(failure, path_);
  }
}

StatusOr<Prepared> Connection::Prepare(const char* sql) {
  try {
    return Prepared(std::make_unique<SQLite::Statement>(*database_, sql), path_);
  } catch (const SQLite::Exception& failure) {
    return FromSqlite(failure, path_);
  }
}

StatusOr<int64_t> Connection::Query(const char* sql) {
  Prepared statement = TRY(Prepare(sql));
  if (!TRY(statement.Step())) return 0;
  return statement.Int(0);
}

Status Connection::Begin() {
  return Run("BEGIN IMMEDIATE");
}

Status Connection::Commit() {
  const Status status = Run("COMMIT");
  if (!status.ok()) Rollback();
  return status;
}

void Connection::Rollback() {
  if (sqlite3_get_autocommit(database_->getHandle()) == 0) database_->tryExec("ROLLBACK");
}

bool Connection::read_only() const {
  return sqlite3_db_readonly(database_->getHandle(), "main") == 1;
}

int64_t Connection::changes() const {
  return sqlite3_changes(database_->getHandle());
}

Status Connection::Checkpoint() {
  int log_pages = 0;
  int copied_pages = 0;
  // Passive: never waits for a reader. What a reader still needs stays for the next time.
  const int code = sqlite3_wal_checkpoint_v2(database_->getHandle(), nullptr,
                                             SQLITE_CHECKPOINT_PASSIVE, &log_pages, &copied_pages);
  if (code == SQLITE_OK) {
    // All copied: the next writer starts the log from its beginning.
    if (log_pages == copied_pages) wal_pages_ = 0;
    return absl::OkStatus();
  }
  return FromSqlite(SQLite::Exception(database_->getHandle(), code), path_);
}

}  // namespace jizi::tuner
