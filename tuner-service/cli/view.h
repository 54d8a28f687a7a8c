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

  // What a person reads about the change, one line each. `columns`: a trial's end is written in
  // columns and cut, at a whole parameter, to fit; 0: as wide as it wants. That the study is
  // finished is no line: who follows it says the outcome (closing.h).
  std::vector<std::string> Fold(const v1::WatchStudyResponse& change, WallTime now,
                                size_t columns = 0);

  // State, best trial, one line for each running trial as far as they fit into half of the rows
  // (the other half shows what happened); no line is wider than size.columns - 1.
  std::vector<std::string> Frame(WallTime now, ScreenSize size) const;

  // Until the last trial of run_cap: each running one by its own progress, each that is to come as
  // long as the mean of those that ended, given to whichever worker is free first. Empty where
  // nothing can be said.
  std::optional<std::chrono::duration<double>> TimeLeft(WallTime now) const;

  // How long trials of the study ran: the time in which none did (it was stopped) is left out.
  std::chrono::duration<double> TimeRunning(WallTime now) const;

  const v1::Study& study() const { return study_; }

 private:
  void FoldTrial(const v1::Trial& trial, bool snapshot, WallTime now, size_t columns,
                 std::vector<std::string>& lines);
  void FoldRunning(const v1::Trial& trial, bool snapshot, WallTime now,
                   std::vector<std::string>& lines);
  bool TellAttempts(const v1::Trial& trial, bool snapshot, std::vector<std::string>& lines);
  void CountTime(const v1::Trial& trial);
  std::string EndLine(const v1::Trial& trial, size_t columns);
  std::string AlignedParams(const v1::Trial& trial, size_t columns);
  std::string ProgressLine(const v1::Trial& trial, WallTime now) const;
  std::string RunningLine(const v1::Trial& trial, WallTime now, size_t steps, size_t columns) const;
  std::string StateLine(WallTime now, size_t columns) const;
  std::string BestLine(size_t columns) const;

  const Lines lines_;
  const Colours colours_;
  v1::Study study_;
  std::map<int64_t, v1::Trial> running_;
  std::map<int64_t, WallTime> last_line_;  // Of a running trial's progress.
  std::map<int64_t, int> told_attempts_;   // Of a trial that has not ended: how many have.
  std::map<std::string, size_t> widths_;   // Of each parameter's item, the widest so far.
  std::map<WallTime, WallTime> ran_;       // From, to: when an attempt that has ended ran; apart.
  std::optional<v1::Trial> best_;
  std::optional<double> best_before_;  // The objective before the change that is being folded.
  int64_t timed_ends_ = 0;             // Trials that were seen to end, and how long they ran.
  double timed_seconds_ = 0;
};

// "[=====>    ]", `width` columns in all.
std::string ProgressBar(double fraction, size_t width);

}  // namespace jizi::tuner
