#include "tuner-service/cli/view.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <queue>

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

// The columns that StepOf takes at most.
size_t StepWidth(const v1::Trial& trial) {
  const size_t total = std::to_string(trial.total_steps()).size();
  return trial.has_total_steps() ? 6 + 2 * total : StepOf(trial).size();
}

std::string Name(const v1::Trial& trial) {
  return "trial " + std::to_string(trial.id());
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

std::vector<std::string> LiveView::Fold(const v1::WatchStudyResponse& change, WallTime now,
                                        size_t columns) {
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
      lines.push_back(Fit(study_.spec().name(), 60) + ": " + TrialsHave(ended) + " ended before");
    }
  } else if (study_.state() != state_before && study_.state() != v1::STUDY_STATE_FINISHED) {
    std::string line = Fit(study_.spec().name(), 60) + " is " + StateName(study_.state());
    if (!study_.state_why().empty()) line += ": " + Fit(study_.state_why(), 300);
    lines.push_back(line);
  }
  return lines;
}

void LiveView::FoldTrial(const v1::Trial& trial, bool snapshot, WallTime now, size_t columns,
                         std::vector<std::string>& lines) {
  const bool was_running = running_.contains(trial.id());
  if (study_.has_best_trial() && study_.best_trial() == trial.id()) best_ = trial;
  CountTime(trial);
  const bool told = TellAttempts(trial, snapshot, lines);
  if (trial.state() == v1::TRIAL_STATE_RUNNING) {
    FoldRunning(trial, snapshot, now, lines);
    return;
  }
  running_.erase(trial.id());
  last_line_.erase(trial.id());
  if (IsEnded(trial.state())) {
    told_attempts_.erase(trial.id());
    if (trial.attempts_size() > 0) {
      timed_seconds_ += TimeRun(trial, now).count();
      ++timed_ends_;
    }
    if (!snapshot) lines.push_back(EndLine(trial, columns));
  } else if (was_running && !told) {
    const bool paused = trial.state() == v1::TRIAL_STATE_PAUSED;
    std::string line =
        Name(trial) + " is " + (paused ? "paused" : StateName(trial.state()) + " again");
    if (trial.attempts_size() > 0) {
      const std::string& why = trial.attempts(trial.attempts_size() - 1).why();
      if (!why.empty()) line += ": " + ReasonLine(why);
    }
    lines.push_back(line);
  }
}

void LiveView::FoldRunning(const v1::Trial& trial, bool snapshot, WallTime now,
                           std::vector<std::string>& lines) {
  const auto there = running_.find(trial.id());
  const bool new_attempt =
      there == running_.end() || there->second.attempts_size() != trial.attempts_size();
  running_[trial.id()] = trial;
  if (lines_ != Lines::kProgress || (snapshot && !new_attempt)) return;
  const auto last = last_line_.find(trial.id());
  if (!new_attempt && last != last_line_.end() && now - last->second < kProgressEvery) return;
  last_line_[trial.id()] = now;
  lines.push_back(new_attempt && !trial.has_last_measurement()
                      ? Name(trial) + " started  " + ShowParams(study_.spec(), trial)
                      : ProgressLine(trial, now));
}

// Attempts that failed or were lost, and that are tried again: each once, also where the next one
// runs already. The last of an ended trial is told with its end.
bool LiveView::TellAttempts(const v1::Trial& trial, bool snapshot,
                            std::vector<std::string>& lines) {
  bool said = false;
  int& told = told_attempts_[trial.id()];
  for (int i = told; i < trial.attempts_size(); ++i) {
    const v1::Attempt& attempt = trial.attempts(i);
    if (attempt.end() == v1::ATTEMPT_END_UNSPECIFIED) break;
    told = i + 1;
    const bool failed = attempt.end() == v1::ATTEMPT_END_FAILED;
    if (snapshot || (!failed && attempt.end() != v1::ATTEMPT_END_LOST)) continue;
    if (IsEnded(trial.state()) && told == trial.attempts_size()) continue;
    std::string line = Name(trial) + (failed ? " failed" : " was lost") + " and is tried again";
    if (!attempt.why().empty()) line += ": " + ReasonLine(attempt.why());
    lines.push_back(failed ? colours_.Bad(line) : line);
    said = true;
  }
  return said;
}

void LiveView::CountTime(const v1::Trial& trial) {
  for (const v1::Attempt& attempt : trial.attempts()) {
    if (attempt.end() == v1::ATTEMPT_END_UNSPECIFIED || attempt.end() == v1::ATTEMPT_END_LOST)
      continue;
    WallTime from = TimeOf(attempt.started());
    WallTime to = TimeOf(attempt.ended());
    if (to <= from) continue;
    auto next = ran_.upper_bound(from);
    if (next != ran_.begin() && std::prev(next)->second >= from) --next;
    while (next != ran_.end() && next->first <= to) {
      from = std::min(from, next->first);
      to = std::max(to, next->second);
      next = ran_.erase(next);
    }
    ran_[from] = to;
  }
}

