// While a slot's program runs: its lease, its time, and which trial it holds.

#include <sys/stat.h>

#include <algorithm>
#include <chrono>

#include "tuner-service/workers/service_calls.h"
#include "tuner-service/workers/slot.h"
#include "tuner-service/workers/trial_folder.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Stub = v1::TuneService::Stub;
using Seconds = std::chrono::duration<double>;

constexpr milliseconds kLookEvery{1000};
constexpr milliseconds kFirstLooks{200};  // While the process is young.
constexpr std::chrono::seconds kYoung{3};
// A process that holds no trial, of which no more is to come: its own trial has ended (it has this
// long for what it still does), or its lease was lost (it hangs).
constexpr std::chrono::seconds kIdle{60};
constexpr std::chrono::hours kNever{24 * 365};

std::string TimeText(Seconds time) {
  std::string text = std::to_string(time.count());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

}  // namespace

JobEnd Slot::Watch(Running& running) {
  for (;;) {
    {
      const Time wake = NextWake(running);
      MutexLock lock(mutex_);
      bool in_time = true;
      while (in_time && !end_ && lines_.empty() && said_.empty()) {
        in_time = changed_.WaitUntil(mutex_, wake);
      }
    }
    TellSaid();
    TakeLines(running);
    std::optional<JobEnd> end;
    {
      MutexLock lock(mutex_);
      if (end_) running.limit.reset();  // It has kept it.
      // Lines come before the end, but one may have come since TakeLines.
      if (end_ && lines_.empty()) end = std::move(end_);
    }
    if (end) return *std::move(end);
    const auto now = steady_clock::now();
    if (LimitReached(running)) EndForLimit(running);
    if (now >= running.next_look) Look(running);
    if (!running.attached && !running.lost && now >= running.next_renew) Renew(running);
    const bool send = now >= running.next_send || (running.printed.Enough() && !running.away);
    if (send && !running.printed.empty()) SendPrinted(running);
  }
}

bool Slot::LimitReached(const Running& running) const {
  return running.limit && running.over_limit.empty() && steady_clock::now() >= *running.limit;
}

Slot::Time Slot::NextWake(const Running& running) {
  Time wake = std::min(running.next_look, steady_clock::now() + kNever);
  if (!running.attached && !running.lost) wake = std::min(wake, running.next_renew);
  if (!running.printed.empty()) wake = std::min(wake, running.next_send);
  if (running.limit && running.over_limit.empty()) wake = std::min(wake, *running.limit);
  return wake;
}

void Slot::EndForLimit(Running& running) {
  // A process that takes trial after trial may hold the next one since a moment ago.
  if (!running.one_trial) Look(running);
  if (!running.limit || steady_clock::now() < *running.limit) return;
  running.over_limit = "ran longer than its time limit of " + TimeText(*options_.launch.time_limit);
  running.job->End(options_.launch.grace);
}

// The study or the trial is not there any more, so nobody wants what the program computes.
void Slot::EndDeleted(Running& running, const Status& why) {
  if (running.lost) return;
  running.lost = true;
  DiscardPrinted(running);
  Note("trial " + std::to_string(running.held.trial().id()) + ": " + ForPeople(why));
  running.job->End(options_.launch.grace);
}

// Which trial does this worker hold, and has a helper attached?
void Slot::Look(Running& running) {
  const auto now = steady_clock::now();
  running.next_look = now + (now < running.started + kYoung ? kFirstLooks : kLookEvery);
  v1::ListTrialsRequest request;
  request.set_study(options_.study);
  request.set_worker(place_.worker);
  request.set_page_size(2);
  const auto page = client_.Call(&Stub::ListTrials, request, kWorkerCallDeadline);
  if (page.status().code() == StatusCode::kNotFound) EndDeleted(running, page.status());
  if (!page.ok()) return;
  if (page->trials().empty()) {
    LookAtEmpty(running);
    return;
  }
  running.empty_since.reset();
  const v1::Trial& trial = page->trials(0);
  if (trial.attempts().empty()) return;
  const v1::Attempt& attempt = trial.attempts(trial.attempts_size() - 1);
  if (trial.id() != running.held.trial().id() ||
      attempt.number() != running.held.lease().attempt()) {
    Switch(running, trial.id());
  } else {
    running.attached = running.attached || attempt.capabilities().stop();
  }
  if (running.attached) DiscardPrinted(running);
  // One trial, and its helper is there: nothing more to learn before the exit but that it is done.
  if (running.attached && running.one_trial) running.next_look = now + 10 * kLookEvery;
}

