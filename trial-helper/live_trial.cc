#include "trial-helper/live_trial.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "trial-helper/exit_code.h"
#include "trial-helper/params.h"
#include "trial-helper/terminate.h"

namespace jizi::helper {
namespace {

using nlohmann::json;
using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::steady_clock;

// After SIGTERM the worker's grace time runs: what is not sent by then is in the outbox.
constexpr duration<double> kFlushAtTerminate{3};

SteadyTime After(double seconds) {
  return steady_clock::now() + duration_cast<steady_clock::duration>(duration<double>(seconds));
}

void SetNow(google::protobuf::Timestamp& time) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  time.set_seconds(micros / 1'000'000);
  time.set_nanos(static_cast<int>(micros % 1'000'000) * 1000);
}

bool IsBatchSize(double size) {
  return size > 0 && std::isfinite(size);
}

std::string Encode(const LiveTrial::Shown& shown) {
  return json{{"stop", shown.stop},
              {"pause", shown.pause},
              {"by_signal", shown.by_signal},
              {"set", ToJson(shown.set)},
              {"roll_back_to", shown.roll_back_to},
              {"why", shown.why}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

LiveTrial::Shown DecodeShown(const std::string& bytes) {
  const json parsed = json::parse(bytes);
  LiveTrial::Shown shown;
  shown.stop = parsed.at("stop");
  shown.pause = parsed.at("pause");
  shown.by_signal = parsed.at("by_signal");
  shown.set = ParseParams(parsed.at("set").get<std::string>());
  shown.roll_back_to = parsed.at("roll_back_to");
  shown.why = parsed.at("why");
  return shown;
}

}  // namespace

bool Link::forked() const {
  return getpid() != process;
}

std::string Link::Broadcast(std::string bytes) const {
  if (several_ranks()) options.broadcast(bytes);
  return bytes;
}

LiveTrial::LiveTrial(std::shared_ptr<Link> its_link, Assigned its_assigned)
    : link(std::move(its_link)),
      assigned(std::move(its_assigned)),
      meter_(duration<double>(link->options.resources_every_s)),
      last_step_(assigned.last_step) {
  if (assigned.session) {
    session = std::make_unique<Session>(*link->client, *link->outbox, *assigned.session);
  }
  outcome.mutable_finished();
}

int64_t LiveTrial::Send(int64_t step, const Metrics& metrics,
                        const std::optional<v1::GradientStatistics>& gradient) {
  if (step < 0 || step < last_step_) {
    if (!std::exchange(said_step_, true)) {
      SayLine(
          "trial " + std::to_string(assigned.id) + ": a report of step " + std::to_string(step) +
          " is not sent: step " + std::to_string(last_step_) +
          " was reported before, and steps must not fall (a trial that starts from a checkpoint "
          "goes on after StartStep())");
    }
    return 0;
  }
  last_step_ = step;
  v1::Measurement measurement = Fitting(step, metrics, gradient);
  if (session == nullptr || link->forked()) return 0;
  return session->Report(std::move(measurement), std::exchange(total_steps_, std::nullopt));
}

// One value that the service would not take costs itself alone.
v1::Measurement LiveTrial::Fitting(int64_t step, const Metrics& metrics,
                                   const std::optional<v1::GradientStatistics>& gradient) {
  v1::Measurement measurement;
  measurement.set_step(step);
  const auto add = [&](const std::string& name, double value) {
    if (const std::string wrong = WrongMetricName(name); !wrong.empty()) {
      LeaveOut(wrong);
    } else if (measurement.metrics().size() >= kMaxMetrics &&
               !measurement.metrics().contains(name)) {
      LeaveOut("metric '" + name + "': a report holds at most 1000 metrics");
    } else {
      (*measurement.mutable_metrics())[name] = value;
    }
  };
  for (const auto& [name, value] : metrics) add(name, value);
  for (const auto& [name, value] : meter_.Due(step)) add(name, value);
  if (gradient && IsBatchSize(gradient->small_batch_size()) &&
      IsBatchSize(gradient->big_batch_size())) {
    *measurement.mutable_gradient() = *gradient;
  } else if (gradient) {
    LeaveOut("gradient statistics: a batch size must be a positive number");
  }
  SetNow(*measurement.mutable_time());
  return measurement;
}

void LiveTrial::LeaveOut(const std::string& what) {
  if (std::exchange(said_left_out_, true)) return;
  SayLine("trial " + std::to_string(assigned.id) + ": left out of its reports, as is all that is " +
          "no better: " + what);
}

void LiveTrial::PlanSteps(int64_t steps) {
  if (steps >= 0) {
    total_steps_ = steps;
  } else {
    LeaveOut("a plan of " + std::to_string(steps) + " steps");
  }
}

void LiveTrial::Apply(const Shown& shown) {
  for (const auto& [name, value] : shown.set) assigned.params[name] = value;
  if (shown.roll_back_to >= 0) last_step_ = std::min(last_step_, shown.roll_back_to);
  if (shown.by_signal) left_by_signal = true;
}

void LiveTrial::TakeInto(Shown& shown) {
  if (session == nullptr || link->forked()) return;
  const Told told = session->Take();
  if (told.stop || told.pause || told.lost) {
    stop_ = true;
    pause_ = told.pause || (pause_ && !told.stop);
    stop_why_ = told.why;
  }
  Shown news;
  news.set = told.set;
  news.roll_back_to = told.roll_back_to.value_or(-1);
  Apply(news);
  for (const auto& [name, value] : told.set) shown.set[name] = value;
  if (told.roll_back_to) shown.roll_back_to = *told.roll_back_to;
  if (!told.why.empty()) shown.why = told.why;
  if (stop_) {
    shown.stop = true;
    shown.pause = pause_;
    shown.why = stop_why_;
  }
}

LiveTrial::Shown LiveTrial::Collective(int64_t report, Shown shown) {
  if (link->talks()) {
    if (report > 0) session->WaitForAnswer(report, duration<double>(link->options.report_wait_s));
    TakeInto(shown);
    if (!shown.stop && TerminateSeen()) {
      shown.stop = true;
      shown.by_signal = true;
      shown.why = "this process is to end (SIGTERM)";
    }
  }
  shown = DecodeShown(link->Broadcast(Encode(shown)));
  Apply(shown);
  return shown;
}

void LiveTrial::SayUnread() const {
  // A command with the parameters in it may have read its flags.
  if (!link->talks() || link->env.one_trial || !outcome.has_finished() || link->said_unread) return;
  std::string names;
  int unread = 0;
  for (const auto& [name, value] : assigned.params) {
    if (link->read_params.contains(name)) continue;
    names += (names.empty() ? "" : ", ") + name;
    ++unread;
  }
  if (unread == 0) return;
  link->said_unread = true;
  SayLine(std::string("the parameter") + (unread > 1 ? "s " : " ") + names + " of the sweep " +
          (unread > 1 ? "were" : "was") +
          " never read by this program: compare the names in Get with those in the sweep file");
}

// What the trial's end means for the service; see ~Trial.
void LiveTrial::Complete() {
  const double wait = link->options.flush_wait_s;
  if (left_by_signal && !stop_) {
    session->Flush(After(std::min(wait, kFlushAtTerminate.count())));
  } else if (!session->Complete(outcome, After(wait))) {
    link->unanswered = true;
    std::string why;
    if (!outcome.has_finished()) {
      TellByExitCode();
      why = outcome.has_failed()
                ? " (it failed: " + outcome.failed().why() + ")"
                : " (its parameters never work: " + outcome.infeasible().why() + ")";
    }
    SayLine("trial " + std::to_string(assigned.id) + why +
            ": the service did not take its end within " + std::to_string(static_cast<int>(wait)) +
            " s; " +
            (link->outbox->path().empty()
                 ? "what was not sent is lost"
                 : "what was not sent is in " + link->outbox->path() + " and its worker sends it"));
  }
}

}  // namespace jizi::helper
