#include "base/status.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/cord.h"

namespace jizi {
namespace {

constexpr char kCode[] = "jizi/code";
constexpr char kSubject[] = "jizi/subject";
constexpr char kMend[] = "jizi/mend";

std::string Payload(const Status& status, const char* key) {
  const auto payload = status.GetPayload(key);
  return payload ? std::string(*payload) : std::string();
}

}  // namespace

Status Error(StatusCode kind, const std::string& message, ErrorDetail detail) {
  Status status(kind, message);
  status.SetPayload(kCode, absl::Cord(std::move(detail.code)));
  status.SetPayload(kSubject, absl::Cord(std::move(detail.subject)));
  status.SetPayload(kMend, absl::Cord(std::move(detail.mend)));
  return status;
}

ErrorDetail DetailOf(const Status& status) {
  return {Payload(status, kCode), Payload(status, kSubject), Payload(status, kMend)};
}

std::string ForPeople(const Status& status) {
  std::string text(status.message());
  const std::string mend = Payload(status, kMend);
  return mend.empty() ? text : text + "; " + mend;
}

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace jizi
