#include "tuner-service/store/schema.h"

#include <array>

namespace jizi::tuner {
namespace {

// Version 1: the log. WITHOUT ROWID keeps a study's rows together and in order: loading is two
// scans.
constexpr const char* kLog = R"sql(
CREATE TABLE log (
  study    INTEGER NOT NULL,
  position INTEGER NOT NULL,  -- 1, 2, 3, ... in the study
  time_us  INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  payload  BLOB    NOT NULL,  -- jizi.store.v1.Record
  PRIMARY KEY (study, position)
) WITHOUT ROWID;

CREATE TABLE measurements (
  study    INTEGER NOT NULL,
  position INTEGER NOT NULL,  -- of the record in log that reported it
  item     INTEGER NOT NULL,  -- 0, 1, 2, ... in that record
  trial    INTEGER NOT NULL,
  attempt  INTEGER NOT NULL,
  rollback INTEGER NOT NULL,
  step     INTEGER NOT NULL,
  metric   TEXT    NOT NULL,
  value,                      -- REAL; NULL where kind is nan. No affinity: it stays as it was bound
  kind     TEXT    NOT NULL,  -- finite, nan, +inf, -inf
  time_us  INTEGER NOT NULL,  -- by the program's clock
  counts   INTEGER NOT NULL DEFAULT 1,  -- 0 once a later attempt or a roll-back started before it
  PRIMARY KEY (study, position, item)
) WITHOUT ROWID;

-- Studies that are gone. Their ids are never given again; what they left is removed bit by bit, when nothing waits.
CREATE TABLE deleted (
  study  INTEGER PRIMARY KEY,
  purged INTEGER NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX measurements_key ON measurements (study, trial, attempt, rollback, step, metric);
)sql";

struct Table {
  const char* name;
  const char* script;
};

constexpr std::array<Table, 6> kDerived = {{
    {"studies", R"sql(
CREATE TABLE studies (
  study        INTEGER PRIMARY KEY,
  name         TEXT NOT NULL UNIQUE,
  state        TEXT NOT NULL,  -- Active, Paused, Stopped, Finished
  why          TEXT NOT NULL,
  method       TEXT NOT NULL,
  metric       TEXT,
  goal         TEXT,           -- minimize, maximize
  target       REAL,
  run_cap      INTEGER,
  wall_clock_s REAL,
  seed         TEXT NOT NULL,  -- 64 bits without a sign
  created_us   INTEGER NOT NULL
);
)sql"},
    {"trials", R"sql(
CREATE TABLE trials (
  study            INTEGER NOT NULL,
  trial            INTEGER NOT NULL,
  state            TEXT    NOT NULL,  -- Queued, Running, Paused, Completed, Stopped, Infeasible, Failed
  objective        REAL,
  why              TEXT    NOT NULL,  -- of the scheduler
  end_why          TEXT    NOT NULL,
  decision         INTEGER NOT NULL,  -- 0: enqueued by a person
  tags             TEXT    NOT NULL,  -- a JSON object
  warm_start_trial INTEGER,
  warm_start_step  INTEGER,
  successor_of     INTEGER,
  total_steps      INTEGER,
  created_us       INTEGER NOT NULL,
  started_us       INTEGER,
  ended_us         INTEGER,
  PRIMARY KEY (study, trial)
) WITHOUT ROWID;
)sql"},
    {"params", R"sql(
CREATE TABLE params (
  study INTEGER NOT NULL,
  trial INTEGER NOT NULL,
  name  TEXT    NOT NULL,
  value,                     -- bool as 0 or 1
  type  TEXT    NOT NULL,    -- bool, int, float, string, json
  PRIMARY KEY (study, trial, name)
) WITHOUT ROWID;
)sql"},
    {"attempts", R"sql(
CREATE TABLE attempts (
  study      INTEGER NOT NULL,
  trial      INTEGER NOT NULL,
  attempt    INTEGER NOT NULL,
  worker     TEXT    NOT NULL,
  start_step INTEGER NOT NULL,
  end        TEXT    NOT NULL,  -- Running, Finished, Stopped, Paused, Failed, Lost, Released
  why        TEXT    NOT NULL,  -- of the end: the last lines of stderr when it failed
  started_us INTEGER NOT NULL,
  ended_us   INTEGER,
  PRIMARY KEY (study, trial, attempt)
) WITHOUT ROWID;
)sql"},
    {"checkpoints", R"sql(
CREATE TABLE checkpoints (
  study   INTEGER NOT NULL,
  trial   INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  step    INTEGER NOT NULL,
  path    TEXT    NOT NULL,  -- relative to the trial's folder
  sha256  TEXT    NOT NULL,
  bytes   INTEGER NOT NULL,
  time_us INTEGER NOT NULL,
  PRIMARY KEY (study, trial, attempt, step)  -- the last one registered there
) WITHOUT ROWID;
)sql"},
    {"attributes", R"sql(
CREATE TABLE attributes (
  study INTEGER NOT NULL,
  trial INTEGER NOT NULL,  -- 0: of the study
  name  TEXT    NOT NULL,
  value TEXT    NOT NULL,
  PRIMARY KEY (study, trial, name)
) WITHOUT ROWID;
)sql"},
}};

constexpr std::array<Migration, 1> kMigrations = {{{kLog}}};

StatusOr<bool> HasTable(Connection& connection, const char* name) {
  Prepared statement =
      TRY(connection.Prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"));
  return statement.Bind(1, name).Step();
}

Status NotOurs(const std::string& path) {
  return Error(StatusCode::kInvalidArgument, path + " is a database of another program",
               {"STORE_NOT_OURS", path, "name a database of Jizi, or a new file"});
}

}  // namespace

std::span<const Migration> Migrations() {
  return kMigrations;
}

std::span<const char* const> DerivedTables() {
  static constexpr std::array<const char*, kDerived.size()> kNames = {
      kDerived[0].name, kDerived[1].name, kDerived[2].name,
      kDerived[3].name, kDerived[4].name, kDerived[5].name};
  return kNames;
}

Status CheckFile(Connection& connection, const std::string& path, int64_t newest) {
  const int64_t application = TRY(connection.Query("PRAGMA application_id"));
  const int64_t version = TRY(connection.Query("PRAGMA user_version"));
  const bool fresh = application == 0 && version == 0 &&
                     TRY(connection.Query("SELECT count(*) FROM sqlite_master")) == 0;
  if (fresh) return absl::OkStatus();
  if (application != kApplicationId || version < 1) return NotOurs(path);
  if (version > newest) {
    return Error(StatusCode::kFailedPrecondition,
                 path + " has version " + std::to_string(version) +
                     ", and this program knows versions up to " + std::to_string(newest),
                 {"STORE_NEWER", path, "use the newer jizi that wrote it"});
  }
  return absl::OkStatus();
}

Status CheckFileForReading(Connection& connection, const std::string& path, int64_t newest) {
  TRY(CheckFile(connection, path, newest));
  if (TRY(connection.Query("PRAGMA user_version")) < newest) {
    return Error(StatusCode::kFailedPrecondition,
                 path + " is new or was written by an older version, and is opened read-only",
                 {"STORE_OLDER", path, "open it once for writing: jizi serve --db " + path});
  }
  return absl::OkStatus();
}

StatusOr<Derived> Migrate(Connection& connection, const std::string& path,
                          std::span<const Migration> migrations) {
  Derived derived = Derived::kComplete;
  const auto newest = static_cast<int64_t>(migrations.size());
  TRY(CheckFile(connection, path, newest));  // Again: another program may have been here since.
  int64_t version = TRY(connection.Query("PRAGMA user_version"));
  if (version == 0) {
    TRY(connection.Run("PRAGMA application_id = " + std::to_string(kApplicationId)));
  }
  for (; version < newest; ++version) {
    TRY(connection.Run(migrations[static_cast<size_t>(version)].script));
    TRY(connection.Run("PRAGMA user_version = " + std::to_string(version + 1)));
    derived = Derived::kMustRebuild;
  }
  for (const Table& table : kDerived) {
    if (TRY(HasTable(connection, table.name))) continue;
    TRY(connection.Run(table.script));
    derived = Derived::kMustRebuild;
  }
  return derived;
}

}  // namespace jizi::tuner
