#include "tuner-service/cli/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

constexpr int kSlowReader_ms = 10'000;  // Of an output that does not block.

}  // namespace

Terminal::Terminal() {
  const char* term = std::getenv("TERM");
  const char* no_color = std::getenv("NO_COLOR");
  interactive_ = isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
  coloured_ = interactive_ && (no_color == nullptr || *no_color == '\0');
}

Terminal::~Terminal() {
  EraseFrame();
}

ScreenSize Terminal::Size() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {size.ws_col, size.ws_row};
}

size_t Terminal::TableWidth() const {
  return interactive_ ? Size().columns : 0;
}

void Terminal::Draw(const std::vector<std::string>& lines, const std::vector<std::string>& frame) {
  std::string text;
  if (!interactive_) {
    for (const std::string& line : lines) text += line + "\n";
    Put(text);
    return;
  }
  // Line by line over what stands there: erasing it first would flicker.
  constexpr const char* kEnd = "\x1b[K\n";
  if (drawn_ > 0) text += "\x1b[" + std::to_string(drawn_) + "A\r";
  const size_t width = Size().columns;
  for (const std::string& line : lines) {
    for (const std::string& part : Wrapped(line, width > 1 ? width - 1 : 1)) text += part + kEnd;
  }
  for (const std::string& line : frame) text += line + kEnd;
  drawn_ = frame.size();
  Put(text + "\x1b[J");
}

void Terminal::EraseFrame() {
  if (interactive_ && drawn_ > 0) Put("\x1b[" + std::to_string(drawn_) + "A\r\x1b[J");
  drawn_ = 0;
}

void Terminal::Put(const std::string& text) {
  const Status status = Write(text);
  if (written_.ok()) written_ = status;
}

// Not through stdio: what it could not write it would keep, and try again at the end.
Status Write(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t bytes = write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (bytes > 0) {
      done += static_cast<size_t>(bytes);
      continue;
    }
    const int error = bytes < 0 ? errno : EIO;
    if (error == EINTR) continue;
    if (error == EAGAIN) {
      pollfd out = {STDOUT_FILENO, POLLOUT, 0};
      if (poll(&out, 1, kSlowReader_ms) > 0) continue;
    }
    if (error == EPIPE) {
      return Error(StatusCode::kAborted, "nobody reads the output any more",
                   {"OUTPUT_CLOSED", "stdout", "keep its reader until the end"});
    }
    return Error(StatusCode::kAborted,
                 std::string("cannot write the output: ") + std::strerror(error),
                 {"OUTPUT_LOST", "stdout", "what was written is not all of it"});
  }
  return absl::OkStatus();
}

Status WriteText(const std::string& text) {
  return Write(Printable(text));
}

void Print(const std::string& text) {
  Write(text).IgnoreError();
}

void PrintError(const std::string& text) {
  const std::string shown = Printable(text);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
  if (shown.empty() || shown.back() != '\n') std::fputc('\n', stderr);
}

}  // namespace jizi::tuner
