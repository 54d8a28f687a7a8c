#include "tuner-service/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace jizi::tuner {

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
  if (interactive_ && drawn_ > 0) text += "\x1b[" + std::to_string(drawn_) + "A\r\x1b[J";
  for (const std::string& line : lines) text += line + "\n";
  drawn_ = 0;
  if (interactive_) {
    for (const std::string& line : frame) text += line + "\n";
    drawn_ = frame.size();
  }
  if (!text.empty()) Print(text);
}

void Terminal::EraseFrame() {
  if (interactive_ && drawn_ > 0) Print("\x1b[" + std::to_string(drawn_) + "A\r\x1b[J");
  drawn_ = 0;
}

void Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void PrintError(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  if (text.empty() || text.back() != '\n') std::fputc('\n', stderr);
}

}  // namespace jizi::tuner
