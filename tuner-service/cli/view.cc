#include "tuner-service/cli/view.h"

#include <algorithm>
#include <cmath>

#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

WallTime StartOf(const v1::Trial& trial) {
  if (trial.attempts_size() == 0) return TimeOf(trial.started());
  return TimeOf(trial.attempts(trial.attempts_size() - 1).started());
}

int64_t StartStep(const v1::Trial& trial) {
  return trial.attempts_size() == 0 ? 0 : trial.attempts(trial.attempts_size() - 1).start_step();
}

Seconds Elapsed(const v1::Trial& trial, WallTime now) {
  return std::max(Seconds(0), Seconds(now - StartOf(trial)));
}

// How much of its planned steps a trial has done. Programs count from 0 or from 1: the last step is
// the whole.
std::optional<double> FractionOf(const v1::Trial& trial) {
  if (!trial.has_total_steps() || trial.total_steps() <= 0 || !trial.has_last_measurement())
    return std::nullopt;
  const double fraction = static_cast<double>(trial.last_measurement().step()) /
                          static_cast<double>(trial.total_steps());
  return std::clamp(fraction, 0.0, 1.0);
}

std::optional<Seconds> TrialTimeLeft(const v1::Trial& trial, WallTime now) {
  const auto fraction = FractionOf(trial);
  if (!fraction || *fraction <= 0) return std::nullopt;
  const double began =
      static_cast<double>(StartStep(trial)) / static_cast<double>(trial.total_steps());
  const double done = *fraction - began;
  if (done <= 0) return std::nullopt;
  return Elapsed(trial, now) * ((1 - *fraction) / done);
}

std::string StepOf(const v1::Trial& trial) {
  if (!trial.has_last_measurement()) return "starting";
  std::string step = "step " + std::to_string(trial.last_measurement().step());
  if (trial.has_total_steps()) step += "/" + std::to_string(trial.total_steps());
  return step;
}

}  // namespace

std::string Colours::Bold(const std::string& text) const {
  return on ? "\x1b[1m" + text + "\x1b[0m" : text;
}
std::string Colours::Good(const std::string& text) const {
  return on ? "\x1b[32m" + text + "\x1b[0m" : text;
}
std::string Colours::Bad(const std::string& text) const {
  return on ? "\x1b[31m" + text + "\x1b[0m" : text;
}
std::string Colours::Dim(const std::string& text) const {
  return on ? "\x1b[2m" + text + "\x1b[0m" : text;
}

std::string ProgressBar(double fraction, size_t width) {
  const size_t inside = width > 2 ? width - 2 : 0;
  const auto full =
      static_cast<size_t>(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(inside));
  std::string bar(full, '=');
  if (full < inside) bar += '>';
  return "[" + bar + std::string(inside - bar.size(), ' ') + "]";
}

std::vector<std::string> LiveView::Fold(const v1::WatchStudyResponse& change, WallTime now) {
  std::vector<std::string> lines;
  const auto state_before = study_.state();
  const bool first = state_before == v1::STUDY_STATE_UNSPECIFIED;
  best_before_.reset();
  if (study_.has_best_objective()) best_before_ = study_.best_objective();
  if (change.has_study()) {
    v1::StudySpec spec;
    spec.Swap(study_.mutable_spec());
    study_ = change.study();
    if (!study_.has_spec()) study_.mutable_spec()->Swap(&spec);  // The same as before.
  }
  if (change.snapshot()) running_.clear();
  for (const v1::Trial& trial : change.trials()) {
    FoldTrial(trial, change.snapshot(), now, columns, lines);
  }
  if (first && change.snapshot()) {
    const int64_t ended = EndedTrials(study_.counts());
    if (ended > 0) {
      lines.push_back(Fit(study_.spec().name(), 60) + ": " + std::to_string(ended) +
                      " trials have ended before");
    }
  } else if (study_.state() != state_before) {
    std::string line = Fit(study_.spec().name(), 60) + " is " + StateName(study_.state());
    if (!study_.state_why().empty()) line += ": " + Fit(study_.state_why(), 300);
    lines.push_back(line);
  }
  return lines;
}

