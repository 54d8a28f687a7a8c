// One connection writes and checkpoints; every List and Load opens a read-only one of its own, so
// that they run beside it.

#include "tuner-service/store/sqlite_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tuner-service/store/log_tails.h"
#include "tuner-service/store/purge.h"
#include "tuner-service/store/record.h"
#include "tuner-service/store/schema.h"
#include "tuner-service/store/sqlite.h"
#include "tuner-service/store/tables.h"

namespace jizi::tuner {
namespace {

constexpr std::chrono::milliseconds kPurgeSlice{
    50};  // Of one Idle: a commit may be waiting after it.

// The file is made here and not by SQLite, for the permissions: SQLite gives its companions (-wal,
// -shm) the same.
Status MakeFile(const std::string& path) {
  const int descriptor = open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor >= 0) {
    close(descriptor);
    return absl::OkStatus();
  }
  // Never open and close a file that is there: closing would drop the locks that SQLite holds on it
  // in this process.
  if (errno == EEXIST) return absl::OkStatus();
  return Error(StatusCode::kFailedPrecondition,
               path + " cannot be created: " + std::strerror(errno),
               {"STORE_CANNOT_OPEN", path, "name a file in a folder that you may write to"});
}

Status CheckPath(const SqliteOptions& options) {
  const std::string& path = options.path;
  std::error_code ignored;
  if (path.empty() || path[0] == ':' || path.find('\0') != std::string::npos) {
    return Error(StatusCode::kInvalidArgument, "a database needs the name of a file",
                 {"STORE_CANNOT_OPEN", path, "say --db FILE"});
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) {
    return Error(StatusCode::kNotFound, "the folder " + folder.string() + " does not exist",
                 {"STORE_NO_FOLDER", path, "create it: mkdir -p " + folder.string()});
  }
  if (std::filesystem::is_directory(path, ignored)) {
    return Error(StatusCode::kFailedPrecondition, path + " is a folder",
                 {"STORE_CANNOT_OPEN", path, "name a file"});
  }
  if (options.read_only && !std::filesystem::exists(path, ignored)) {
    return Error(StatusCode::kNotFound, "there is no file " + path,
                 {"STORE_MISSING", path, "check the name"});
  }
  return absl::OkStatus();
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Status ReadOnlyFile(const std::string& path, const std::string& why) {
  return Error(StatusCode::kFailedPrecondition, path + " cannot be written: " + why,
               {"STORE_READ_ONLY", path,
                "make the file and its folder writable for you, or copy the file to where you may "
                "write"});
}

// By what the kernel says now: also of an immutable file and of a read-only mount.
Status CheckWritable(const std::string& path) {
  const std::string folder = FolderOf(path);
  if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return ReadOnlyFile(path, "its folder: " + std::string(std::strerror(errno)));
  }
  if (faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0 && errno != ENOENT) {
    return ReadOnlyFile(path, std::strerror(errno));
  }
  return absl::OkStatus();
}

// SQLite needs -wal and -shm beside the file, and makes them where they are missing.
bool NeedsImmutable(const Status& status, const std::string& path) {
  const std::string code = DetailOf(status).code;
  return (code == "STORE_CANNOT_OPEN" || code == "STORE_READ_ONLY") &&
         faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) == 0 &&
         faccessat(AT_FDCWD, FolderOf(path).c_str(), W_OK, AT_EACCESS) != 0;
}

class SqliteStore : public Store {
 public:
  SqliteStore(SqliteOptions options, WalLimits limits)
      : options_(std::move(options)), limits_(limits) {}

  Status Open() {
    TRY(CheckPath(options_));
    if (options_.read_only) {
      TRY(Read());
      return absl::OkStatus();
    }
    TRY(MakeFile(options_.path));
    writer_ = TRY(Connection::Open(OptionsFor(Access::kReadWrite)));
    TRY(CheckFile(*writer_, options_.path, Newest()));  // Before anything is changed.
    if (writer_->read_only()) return ReadOnlyFile(options_.path, "it is read-only");
    TRY(TurnWalOn());
    TRY(
        writer_->Run("PRAGMA synchronous = FULL; PRAGMA cache_size = -16384; "
                     "PRAGMA journal_size_limit = 33554432;"));
    TRY(writer_->Begin());
    const Status prepared = Prepare();
    if (!prepared.ok()) {
      tables_.reset();
      writer_->Rollback();
      return prepared;
    }
    TRY(writer_->Commit());
    return writer_->Checkpoint();  // A crash may have left a long log.
  }

