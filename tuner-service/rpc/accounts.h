#pragma once
// accounts.h - what became of the calls: counters for each method, and the call log.
// Fails: Open: InvalidArgument LOG_FILE.
// Threads: any. Note never waits: the log's queue drops its oldest lines when its thread cannot
// follow. Cost: Note three relaxed atomic additions, and about a microsecond where the line is
// logged.

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "base/status.h"
#include "tuner-service/rpc/server.h"

namespace jizi::tuner {

enum class Method {
  kCreateStudy,
  kGetStudy,
  kListStudies,
  kDeleteStudy,
  kSetStudyState,
  kSuggest,
  kAttach,
  kReport,
  kRegisterCheckpoint,
  kRenew,
  kRelease,
  kComplete,
  kGetTrial,
  kListTrials,
  kEnqueueTrial,
  kRetryTrials,
  kSetAttributes,
  kWatchStudy,
};
inline constexpr size_t kMethods = static_cast<size_t>(Method::kWatchStudy) + 1;

struct MethodCount {
  int64_t calls = 0;
  int64_t refused = 0;  // For a reason of the caller's.
  int64_t failed = 0;   // For a reason of ours.
  std::chrono::microseconds total{};
};

struct CallEnd {
  std::string study;  // As the request names it; only where logs_failures(), as the peer.
  std::string peer;
  Status status;
  std::chrono::microseconds took{};
};

class Accounts {
 public:
  static StatusOr<std::shared_ptr<Accounts>> Open(CallLog level, const std::string& file);
  virtual ~Accounts() = default;

  virtual void Note(Method method, const CallEnd& end) = 0;
  virtual void NoteCounters() = 0;  // A line for each method that was called, at CallLog::kAll.
  MethodCount count(Method method) const;
  bool logs_calls() const { return level_ == CallLog::kAll; }
  bool logs_failures() const { return level_ != CallLog::kOff; }

 protected:
  explicit Accounts(CallLog level) : level_(level) {}
  void Count(Method method, const CallEnd& end);
  const CallLog level_;

 private:
  struct Counters {
    std::atomic<int64_t> calls{0};
    std::atomic<int64_t> refused{0};
    std::atomic<int64_t> failed{0};
    std::atomic<int64_t> total_us{0};
  };
  std::array<Counters, kMethods> counters_;
};

// Is it our fault, or the way to the disk? An end that we were told to make is neither.
bool IsFailure(const Status& status);

}  // namespace jizi::tuner