void LiveView::FoldTrial(const v1::Trial& trial, bool snapshot, WallTime now,
                         std::vector<std::string>& lines) {
  const auto there = running_.find(trial.id());
  const bool was_running = there != running_.end();
  if (study_.has_best_trial() && study_.best_trial() == trial.id()) best_ = trial;
  if (trial.state() == v1::TRIAL_STATE_RUNNING) {
    const bool new_attempt = !was_running || there->second.attempts_size() != trial.attempts_size();
    running_[trial.id()] = trial;
    if (lines_ != Lines::kProgress || (snapshot && !new_attempt)) return;
    const auto last = last_line_.find(trial.id());
    if (!new_attempt && last != last_line_.end() && now - last->second < kProgressEvery) return;
    last_line_[trial.id()] = now;
    lines.push_back(new_attempt && !trial.has_last_measurement()
                        ? "trial " + std::to_string(trial.id()) + " started  " +
                              ShowParams(study_.spec(), trial)
                        : ProgressLine(trial, now));
    return;
  }
  running_.erase(trial.id());
  last_line_.erase(trial.id());
  if (IsEnded(trial.state())) {
    if (trial.has_started() && trial.has_ended()) {
      timed_seconds_ += Seconds(TimeOf(trial.ended()) - TimeOf(trial.started())).count();
      ++timed_ends_;
    }
    if (!snapshot) lines.push_back(EndLine(trial));
  } else if (was_running) {
    std::string line =
        "trial " + std::to_string(trial.id()) + " is " + StateName(trial.state()) + " again";
    if (trial.state() == v1::TRIAL_STATE_PAUSED)
      line = "trial " + std::to_string(trial.id()) + " is paused";
    if (trial.attempts_size() > 0) {
      const std::string& why = trial.attempts(trial.attempts_size() - 1).why();
      if (!why.empty()) line += ": " + ReasonLine(why);
    }
    lines.push_back(line);
  }
}

std::string LiveView::EndLine(const v1::Trial& trial) const {
  std::string line = "trial " + std::to_string(trial.id()) + " " + StateName(trial.state());
  const bool good =
      trial.state() == v1::TRIAL_STATE_COMPLETED || trial.state() == v1::TRIAL_STATE_STOPPED;
  line = good ? line : colours_.Bad(line);
  if (const std::string objective = ShowObjective(study_.spec(), trial); !objective.empty()) {
    line += "  " + objective;
  }
  if (trial.has_started() && trial.has_ended()) {
    line += "  in " + ShowDuration(TimeOf(trial.ended()) - TimeOf(trial.started()));
  }
  if (study_.has_best_trial() && study_.best_trial() == trial.id())
    line += colours_.Good("  best so far");
  const std::string params = ShowParams(study_.spec(), trial);
  if (!params.empty()) line += "  " + Fit(params, 2000);
  if (!good && !trial.end_why().empty()) line += "  " + ReasonLine(trial.end_why());
  return line;
}

std::string LiveView::ProgressLine(const v1::Trial& trial, WallTime now) const {
  std::string line = "trial " + std::to_string(trial.id()) + " " + StepOf(trial);
  if (const std::string objective = ShowObjective(study_.spec(), trial); !objective.empty()) {
    line += "  " + objective;
  }
  if (const auto left = TrialTimeLeft(trial, now)) line += "  ETA " + ShowDuration(*left);
  return line;
}

