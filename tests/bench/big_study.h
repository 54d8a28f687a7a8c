#pragma once
// big_study.h - a study of many trials: how long a restart takes, a page of trials, and a
// suggestion, against those of a small one.
// Fails: with the first status that is not OK.

#include <string>

#include "base/status.h"
#include "schedulers/model/study.h"

namespace jizi::bench {

tuner::StudySpec LoadSpec(const std::string& name);  // Four parameters, random search.

struct BigStudyPlan {
  int trials = 10'000;
  int reports = 100;
  int small_trials = 100;  // Of the study that suggestions are compared with.
  int suggestions = 200;   // Timed in each.
};

struct BigStudyFigures {
  double build_s = 0;
  double restart_s = 0;
  double page_ms = 0;         // 100 trials by id, the slowest of ten.
  double sorted_page_ms = 0;  // The best 100 by objective.
  double suggest_p50_us = 0;
  double small_suggest_p50_us = 0;
  double bytes_per_trial = 0;   // On disk.
  double memory_per_trial = 0;  // Of the engine after the restart.
};

StatusOr<BigStudyFigures> MeasureBigStudy(const std::string& file, const BigStudyPlan& plan);

}  // namespace jizi::bench