  StatusOr<std::vector<StudyName>> List() override {
    const std::unique_ptr<Connection> connection = TRY(Read());
    Prepared rows = TRY(connection->Prepare("SELECT study, name FROM studies ORDER BY study"));
    std::vector<StudyName> names;
    while (TRY(rows.Step())) names.push_back({rows.Int(0), rows.Text(1)});
    return names;
  }

  StatusOr<StudyId> LastId() override {
    const std::unique_ptr<Connection> connection = TRY(Read());
    return connection->Query(
        "SELECT max(coalesce((SELECT max(study) FROM log), 0), "
        "coalesce((SELECT max(study) FROM deleted), 0))");
  }

  StatusOr<StudyData> Load(StudyId study) override {
    const std::unique_ptr<Connection> connection = TRY(Read());
    TRY(connection->Run("BEGIN"));  // The log and its measurements of one moment.
    Prepared gone = TRY(connection->Prepare("SELECT 1 FROM deleted WHERE study = ?"));
    if (TRY(gone.Bind(1, study).Step())) return NoSuchStudy(study);
    LogReader reader = TRY(LogReader::Open(*connection, study));
    EncodedRecord record;
    Replay replay;
    while (TRY(reader.Next(record))) TRY(replay.Add(record));
    if (replay.state().log_position == 0) return NoSuchStudy(study);
    return std::move(replay.state());
  }

  Status Append(std::span<const LogRecord> records) override {
    if (options_.read_only) {
      return Error(StatusCode::kFailedPrecondition, options_.path + " was opened read-only",
                   {"STORE_READ_ONLY", options_.path, "ask the process that owns the file"});
    }
    if (!lost_.ok()) return lost_;
    TRY(CheckWal());
    LogTails::Tails changed = TRY(tails_.Check(records));
    const Status written = Write(records);
    if (!written.ok()) return Judge(written);
    tails_.Keep(std::move(changed));
    return absl::OkStatus();
  }

  Status AfterAnswers() override {
    if (!options_.read_only && lost_.ok()) CheckpointIfLong();
    return lost_;
  }

  Status Idle() override {
    if (options_.read_only || !lost_.ok()) return lost_;
    const auto until = std::chrono::steady_clock::now() + kPurgeSlice;
    StatusOr<bool> more = true;
    while (more.ok() && *more && std::chrono::steady_clock::now() < until) {
      more = PurgeSlice(*writer_);
    }
    more_to_do_ = more.ok() && *more;  // After an error the next write's Idle tries again.
    if (!more.ok()) {
      writer_->Rollback();
      Judge(more.status()).IgnoreError();
    }
    if (lost_.ok() && writer_->wal_bytes() > 0) Checkpoint();
    return lost_;
  }

  bool MoreToDo() const override { return more_to_do_; }

 private:
  static int64_t Newest() { return static_cast<int64_t>(Migrations().size()); }

  Connection::Options OptionsFor(Access access) const {
    return {options_.path, access, static_cast<int>(options_.busy_timeout.count()), options_.vfs};
  }

  StatusOr<std::unique_ptr<Connection>> Read() const {
    auto connection = OpenToRead(Access::kReadOnly);
    if (connection.ok() || !options_.read_only ||
        !NeedsImmutable(connection.status(), options_.path)) {
      return connection;
    }
    // An archive: a folder or a mount where nothing can be made.
    std::error_code missing;
    const std::string wal = options_.path + "-wal";
    const auto bytes = std::filesystem::file_size(wal, missing);
    if (!missing && bytes > 0) {
      return Error(StatusCode::kFailedPrecondition,
                   options_.path +
                       " was not closed properly, and its folder is read-only: the "
                       "last changes are in " +
                       wal,
                   {"STORE_CANNOT_OPEN", options_.path,
                    "copy both files to a folder that you may write to, and read them there"});
    }
    return OpenToRead(Access::kImmutable);
  }

  StatusOr<std::unique_ptr<Connection>> OpenToRead(Access access) const {
    std::unique_ptr<Connection> connection = TRY(Connection::Open(OptionsFor(access)));
    TRY(CheckFileForReading(*connection, options_.path, Newest()));
    return connection;
  }

  // Where the file system has no shared memory SQLite keeps its old journal without a word.
  Status TurnWalOn() {
    Prepared mode = TRY(writer_->Prepare("PRAGMA journal_mode = WAL"));
    if (TRY(mode.Step()) && mode.Text(0) == "wal") return absl::OkStatus();
    return Error(StatusCode::kFailedPrecondition,
                 options_.path + " is on a file system that cannot share a write-ahead log",
                 {"STORE_CANNOT_OPEN", options_.path, "put the file on a local disk"});
  }