// It holds nothing: a helper has completed its trial, or the lease was lost.
void Slot::LookAtEmpty(Running& running) {
  const auto now = steady_clock::now();
  if (!running.empty_since) running.empty_since = now;
  if (!running.over && !running.lost) {
    v1::GetTrialRequest request;
    request.set_study(options_.study);
    request.set_trial(running.held.trial().id());
    request.set_max_measurements(1);
    const auto answer = client_.Call(&Stub::GetTrial, request, kWorkerCallDeadline);
    if (!answer.ok() && IsAway(answer.status())) return;
    const int number = running.held.lease().attempt();
    v1::AttemptEnd how = v1::ATTEMPT_END_LOST;
    if (answer.ok() && number >= 1 && number <= answer->trial().attempts_size()) {
      how = answer->trial().attempts(number - 1).end();
    }
    if (how == v1::ATTEMPT_END_UNSPECIFIED) return;  // Taken back meanwhile.
    if (how == v1::ATTEMPT_END_LOST) {
      if (!running.attached) running.next_renew = now;  // It may come back; Renew tells.
    } else {
      running.over = running.attached = true;
      running.limit.reset();  // It was that trial's.
      DiscardPrinted(running);
    }
  }
  // One that takes trial after trial may wait for the next as long as the service says.
  if ((running.one_trial || !running.over) && now - *running.empty_since > kIdle) {
    running.job->End(options_.launch.grace);
    running.empty_since = now;
  }
}

// The process went on to another trial under the same worker (contract 19).
void Slot::Switch(Running& running, int64_t trial) {
  v1::AttachRequest attach;
  attach.mutable_lease()->set_study(options_.study);
  attach.set_worker(place_.worker);
  const auto state = client_.Call(&Stub::Attach, attach, kWorkerCallDeadline);
  if (!state.ok() || state->held().empty() || state->held(0).trial().id() != trial) return;
  const StatusOr<std::string> folder = MakeTrialFolder(options_.folder, trial);
  if (!folder.ok()) {
    Note(ForPeople(folder.status()));
  } else {
    running.folder = *folder;
    running.job->SwitchFolder(*folder);  // Where its helper has not marked the output itself.
    // Its helper may be writing the same; the program has its parameters from the service.
    [[maybe_unused]] const auto written = WriteParams(*folder, state->held(0).trial());
  }
  running.held = state->held(0);
  running.attached = true;  // Who else asked for it?
  running.over = false;
  running.started = steady_clock::now();
  if (options_.launch.time_limit) {
    running.limit =
        running.started + std::chrono::duration_cast<milliseconds>(*options_.launch.time_limit);
  }
}

void Slot::Renew(Running& running) {
  v1::RenewRequest request;
  *request.add_leases() = running.held.lease();
  const auto answer = client_.Call(&Stub::Renew, request, kWorkerCallDeadline);
  const auto now = steady_clock::now();
  running.next_renew = now + kLookEvery;
  if (answer.status().code() == StatusCode::kNotFound) EndDeleted(running, answer.status());
  if (!answer.ok() || answer->leases().empty()) return;
  const v1::RenewResponse::Renewed& renewed = answer->leases(0);
  if (!renewed.held()) {
    running.lost = true;
    DiscardPrinted(running);
    Note("trial " + std::to_string(running.held.trial().id()) + ": the lease was lost");
    running.job->End(options_.launch.grace);
    return;
  }
  running.next_renew =
      now + std::chrono::duration_cast<milliseconds>(Seconds(renewed.lease_s() / 3));
  Obey(running, renewed.directive());
}

// A program that links nothing can only be told by a signal.
void Slot::Obey(Running& running, const v1::Directive& directive) {
  if (running.told || running.attached || (!directive.has_stop() && !directive.has_pause())) return;
  running.told = true;
  running.job->End(options_.launch.grace);
}

}  // namespace jizi::tuner