std::string LiveView::RunningLine(const v1::Trial& trial, WallTime now, size_t columns) const {
  constexpr size_t kBar = 12;
  std::string line = PaddedLeft("#" + std::to_string(trial.id()), 6) + "  ";
  const auto fraction = FractionOf(trial);
  line += fraction ? ProgressBar(*fraction, kBar) : std::string(kBar, ' ');
  line += "  " + Padded(StepOf(trial), 14);
  const std::string objective = ShowObjective(study_.spec(), trial);
  if (!objective.empty()) line += "  " + objective;
  line += "  " + ShowDuration(Elapsed(trial, now));
  if (const auto left = TrialTimeLeft(trial, now)) line += "  ETA " + ShowDuration(*left);
  line += "  " + ShowParams(study_.spec(), trial);
  return Fit(line, columns);
}

std::optional<Seconds> LiveView::TimeLeft(WallTime now) const {
  if (!study_.spec().budget().has_run_cap() || running_.empty()) return std::nullopt;
  Seconds running_left(0);
  std::optional<Seconds> mean;
  if (timed_ends_ > 0) mean = Seconds(timed_seconds_ / static_cast<double>(timed_ends_));
  for (const auto& [id, trial] : running_) {
    auto left = TrialTimeLeft(trial, now);
    if (!left && mean) left = std::max(Seconds(0), *mean - Elapsed(trial, now));
    if (!left) return std::nullopt;
    running_left += *left;
    if (!mean) mean = Elapsed(trial, now) + *left;
  }
  const int64_t to_start =
      std::max<int64_t>(0, study_.spec().budget().run_cap() - EndedTrials(study_.counts()) -
                               static_cast<int64_t>(running_.size()));
  return (running_left + *mean * static_cast<double>(to_start)) /
         static_cast<double>(running_.size());
}

std::string LiveView::StateLine(WallTime now, size_t columns) const {
  const v1::TrialCounts& counts = study_.counts();
  std::vector<std::string> parts = {Fit(study_.spec().name(), 30), StateName(study_.state())};
  std::string ended = std::to_string(EndedTrials(counts));
  if (study_.spec().budget().has_run_cap())
    ended += " of " + std::to_string(study_.spec().budget().run_cap());
  parts.push_back(ended + " ended");
  const auto add = [&](int64_t count, const char* what) {
    if (count > 0) parts.push_back(std::to_string(count) + " " + what);
  };
  add(counts.running(), "running");
  add(counts.queued(), "queued");
  add(counts.paused(), "paused");
  add(counts.infeasible(), "infeasible");
  add(counts.failed(), "failed");
  if (study_.has_created()) parts.push_back(ShowDuration(now - TimeOf(study_.created())));
  if (const auto left = TimeLeft(now)) parts.push_back("about " + ShowDuration(*left) + " left");
  return colours_.Bold(Fit(Joined(parts, " | "), columns));
}

std::string LiveView::BestLine(size_t columns) const {
  if (!study_.has_best_trial()) return colours_.Dim(Fit("no best trial yet", columns));
  std::string line = "best  #" + std::to_string(study_.best_trial());
  if (study_.has_best_objective() && study_.spec().metrics_size() > 0) {
    line += "  " + Fit(study_.spec().metrics(0).name(), 100) + " " +
            ShowNumber(study_.best_objective());
  }
  if (best_ && best_->id() == study_.best_trial()) line += "  " + ShowParams(study_.spec(), *best_);
  return colours_.Good(Fit(line, columns));
}

std::vector<std::string> LiveView::Frame(WallTime now, ScreenSize size) const {
  const size_t columns = size.columns > 1 ? size.columns - 1 : 1;
  std::vector<std::string> lines = {StateLine(now, columns), BestLine(columns)};
  constexpr size_t kKept = 4;  // State, best, "and n more", and the line that the cursor stands on.
  const size_t room = size.rows > kKept ? size.rows - kKept : 1;
  size_t shown = 0;
  for (const auto& [id, trial] : running_) {
    if (shown == room) break;
    lines.push_back(RunningLine(trial, now, columns));
    ++shown;
  }
  if (shown < running_.size()) {
    lines.push_back(
        Fit("        and " + std::to_string(running_.size() - shown) + " more running", columns));
  }
  return lines;
}

}  // namespace jizi::tuner
