#pragma once
// sqlite_store.h - the SQLite store with its limits named, for what opens one with others than the
// usual (tests of a log that grows). Threads: see store.h.

#include <memory>

#include "tuner-service/store/store.h"

namespace jizi::tuner {

// Of the write-ahead log (docs/contracts.md, 4).
struct WalLimits {
  int64_t checkpoint_bytes = int64_t{16} << 20;  // Copied into the file once it is longer.
  int64_t refuse_bytes = int64_t{1}
                         << 30;  // Longer, because of a reader that never ends: no more writes.
};

StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteOptions& options,
                                                 const WalLimits& limits);

}  // namespace jizi::tuner
