#pragma once
// timed_store.h - a store that notes how long its commits take: what a call has to wait for, beside
// what it waited. Threads: Take from any, the rest as Store.

#include <cstddef>
#include <memory>

#include "tuner-service/store/store.h"

namespace jizi::bench {

struct CommitTimes {
  size_t commits = 0;
  size_t records = 0;
  double p50_us = 0;
  double p99_us = 0;
  double longest_us = 0;
};

class TimedStore : public tuner::Store {
 public:
  virtual CommitTimes Take() = 0;  // Since the last Take.
  static std::unique_ptr<TimedStore> Around(std::unique_ptr<tuner::Store> store);
};

}  // namespace jizi::bench
