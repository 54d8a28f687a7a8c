#include "trial-helper/outbox.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "proto/outbox_file.h"

namespace jizi::helper {

OutboxContent ReadOutbox(const std::string& path) {
  OutboxContent content;
  const auto end = ForEachReport(path, [&](v1::ReportRequest request) {
    content.requests.push_back(std::move(request));
    return absl::OkStatus();
  });
  content.whole_bytes = end->whole_bytes;
  content.torn = end->torn;
  return content;
}

Outbox::Outbox(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  OutboxContent content = ReadOutbox(path_);
  found_ = std::move(content.requests);
  bytes_ = content.whole_bytes;
  if (content.torn && Open() && ftruncate(fd_, bytes_) != 0) error_ = std::strerror(errno);
}

Outbox::~Outbox() {
  if (fd_ >= 0) close(fd_);
}

bool Outbox::Open() {
  if (fd_ >= 0) return true;
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (fd_ < 0) error_ = std::strerror(errno);
  return fd_ >= 0;
}

// Appends after bytes_; a failure leaves at most a torn tail, which the next write overwrites.
bool Outbox::Write(const std::vector<const v1::ReportRequest*>& requests) {
  const std::string text = OutboxBytes(requests);
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = pwrite(fd_, text.data() + written, text.size() - written,
                             bytes_ + static_cast<int64_t>(written));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  if (written < text.size() || fsync(fd_) != 0) {
    error_ = std::strerror(errno);
    if (ftruncate(fd_, bytes_) != 0) error_ += " (and the torn tail stays)";
    return false;
  }
  bytes_ += static_cast<int64_t>(text.size());
  return true;
}

bool Outbox::Append(const std::vector<const v1::ReportRequest*>& requests) {
  if (path_.empty() || requests.empty()) return true;
  return Open() && Write(requests);
}

bool Outbox::Replace(const std::vector<const v1::ReportRequest*>& requests) {
  if (path_.empty()) return true;
  // Written beside it and renamed: a kill in between leaves one or the other whole.
  Outbox fresh(path_ + ".new");
  fresh.bytes_ = 0;
  if (!fresh.Open() || ftruncate(fresh.fd_, 0) != 0 || !fresh.Write(requests) ||
      rename(fresh.path_.c_str(), path_.c_str()) != 0) {
    error_ = fresh.error_.empty() ? std::strerror(errno) : fresh.error_;
    return false;
  }
  if (fd_ >= 0) close(fd_);
  fd_ = fresh.fd_;
  bytes_ = fresh.bytes_;
  fresh.fd_ = -1;
  return true;
}

void Outbox::Clear() {
  if (path_.empty() || bytes_ == 0) return;
  if (Open() && ftruncate(fd_, 0) == 0) bytes_ = 0;
}

}  // namespace jizi::helper
