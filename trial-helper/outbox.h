#pragma once
// outbox.h - a program's side of the file JIZI_OUTBOX (proto/outbox_file.h has its format): reports
// that the service has not acknowledged, appended and fsynced, safe from kill -9.
// Fails: Append and Replace return false with errno's text in error(); the file then still holds
// what it held.
// Threads: one at a time.   Cost: one write and one fsync a call.

#include <cstdint>
#include <string>
#include <vector>

#include "jizi/v1/tune_service.pb.h"

namespace jizi::helper {

// Hundreds of thousands of measurements; what comes after is dropped, and that is said.
inline constexpr int64_t kMaxOutboxBytes = int64_t{32} << 20;

struct OutboxContent {
  std::vector<v1::ReportRequest> requests;
  int64_t whole_bytes = 0;  // Up to the torn tail.
  bool torn = false;
};
OutboxContent ReadOutbox(const std::string& path);

class Outbox {
 public:
  // An empty path: no file, nothing is kept. What the file holds stays, but for a torn tail.
  explicit Outbox(std::string path);
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  bool Append(const std::vector<const v1::ReportRequest*>& requests);
  bool Replace(const std::vector<const v1::ReportRequest*>& requests);  // All of it.
  void Clear();

  const std::vector<v1::ReportRequest>& found() const { return found_; }  // When opened.
  const std::string& path() const { return path_; }
  const std::string& error() const { return error_; }
  int64_t bytes() const { return bytes_; }

 private:
  bool Open();
  bool Write(const std::vector<const v1::ReportRequest*>& requests);

  std::string path_;
  int fd_ = -1;
  int64_t bytes_ = 0;
  std::string error_;
  std::vector<v1::ReportRequest> found_;
};

}  // namespace jizi::helper
