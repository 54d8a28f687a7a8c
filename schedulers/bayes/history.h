#pragma once
// history.h - what a study has taught so far, in the order in which it was learnt, and what is
// still open: the rows that a model is made of.
// - Completed with a finite objective: its value, larger is better. Completed with NaN or an
//   infinity, Infeasible, Failed: nothing but that the point is bad.
// - Stopped: censored. Its value is what a completed trial of the same rank at the same step ended
//   with, never better than the median of the completed (it was stopped for being behind); where no
//   completed trial was measured by then, that of the worst one, and without completed trials its
//   own. One that was never measured taught nothing and is left out.
// - Queued, Running, Paused: pending.
// Order: by the time of the end, then by id; a row once there keeps its place (a Failed trial that
// is tried again leaves, and what was made of it must be made again).
// Units: values in the metric's unit, negated where the goal is to minimise.
// Threads: pure.   Cost: HistoryOf O(n log n); Valued O(n) for each stopped trial.

#include <vector>

#include "schedulers/model/study.h"

namespace jizi::tuner {

struct LearntRow {
  TrialId trial = 0;
  bool feasible = true;
  bool censored = false;
  double value = 0;  // Of feasible ones; 0 for censored ones until Valued.
  bool operator==(const LearntRow&) const = default;
};

struct History {
  std::vector<LearntRow> learnt;
  std::vector<TrialId> pending;  // By id.
};

History HistoryOf(const Study& study);

// The first `count` rows, those of stopped trials judged by what these rows know: what was made of
// the first rows once does not change as more come.
std::vector<LearntRow> Valued(const Study& study, const std::vector<LearntRow>& learnt,
                              size_t count);

}  // namespace jizi::tuner
