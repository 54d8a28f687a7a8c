#pragma once
// terminal.h - where lines and frames go: a terminal that is redrawn in place, or anything else,
// line by line. NO_COLOR and TERM=dumb are honoured (https://no-color.org). Fails: Aborted
// OUTPUT_LOST (a full disk), OUTPUT_CLOSED (EPIPE: `| head`). Threads: from one thread.

#include <string>
#include <vector>

#include "base/status.h"

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

  // `lines` scroll away above the frame, broken at words where they are wider than the terminal;
  // the frame replaces the one before. Without a terminal the frame is not drawn. A frame must
  // leave two rows: erased from the first row on, a screen goes into the scrollback.
  void Draw(const std::vector<std::string>& lines, const std::vector<std::string>& frame);
  void EraseFrame();

  // The first line that could not be written. It goes on trying: a run outlives its output.
  const Status& written() const { return written_; }

 private:
  void Put(const std::string& text);
  bool interactive_ = false;
  bool coloured_ = false;
  size_t drawn_ = 0;  // Lines of the frame on the screen.
  Status written_;
};

// To stdout, all of it or an error.
Status Write(const std::string& text);
// The same for lines that a person reads: what others named cannot move the cursor.
Status WriteText(const std::string& text);
// To stdout, for what goes on whether or not somebody reads it.
void Print(const std::string& text);
// To stderr, with what could move the cursor replaced.
void PrintError(const std::string& text);

}  // namespace jizi::tuner
