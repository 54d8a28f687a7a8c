#pragma once
// purge.h - what deleted studies left behind is removed a slice at a time: a commit may be waiting
// after each. Fails: sqlite.h's; the transaction is then still open, for the caller to roll back.
// Threads: as the connection. Cost: one transaction of at most kPurgeRows rows of each table,
// whatever a record holds; a few milliseconds.

#include "base/status.h"
#include "tuner-service/store/sqlite.h"

namespace jizi::tuner {

inline constexpr int64_t kPurgeRows = 1000;

// True while there may be more.
StatusOr<bool> PurgeSlice(Connection& connection);

}  // namespace jizi::tuner
