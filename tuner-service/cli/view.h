#pragma once
// view.h - a study as it goes, from the messages of WatchStudy: a frame that is redrawn in place on
// a terminal, or plain lines. Pure: the time, the size and the messages are arguments. Threads:
// none of its own.   Cost: Fold O(changed trials); Frame O(running trials); memory O(running
// trials), not O(trials).

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jizi/v1/tune_service.pb.h"
#include "tuner-service/cli/show.h"

namespace jizi::tuner {

struct ScreenSize {
  size_t columns = 80;
  size_t rows = 24;
};

struct Colours {
  bool on = false;
  std::string Bold(const std::string& text) const;
  std::string Good(const std::string& text) const;
  std::string Bad(const std::string& text) const;
  std::string Dim(const std::string& text) const;
};

class LiveView {
 public:
  enum class Lines {
    kEnds,      // Above a frame: only what has ended.
    kProgress,  // Without a frame: starts, and progress at most once in kProgressEvery for each
                // trial, too.
  };
  static constexpr std::chrono::seconds kProgressEvery{10};

  explicit LiveView(Lines lines, Colours colours = {}) : lines_(lines), colours_(colours) {}

  // What a person reads about the change, one line each.
  std::vector<std::string> Fold(const v1::WatchStudyResponse& change, WallTime now);

  // State, best trial, one line for each running trial as far as they fit; no line is wider than
  // size.columns - 1.
  std::vector<std::string> Frame(WallTime now, ScreenSize size) const;

  // Until the last trial of run_cap, by the mean of those that ended; empty where nothing can be
  // said.
  std::optional<std::chrono::duration<double>> TimeLeft(WallTime now) const;

  const v1::Study& study() const { return study_; }

 private:
  void FoldTrial(const v1::Trial& trial, bool snapshot, WallTime now,
                 std::vector<std::string>& lines);
  std::string EndLine(const v1::Trial& trial) const;
  std::string ProgressLine(const v1::Trial& trial, WallTime now) const;
  std::string RunningLine(const v1::Trial& trial, WallTime now, size_t columns) const;
  std::string StateLine(WallTime now, size_t columns) const;
  std::string BestLine(size_t columns) const;

  const Lines lines_;
  const Colours colours_;
  v1::Study study_;
  std::map<int64_t, v1::Trial> running_;
  std::map<int64_t, WallTime> last_line_;  // Of a running trial's progress.
  std::optional<v1::Trial> best_;
  int64_t timed_ends_ = 0;  // Trials that were seen to end, and how long they ran.
  double timed_seconds_ = 0;
};

// "[=====>    ]", `width` columns in all.
std::string ProgressBar(double fraction, size_t width);

}  // namespace jizi::tuner