Seconds LiveView::TimeRunning(WallTime now) const {
  WallTime live = now;  // Since when something has been running without a pause.
  for (const auto& [id, trial] : running_) live = std::min(live, StartOf(trial));
  Seconds total(now - live);
  for (const auto& [from, to] : ran_)
    total += std::max(Seconds(0), Seconds(std::min(to, live) - from));
  return total;
}

// Each parameter in a column of its own, as wide as its values were so far.
std::string LiveView::AlignedParams(const v1::Trial& trial, size_t columns) {
  std::vector<std::string> items;
  for (std::string& item : ParamItems(study_.spec(), trial)) {
    constexpr size_t kWidest = 30;
    size_t& width = widths_[item.substr(0, item.find('='))];
    width = std::max(width, std::min(kWidest, Width(item)));
    items.push_back(Width(item) > width ? std::move(item) : Padded(item, width));
  }
  std::string line = FitItems(items, columns);
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

std::string LiveView::EndLine(const v1::Trial& trial, size_t columns) {
  const bool good =
      trial.state() == v1::TRIAL_STATE_COMPLETED || trial.state() == v1::TRIAL_STATE_STOPPED;
  const bool best = study_.has_best_trial() && study_.best_trial() == trial.id() &&
                    (!best_before_ || !trial.has_objective() || *best_before_ != trial.objective());
  const std::string why = good ? "" : ReasonLine(trial.end_why());
  const std::string number = ObjectiveNumber(study_.spec(), trial);
  const std::string time =
      trial.attempts_size() > 0 ? ShowDuration(TimeRun(trial, TimeOf(trial.ended()))) : "";
  if (columns == 0) {
    std::string line = Name(trial) + " " + StateName(trial.state());
    if (!number.empty()) line += "  " + ShowObjective(study_.spec(), trial);
    if (!time.empty()) line += "  in " + time;
    if (best) line += "  best so far";
    const std::string params = Fit(ShowParams(study_.spec(), trial), 2000);
    for (const std::string& part : {why, params}) line += part.empty() ? "" : "  " + part;
    return line;
  }
  --columns;  // The last one would break the line on some terminals.
  const size_t digits = std::to_string(study_.spec().budget().run_cap()).size();
  const std::string id = PaddedLeft(std::to_string(trial.id()), std::max<size_t>(2, digits));
  std::string head = Fit("trial " + id + " " + Padded(StateName(trial.state()), 10), columns);
  std::string line;
  if (study_.spec().metrics_size() > 0 && why.empty()) {
    line += "  " + (number.empty() ? "" : Fit(study_.spec().metrics(0).name(), 20) + " ") +
            Padded(number, 9);
  }
  line += "  " + (time.empty() ? std::string(10, ' ') : "in " + PaddedLeft(time, 7));
  const std::string mark = best ? "  best so far" : "";
  line = Fit(line + (why.empty() ? "" : "  " + why), columns - Width(head));
  const size_t used = Width(head) + Width(line);
  constexpr size_t kMark = 13;
  const size_t room = columns - used;
  head = good ? head : colours_.Bad(head);
  if (room < kMark) return head + line;
  // At the end of the line where there is no column for it.
  const bool wide = columns >= 120 && why.empty();
  line += wide ? colours_.Good(Padded(mark, kMark)) : colours_.Good(mark);
  const size_t left = room - (wide ? kMark : Width(mark));
  if (left > 4) line += "  " + AlignedParams(trial, left - 2);
  return head + line;
}

std::string LiveView::ProgressLine(const v1::Trial& trial, WallTime now) const {
  std::string line = Name(trial) + " " + StepOf(trial);
  if (const std::string objective = ShowObjective(study_.spec(), trial); !objective.empty()) {
    line += "  " + objective;
  }
  if (const auto left = TrialTimeLeft(trial, now)) line += "  ETA " + ShowDuration(*left);
  return line;
}

// Every part has a width of its own, so that nothing moves from frame to frame.
std::string LiveView::RunningLine(const v1::Trial& trial, WallTime now, size_t steps,
                                  size_t columns) const {
  const bool wide = columns >= 100;
  const size_t bar = wide ? 12 : 8;
  constexpr size_t kNumber = 9;
  constexpr size_t kTime = 7;  // "59m 59s"
  const size_t digits = std::to_string(study_.spec().budget().run_cap()).size();
  std::string line =
      PaddedLeft("#" + std::to_string(trial.id()), std::max<size_t>(4, digits + 1)) + "  ";
  const auto fraction = FractionOf(trial);
  line += fraction ? ProgressBar(*fraction, bar) : std::string(bar, ' ');
  line += "  " + Padded(StepOf(trial), steps) + "  ";
  if (study_.spec().metrics_size() > 0) {
    // Narrow: its name stands in the best trial's line.
    if (wide)
      line += Padded(study_.spec().metrics(0).name() + " ",
                     std::min<size_t>(21, Width(study_.spec().metrics(0).name()) + 1));
    line += Padded(ObjectiveNumber(study_.spec(), trial), kNumber) + "  ";
  }
  line += PaddedLeft(ShowDuration(Elapsed(trial, now)), kTime) + "  ";
  const auto left = TrialTimeLeft(trial, now);
  line += left ? "ETA " + PaddedLeft(ShowDuration(*left), kTime) : std::string(4 + kTime, ' ');
  const size_t used = Width(line) + 2;
  if (used < columns) line += "  " + FitItems(ParamItems(study_.spec(), trial), columns - used);
  return Fit(line, columns);
}

std::optional<Seconds> LiveView::TimeLeft(WallTime now) const {
  if (!study_.spec().budget().has_run_cap() || running_.empty()) return std::nullopt;
  std::optional<Seconds> mean;
  if (timed_ends_ > 0) mean = Seconds(timed_seconds_ / static_cast<double>(timed_ends_));
  Seconds known(0);
  int64_t known_count = 0;
  for (const auto& [id, trial] : running_) {
    if (const auto left = TrialTimeLeft(trial, now)) {
      known += TimeRun(trial, now) + *left;
      ++known_count;
    }
  }
  if (!mean && known_count > 0) mean = known / static_cast<double>(known_count);
  if (!mean) return std::nullopt;
  // When each worker is free, the first on top.
  std::priority_queue<double, std::vector<double>, std::greater<>> free;
  double last = 0;
  for (const auto& [id, trial] : running_) {
    const auto own = TrialTimeLeft(trial, now);
    const double ends = own ? own->count() : std::max(0.0, (*mean - Elapsed(trial, now)).count());
    free.push(ends);
    last = std::max(last, ends);
  }
  const auto workers = static_cast<int64_t>(running_.size());
  int64_t to_start = std::max<int64_t>(
      0, study_.spec().budget().run_cap() - EndedTrials(study_.counts()) - workers);
  // Of a great many, whole rounds are added at the end, and the rest is dealt out one by one.
  constexpr int64_t kDealt = 10'000;
  const int64_t rounds = std::max<int64_t>(0, to_start - kDealt) / workers;
  for (to_start -= rounds * workers; to_start > 0; --to_start) {
    const double ends = free.top() + mean->count();
    free.pop();
    free.push(ends);
    last = std::max(last, ends);
  }
  last += static_cast<double>(rounds) * mean->count();
  return Seconds(last);
}

std::string LiveView::StateLine(WallTime now, size_t columns) const {
  const v1::TrialCounts& counts = study_.counts();
  std::vector<std::string> parts = {StateName(study_.state())};
  std::string ended = std::to_string(EndedTrials(counts));
  if (study_.spec().budget().has_run_cap())
    ended += " of " + std::to_string(study_.spec().budget().run_cap());
  parts.push_back(ended + " ended");
  const auto add = [&](int64_t count, const char* what) {
    if (count > 0) parts.push_back(std::to_string(count) + " " + what);
  };
  add(counts.failed(), "failed");
  add(counts.running(), "running");
  parts.push_back(ShowDuration(TimeRunning(now)));
  if (const auto left = TimeLeft(now)) parts.push_back("about " + ShowDuration(*left) + " left");
  add(counts.queued(), "queued");
  add(counts.paused(), "paused");
  add(counts.infeasible(), "infeasible");
  // The name gives way to what changes.
  const std::string rest = " | " + Joined(parts, " | ");
  constexpr size_t kShortest = 8;
  const size_t room = columns > Width(rest) ? columns - Width(rest) : 0;
  const size_t name = std::clamp<size_t>(room, kShortest, 60);
  return colours_.Bold(Fit(Fit(study_.spec().name(), name) + rest, columns));
}

std::string LiveView::BestLine(size_t columns) const {
  if (!study_.has_best_trial()) return colours_.Dim(Fit("no best trial yet", columns));
  std::string line = "best  #" + std::to_string(study_.best_trial());
  if (study_.has_best_objective() && study_.spec().metrics_size() > 0) {
    line += "  " + Fit(study_.spec().metrics(0).name(), 100) + " " +
            ShowNumber(study_.best_objective());
  }
  const size_t used = Width(line) + 2;
  if (best_ && best_->id() == study_.best_trial() && used < columns)
    line += "  " + FitItems(ParamItems(study_.spec(), *best_), columns - used);
  return colours_.Good(Fit(line, columns));
}

std::vector<std::string> LiveView::Frame(WallTime now, ScreenSize size) const {
  const size_t columns = size.columns > 1 ? size.columns - 1 : 1;
  std::vector<std::string> lines = {StateLine(now, columns), BestLine(columns)};
  // Half of the rows: above them stands what happened.
  const size_t most = std::max<size_t>(3, size.rows / 2);
  const size_t room = running_.size() + 2 <= most ? running_.size() : most - 3;
  size_t steps = 8;  // "starting"
  for (const auto& [id, trial] : running_) steps = std::max(steps, StepWidth(trial));
  size_t shown = 0;
  for (const auto& [id, trial] : running_) {
    if (shown == room) break;
    lines.push_back(RunningLine(trial, now, steps, columns));
    ++shown;
  }
  if (shown < running_.size()) {
    lines.push_back(
        Fit("... and " + std::to_string(running_.size() - shown) + " more running", columns));
  }
  return lines;
}

}  // namespace jizi::tuner
