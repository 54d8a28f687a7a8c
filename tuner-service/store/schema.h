#pragma once
// schema.h - the tables of a Jizi file: numbered migrations, and what makes a file ours.
// The log (tables log and measurements) is the truth; the rest are ordinary tables for people,
// rebuilt from it when one is missing. Fails: FailedPrecondition STORE_NEWER (written by a newer
// version) or STORE_OLDER (read-only and not yet migrated); InvalidArgument STORE_NOT_OURS (another
// program's database); and sqlite.h's. Threads: as the connection.   Cost: O(1) on a file that is
// up to date.

#include <span>
#include <string>

#include "base/status.h"
#include "tuner-service/store/sqlite.h"

namespace jizi::tuner {

inline constexpr int64_t kApplicationId = 0x4A495A49;  // "JIZI"

// Brings a file from version i to i + 1, i its place in the list.
struct Migration {
  const char* script;
};
std::span<const Migration> Migrations();

// Names of the tables that are rebuilt from the log.
std::span<const char* const> DerivedTables();

// May this file be opened: is it ours or new, and not newer than `newest`? Changes nothing.
Status CheckFile(Connection& connection, const std::string& path, int64_t newest);

// The same for reading only: it must be at version `newest`.
Status CheckFileForReading(Connection& connection, const std::string& path, int64_t newest);

enum class Derived { kComplete, kMustRebuild };

// Inside the caller's transaction: a new file gets everything, an older one what it lacks, and
// derived tables that are missing are made empty.
StatusOr<Derived> Migrate(Connection& connection, const std::string& path,
                          std::span<const Migration> migrations);

}  // namespace jizi::tuner
