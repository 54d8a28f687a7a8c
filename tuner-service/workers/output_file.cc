#include "tuner-service/workers/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace jizi::tuner {
namespace {

constexpr size_t kTailBytes = 4096;
constexpr int kTailLines = 20;
constexpr size_t kMaxLine = 64u << 10;
constexpr size_t kMinCap = 4096;  // Below it head and tail would not hold a line.

size_t SizeOf(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? static_cast<size_t>(info.st_size) : 0;
}

int OpenForAppend(const std::string& path, int flags) {
  // Never waiting: a program may have put a FIFO there.
  return open(path.c_str(),
              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0644);
}

// How much of it was written.
size_t WriteAll(int file, std::string_view text) {
  size_t done = 0;
  while (file >= 0 && done < text.size()) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<size_t>(written);
  }
  return done;
}

void CopyAndRemove(const std::string& from, int to) {
  const int file = open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return;
  char chunk[65536];
  ssize_t got;
  while ((got = read(file, chunk, sizeof chunk)) > 0) {
    WriteAll(to, std::string_view(chunk, static_cast<size_t>(got)));
  }
  close(file);
  unlink(from.c_str());
}

}  // namespace

OutputFile::OutputFile(std::string path, size_t cap_bytes)
    : path_(std::move(path)), half_(std::max(cap_bytes, kMinCap) / 2) {
  OpenHead();
  if (SizeOf(path_ + ".tail") > 0 || SizeOf(path_ + ".tail2") > 0) {
    JoinTails();
    close(head_);
    OpenHead();
  }
}

OutputFile::~OutputFile() {
  if (tail_ >= 0) close(tail_);
  if (tail_ >= 0 || dropped_bytes_ > 0) JoinTails();
  if (head_ >= 0) close(head_);
}

void OutputFile::OpenHead() {
  head_bytes_ = SizeOf(path_);
  if (head_bytes_ >= half_) {
    rename(path_.c_str(), (path_ + ".old").c_str());
    head_bytes_ = 0;
  }
  head_ = OpenForAppend(path_, 0);
}

void OutputFile::Append(std::string_view text) {
  const size_t room = half_ - std::min(half_, head_bytes_);
  const std::string_view first = text.substr(0, room);
  const size_t written = WriteAll(head_, first);
  head_bytes_ += first.size();
  dropped_bytes_ += static_cast<int64_t>(first.size() - written);
  AppendTail(text.substr(first.size()));
}

void OutputFile::AppendTail(std::string_view text) {
  const size_t quarter = half_ / 2;
  while (!text.empty()) {
    if (tail_ >= 0 && tail_bytes_ >= quarter) {
      close(tail_);
      tail_ = -1;
      dropped_bytes_ += static_cast<int64_t>(SizeOf(path_ + ".tail2"));
      rename((path_ + ".tail").c_str(), (path_ + ".tail2").c_str());
    }
    if (tail_ < 0) {
      tail_ = OpenForAppend(path_ + ".tail", O_TRUNC);
      tail_bytes_ = 0;
    }
    const std::string_view part = text.substr(0, quarter - tail_bytes_);
    dropped_bytes_ += static_cast<int64_t>(part.size() - WriteAll(tail_, part));
    tail_bytes_ += part.size();
    text.remove_prefix(part.size());
  }
}

void OutputFile::JoinTails() {
  if (dropped_bytes_ > 0) {
    WriteAll(head_, "\n[jizi: " + std::to_string(dropped_bytes_) +
                        " bytes of output dropped here; head and tail are kept]\n");
  }
  CopyAndRemove(path_ + ".tail2", head_);
  CopyAndRemove(path_ + ".tail", head_);
}

void TailLines::Append(std::string_view text) {
  if (text.size() > kTailBytes) text.remove_prefix(text.size() - kTailBytes);
  kept_ += text;
  if (kept_.size() > 2 * kTailBytes) kept_.erase(0, kept_.size() - kTailBytes);
}

std::string TailLines::Text() const {
  std::string_view text = kept_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  if (text.size() > kTailBytes) text.remove_prefix(text.size() - kTailBytes);
  size_t begin = text.size();
  for (int lines = 0; lines < kTailLines && begin > 0; ++lines) {
    const size_t newline = text.rfind('\n', begin - 1);
    if (newline == std::string_view::npos) {
      begin = 0;
      break;
    }
    begin = newline;
  }
  if (begin > 0) text.remove_prefix(begin + 1);
  // The wire carries UTF-8 only: whatever a program prints, the reason must be sendable.
  using Json = nlohmann::json;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
      .get<std::string>();
}

bool LineScanner::Take() {
  if (skip_ || !line_.starts_with(mark_)) return false;
  if (line_.back() == '\r') line_.pop_back();
  return true;
}

void LineScanner::Add(char c) {
  const bool fits =
      line_.size() < mark_.size() ? c == mark_[line_.size()] : line_.size() < kMaxLine;
  if (fits) {
    line_ += c;
  } else {
    skip_ = true;
    line_.clear();
  }
}

}  // namespace jizi::tuner
