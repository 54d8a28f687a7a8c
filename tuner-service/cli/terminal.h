#pragma once
// terminal.h - where lines and frames go: a terminal that is redrawn in place, or anything else,
// line by line. NO_COLOR and TERM=dumb are honoured (https://no-color.org). Threads: from one
// thread.

#include <string>
#include <vector>

#include "tuner-service/cli/view.h"

namespace jizi::tuner {

class Terminal {
 public:
  Terminal();  // stdout.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool interactive() const { return interactive_; }
  Colours colours() const { return {coloured_}; }
  ScreenSize Size() const;    // 80 x 24 where nobody knows.
  size_t TableWidth() const;  // 0 (as wide as it wants) unless interactive.

  // `lines` scroll away above the frame; the frame replaces the one before. Without a terminal the
  // frame is not drawn.
  void Draw(const std::vector<std::string>& lines, const std::vector<std::string>& frame);
  void EraseFrame();

 private:
  bool interactive_ = false;
  bool coloured_ = false;
  size_t drawn_ = 0;  // Lines of the frame on the screen.
};

void Print(const std::string& text);       // To stdout, flushed.
void PrintError(const std::string& text);  // To stderr.

}  // namespace jizi::tuner
