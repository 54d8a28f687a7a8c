#pragma once
// view_testing.h - studies and trials as the wire brings them, for what shows them.

#include <cstdint>
#include <vector>

#include "jizi/v1/tune_service.pb.h"
#include "tuner-service/cli/show.h"

namespace jizi::tuner {

inline constexpr int64_t kStart = 1'000'000;

inline WallTime At(int64_t seconds) {
  return WallTime(std::chrono::seconds(kStart + seconds));
}

inline v1::Study StudyOf(int64_t run_cap) {
  v1::Study study;
  study.mutable_spec()->set_name("sweep");
  auto* metric = study.mutable_spec()->add_metrics();
  metric->set_name("val_accuracy");
  metric->set_goal(v1::GOAL_MAXIMIZE);
  auto* lr = study.mutable_spec()->add_parameters();
  lr->set_name("lr");
  lr->mutable_numeric()->mutable_uniform()->set_max(1);
  auto* constant = study.mutable_spec()->add_parameters();
  constant->set_name("epochs");
  constant->mutable_constant()->mutable_value()->set_int_value(10);
  study.mutable_spec()->mutable_budget()->set_run_cap(run_cap);
  study.set_state(v1::STUDY_STATE_ACTIVE);
  study.mutable_created()->set_seconds(kStart);
  return study;
}

inline v1::Trial TrialOf(int64_t id, v1::TrialState state, double lr) {
  v1::Trial trial;
  trial.set_id(id);
  trial.set_state(state);
  (*trial.mutable_params())["lr"].set_float_value(lr);
  (*trial.mutable_params())["epochs"].set_int_value(10);
  trial.mutable_started()->set_seconds(kStart);
  auto* attempt = trial.add_attempts();
  attempt->set_number(1);
  attempt->mutable_started()->set_seconds(kStart);
  return trial;
}

inline void EndAt(v1::Trial& trial, int64_t seconds,
                  v1::AttemptEnd end = v1::ATTEMPT_END_FINISHED) {
  auto* attempt = trial.mutable_attempts(trial.attempts_size() - 1);
  attempt->set_end(end);
  attempt->mutable_ended()->set_seconds(kStart + seconds);
  trial.mutable_ended()->set_seconds(kStart + seconds);
}

inline void NextAttempt(v1::Trial& trial, int64_t seconds, int64_t start_step = 0) {
  auto* attempt = trial.add_attempts();
  attempt->set_number(trial.attempts_size());
  attempt->mutable_started()->set_seconds(kStart + seconds);
  attempt->set_start_step(start_step);
}

inline void Report(v1::Trial& trial, int64_t step, double accuracy) {
  trial.set_total_steps(10);
  trial.mutable_last_measurement()->set_step(step);
  (*trial.mutable_last_measurement()->mutable_metrics())["val_accuracy"] = accuracy;
}

inline v1::WatchStudyResponse Change(const v1::Study& study, const std::vector<v1::Trial>& trials,
                                     bool snapshot = false) {
  v1::WatchStudyResponse change;
  *change.mutable_study() = study;
  for (const v1::Trial& trial : trials) *change.add_trials() = trial;
  change.set_snapshot(snapshot);
  return change;
}

}  // namespace jizi::tuner