  // In the transaction of Open.
  Status Prepare() {
    const Derived derived = TRY(Migrate(*writer_, options_.path, Migrations()));
    tables_ = TRY(Tables::Create(*writer_));
    if (derived == Derived::kMustRebuild) TRY(tables_->Rebuild());
    Prepared studies = TRY(writer_->Prepare(
        "SELECT study, name, (SELECT max(position) FROM log WHERE log.study = studies.study) "
        "FROM studies"));
    LogTails::Tails tails;
    while (TRY(studies.Step())) tails[studies.Int(0)] = {studies.Int(2), studies.Text(1), false};
    Prepared gone = TRY(writer_->Prepare("SELECT study FROM deleted"));
    while (TRY(gone.Step())) tails[gone.Int(0)] = {0, "", true};
    tails_.Keep(std::move(tails));
    return absl::OkStatus();
  }

  Status Write(std::span<const LogRecord> records) {
    TRY(writer_->Begin());
    for (const LogRecord& record : records) {
      const Status status = tables_->Write(record);
      if (status.ok()) continue;
      writer_->Rollback();
      return status;
    }
    return writer_->Commit();
  }

  // What the caller may go on from is passed on; after anything else the store must not be used:
  // what a failed sync left on the disk is unknown.
  Status Judge(const Status& status) {
    if (absl::IsUnavailable(status) || absl::IsAlreadyExists(status)) return status;
    // Nothing was written, and a file that was made read-only may be made writable again.
    if (DetailOf(status).code == "STORE_READ_ONLY") {
      return Error(StatusCode::kUnavailable, std::string(status.message()), DetailOf(status));
    }
    lost_ = absl::IsDataLoss(status)
                ? status
                : Error(StatusCode::kDataLoss, std::string(status.message()), DetailOf(status));
    return lost_;
  }

  Status CheckWal() {
    if (writer_->wal_bytes() <= limits_.refuse_bytes) return absl::OkStatus();
    Checkpoint();
    if (!lost_.ok()) return lost_;
    if (writer_->wal_bytes() <= limits_.refuse_bytes) return absl::OkStatus();
    return Error(StatusCode::kUnavailable,
                 options_.path + "-wal has grown to " + std::to_string(writer_->wal_bytes()) +
                     " bytes, because a program has been reading the file all the time",
                 {"STORE_WAL_LIMIT", options_.path,
                  "end the program that reads it (fuser " + options_.path + "-wal)"});
  }

  // Where a reader keeps the log from being emptied, only after it has grown by as much again.
  void CheckpointIfLong() {
    if (writer_->wal_bytes() < wal_after_checkpoint_) wal_after_checkpoint_ = 0;
    if (writer_->wal_bytes() > wal_after_checkpoint_ + limits_.checkpoint_bytes) Checkpoint();
  }

  void Checkpoint() {
    const Status status = writer_->Checkpoint();
    wal_after_checkpoint_ = writer_->wal_bytes();
    if (!status.ok()) Judge(status).IgnoreError();  // Busy or full: the next one.
  }

  const SqliteOptions options_;
  const WalLimits limits_;
  std::unique_ptr<Connection> writer_;  // Before tables_, whose statements it must outlive.
  std::unique_ptr<Tables> tables_;
  LogTails tails_;
  Status lost_;
  bool more_to_do_ = false;
  int64_t wal_after_checkpoint_ = 0;
};

}  // namespace

Status JudgeDatabase(const std::string& path, Opening opening) {
  SqliteOptions options;
  options.path = path;
  options.read_only = opening == Opening::kToRead;
  TRY(CheckPath(options));
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    // The header alone: a write-ahead log that holds more is nothing to this connection, so that
    // a file whose tables are all in it counts as new here.
    const auto judged = [&]() -> Status {
      const auto header = TRY(Connection::Open({path, Access::kImmutable, 0, ""}));
      return CheckFile(*header, path, static_cast<int64_t>(Migrations().size()));
    }();
    const bool damaged = judged.code() == StatusCode::kDataLoss;
    if (!judged.ok() && !damaged && judged.code() != StatusCode::kUnavailable) return judged;
  }
  return opening == Opening::kToRead ? absl::OkStatus() : CheckWritable(path);
}

StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteOptions& options) {
  return OpenSqliteStore(options, WalLimits{});
}

StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteOptions& options,
                                                 const WalLimits& limits) {
  auto store = std::make_unique<SqliteStore>(options, limits);
  TRY(store->Open());
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace jizi::tuner
