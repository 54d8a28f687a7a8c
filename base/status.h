#pragma once
// status.h - errors of the service side: an absl::Status that says what is wrong, about what, and
// the mend; and TRY.
// The code is a stable upper-case word (STUDY_EXISTS, LEASE_LOST) that programs compare; people
// read message and mend.
// Threads: values only.   Cost: an error allocates, OK does not.

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace jizi {

template <typename T>
using StatusOr = absl::StatusOr<T>;
using absl::Status;
using absl::StatusCode;

struct ErrorDetail {
  std::string code;
  std::string subject;
  std::string mend;
  bool operator==(const ErrorDetail&) const = default;
};

Status Error(StatusCode kind, const std::string& message, ErrorDetail detail);

// Empty members where the status carries none.
ErrorDetail DetailOf(const Status& status);

// One line for a person: message, then "; " and the mend where there is one.
std::string ForPeople(const Status& status);

namespace internal {
inline const Status& StatusOf(const Status& status) {
  return status;
}
template <typename T>
const Status& StatusOf(const StatusOr<T>& result) {
  return result.status();
}
inline void ValueOf(Status&&) {}
template <typename T>
T ValueOf(StatusOr<T>&& result) {
  return *std::move(result);
}
}  // namespace internal

// TRY(expression): leaves the function with the error, or is the value (nothing for a Status).
#define TRY(...)                                                                   \
  __extension__({                                                                  \
    auto jizi_try_result = (__VA_ARGS__);                                          \
    if (!jizi_try_result.ok()) return ::jizi::internal::StatusOf(jizi_try_result); \
    ::jizi::internal::ValueOf(std::move(jizi_try_result));                         \
  })

// A broken invariant is a bug of ours: say where and abort, in release too.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
#define CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::jizi::CheckFailed(__FILE__, __LINE__, #condition))

}  // namespace jizi
