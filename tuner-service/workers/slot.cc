#include "tuner-service/workers/slot.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/utf8.h"
#include "tuner-service/workers/service_calls.h"
#include "tuner-service/workers/trial_folder.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Stub = v1::TuneService::Stub;
using Seconds = std::chrono::duration<double>;

constexpr Seconds kQuickFailure{1};
constexpr Seconds kLongestBackOff{5};
constexpr int kSequenceRepairs = 3;
constexpr size_t kMostWhyBytes = 64 << 10;  // The service cuts it shorter.

// "exit code 1: ValueError: no such file"; below it the last lines of stderr. The first line is
// what people see as it happens.
std::string WithTail(std::string why, const std::string& error_tail) {
  constexpr size_t kHintBytes = 160;
  if (error_tail.empty()) return why;
  const size_t end = error_tail.find_last_not_of(" \t\r\n");
  if (end != std::string::npos) {
    const size_t begin = error_tail.find_last_of("\r\n", end) + 1;  // npos + 1 is 0.
    why += ": " + Utf8Text(error_tail.substr(begin, end + 1 - begin), kHintBytes);
  }
  return why + "\n" + error_tail;
}

// Every helper declares that it can stop.
bool HasHelper(const v1::Assignment& held) {
  const int number = held.lease().attempt();
  return number >= 1 && number <= held.trial().attempts_size() &&
         held.trial().attempts(number - 1).capabilities().stop();
}

bool SameAttempt(const v1::Lease& a, const v1::Lease& b) {
  return a.trial() == b.trial() && a.attempt() == b.attempt();
}

}  // namespace

Slot::Slot(const WorkerOptions& options, Client& client, Executor& executor, Place place)
    : options_(options), client_(client), executor_(executor), place_(std::move(place)) {}

void Slot::Stop(Worker::StopMode mode) {
  MutexLock lock(mutex_);
  if (!stop_ || mode == Worker::StopMode::kKill) stop_ = mode;
  EndStopped();
  changed_.NotifyAll();
}

// Not left to Run's thread, which may be in the middle of a call.
void Slot::EndStopped() {
  if (!stop_ || job_ == nullptr || end_) return;
  job_stopped_ = true;
  job_->End(*stop_ == Worker::StopMode::kKill ? Seconds(0) : options_.launch.grace);
}

void Slot::TakeNoMore() {
  MutexLock lock(mutex_);
  no_more_ = true;
  changed_.NotifyAll();
}

// Asked again after a while, unless it is told before.
bool Slot::TakesMore(Seconds after) {
  const auto until = steady_clock::now() + std::chrono::duration_cast<milliseconds>(after);
  MutexLock lock(mutex_);
  while (!stop_ && !no_more_ && changed_.WaitUntil(mutex_, until)) {
  }
  return !stop_ && !no_more_;
}

std::optional<Worker::StopMode> Slot::stop_mode() {
  MutexLock lock(mutex_);
  return stop_;
}

bool Slot::Pause(Seconds wait) {
  const auto until = steady_clock::now() + std::chrono::duration_cast<milliseconds>(wait);
  MutexLock lock(mutex_);
  while (!stop_ && changed_.WaitUntil(mutex_, until)) {
  }
  return !stop_;
}

void Slot::Note(const std::string& text) const {
  if (options_.note) options_.note(text);
}

template <typename Request, typename Response>
StatusOr<Response> Slot::Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                           Response*),
                              const Request& request) {
  const auto deadline =
      steady_clock::now() + std::chrono::duration_cast<milliseconds>(options_.give_up);
  bool said = false;
  return CallUntil(client_, method, request, deadline, [&](milliseconds wait) {
    if (!said) Note("the service is away: " + place_.worker + " keeps trying");
    said = true;
    return Pause(wait);
  });
}

Status Slot::Run() {
  Answer answer;
  Status status;
  while (TakesMore()) {
    if (!answer) {
      StatusOr<Answer> suggested = Suggest();
      if (!suggested.ok()) {
        if (!stop_mode()) status = suggested.status();
        break;
      }
      answer = *std::move(suggested);
    }
    if (answer->has_finished()) break;
    const bool assigned = answer->has_trials() && answer->trials().assignments_size() > 0;
    if (!assigned) {
      TakesMore(Seconds(std::clamp(answer->wait().retry_after_s(), 0.05, 60.0)));
      answer.reset();
      continue;
    }
    StatusOr<Answer> next = RunAttempt(answer->trials().assignments(0));
    if (!next.ok()) {
      if (!stop_mode()) status = next.status();
      break;
    }
    answer = *std::move(next);
  }
  LetGo();
  return status;
}

v1::SuggestRequest Slot::SuggestRequest() const {
  v1::SuggestRequest request;
  request.set_study(options_.study);
  request.set_worker(place_.worker);
  request.set_sequence(sequence_);
  request.set_count(1);
  request.set_lease_s(options_.lease_s);
  return request;
}

StatusOr<Slot::Answer> Slot::Suggest() {
  for (int repairs = 0;; ++repairs) {
    StatusOr<v1::SuggestResponse> answer = Call(&Stub::Suggest, SuggestRequest());
    if (answer.ok()) {
      Count(*answer);
      return Answer(*std::move(answer));
    }
    const std::string code = DetailOf(answer.status()).code;
    const bool out_of_step =
        code == "STALE_SEQUENCE" || code == "SEQUENCE_GAP" || code == "SEQUENCE_REUSED";
    if (!out_of_step || repairs >= kSequenceRepairs) return answer.status();
    v1::AttachRequest attach;  // A helper of ours asked meanwhile.
    attach.mutable_lease()->set_study(options_.study);
    attach.set_worker(place_.worker);
    sequence_ = TRY(Call(&Stub::Attach, attach)).next_worker_sequence();
  }
}

// A wait is recorded nowhere: its number goes to the next call, so that a late copy of this one
// cannot take a trial that nobody would run.
void Slot::Count(const v1::SuggestResponse& answer) {
  if (!answer.has_wait()) ++sequence_;
}

StatusOr<Slot::Answer> Slot::RunAttempt(const v1::Assignment& assignment) {
  Running running;
  running.held = assignment;
  running.first = assignment.lease();
  running.one_trial = CarriesParameters(options_.launch) && !options_.launch.reuse_process;
  running.started = running.next_send = steady_clock::now();
  running.next_look = running.started;
  running.next_renew =
      running.started + std::chrono::duration_cast<milliseconds>(Seconds(assignment.lease_s() / 3));
  if (options_.launch.time_limit) {
    running.limit =
        running.started + std::chrono::duration_cast<milliseconds>(*options_.launch.time_limit);
  }
  const Status started = StartJob(running);
  if (!started.ok()) {
    Note("trial " + std::to_string(assignment.trial().id()) + ": " + ForPeople(started));
    // The supervisor's end or the machine's fault: no trial is to blame for that.
    const bool gone = started.code() == StatusCode::kUnavailable;
    StatusOr<Answer> next =
        Ended(running, {.release = gone, .last = gone, .why = ForPeople(started)});
    return gone ? started : next;
  }
  const JobEnd end = Watch(running);
  {
    MutexLock lock(mutex_);
    job_ = nullptr;
    running.stopped = std::exchange(job_stopped_, false);
  }
  running.job.reset();
  StatusOr<Answer> next = Ended(running, VerdictOf(running, end));
  if (end.lost.ok() || !next.ok()) return next;
  return end.lost;
}

Slot::Verdict Slot::VerdictOf(const Running& running, const JobEnd& end) const {
  if (running.stopped) return {.release = true, .why = "its worker was stopped"};
  const bool lost = !end.lost.ok();
  if (!running.over_limit.empty()) return {.last = lost, .why = running.over_limit};
  if (running.told || end.succeeded()) return {.finished = true, .last = lost, .why = ""};
  if (lost) return {.release = true, .last = true, .why = std::string(end.lost.message())};
  std::string why = end.signal != 0 ? "killed by signal " + std::to_string(end.signal) + " (" +
                                          strsignal(end.signal) + ")"
                                    : "exit code " + std::to_string(end.exit_code);
  if (options_.launch.ranks > 1) why = "rank " + std::to_string(end.rank) + ": " + why;
  return {.why = WithTail(std::move(why), end.error_tail)};
}

// The program is gone: what it left unsaid, then how it ended.
StatusOr<Slot::Answer> Slot::Ended(Running& running, const Verdict& verdict) {
  const bool quick = !verdict.release && !verdict.finished &&
                     steady_clock::now() - running.started < kQuickFailure;
  quick_failures_ = quick ? quick_failures_ + 1 : 0;

  // With the lease: an attempt that expired meanwhile comes back, if nobody has taken it.
  v1::AttachRequest attach;
  *attach.mutable_lease() = running.held.lease();
  attach.set_worker(place_.worker);
  StatusOr<v1::AttachResponse> attached = Call(&Stub::Attach, attach);
  if (!attached.ok() && IsAway(attached.status())) return attached.status();
  if (attached.ok() && attached->held_size() > 0) {
    running.attached = running.attached || HasHelper(attached->held(0));
  }
  if (running.attached) DiscardPrinted(running);
  if (attached.ok() && attached->next_sequence_size() > 0) {
    SendRest(running, attached->next_sequence(0));
  }
  SayWhatIsMissing(running);
  // Without: all that the worker holds, and where both sequences stand.
  attach.mutable_lease()->Clear();
  attach.mutable_lease()->set_study(options_.study);
  const v1::AttachResponse state = TRY(Call(&Stub::Attach, attach));
  sequence_ = state.next_worker_sequence();
  std::vector<HeldAttempt> held = HeldOf(state);
  const std::string root = std::filesystem::absolute(options_.folder).lexically_normal().string();
  TRY(DeliverOutbox(OutboxPath(root, place_.worker), held,
                    [this](const auto& request) { return Call(&Stub::Report, request); }));
  Answer next;
  for (size_t i = 0; i < held.size(); ++i) {
    const bool ask_next =
        i + 1 == held.size() && !verdict.last && TakesMore() && quick_failures_ < 2;
    // Given to a program that was about to go: nobody has begun it.
    const bool begun =
        SameAttempt(held[i].assignment.lease(), running.first) || HasHelper(held[i].assignment);
    const Verdict not_begun = {.release = true, .why = "its worker's program had ended already"};
    next = TRY(CompleteHeld(held[i], begun ? verdict : not_begun, ask_next));
  }
  if (!next && quick_failures_ >= 2) BackOff();
  return next;
}

StatusOr<Slot::Answer> Slot::CompleteHeld(HeldAttempt& attempt, const Verdict& verdict,
                                          bool ask_next) {
  if (verdict.release) {
    v1::ReleaseRequest request;
    *request.mutable_lease() = attempt.assignment.lease();
    request.set_sequence(attempt.next_sequence);
    request.set_why(Utf8Text(verdict.why, kMostWhyBytes));
    // Once: the worker is stopping, and what is not released expires.
    const auto released = client_.Call(&Stub::Release, request, kWorkerCallDeadline);
    if (!released.ok()) Note("could not release a trial: " + ForPeople(released.status()));
    return Answer();
  }
  v1::CompleteRequest request;
  *request.mutable_lease() = attempt.assignment.lease();
  request.set_sequence(attempt.next_sequence);
  if (verdict.finished) {
    request.mutable_finished();
  } else {
    request.mutable_failed()->set_why(Utf8Text(verdict.why, kMostWhyBytes));
  }
  if (ask_next) *request.mutable_next() = SuggestRequest();
  StatusOr<v1::CompleteResponse> answer = Call(&Stub::Complete, request);
  if (!answer.ok() && IsAway(answer.status())) return answer.status();
  if (!answer.ok()) {
    // The trial is somebody else's, or has ended: Suggest says what is next.
    Note("trial " + std::to_string(attempt.assignment.trial().id()) + ": " +
         ForPeople(answer.status()));
    return Answer();
  }
  if (!ask_next || !answer->has_next()) return Answer();
  Count(answer->next());
  return Answer(std::move(*answer->mutable_next()));
}

bool Slot::BackOff() {
  Seconds wait{0.25};
  for (int i = 2; i < quick_failures_ && wait < kLongestBackOff; ++i) wait *= 2;
  return Pause(std::min(wait, kLongestBackOff));
}

// Whatever a lost answer may have left in our hands goes back.
void Slot::LetGo() {
  v1::AttachRequest attach;
  attach.mutable_lease()->set_study(options_.study);
  attach.set_worker(place_.worker);
  const auto state = client_.Call(&Stub::Attach, attach, kWorkerCallDeadline);
  if (!state.ok()) return;
  for (HeldAttempt& attempt : HeldOf(*state)) {
    [[maybe_unused]] const auto released =
        CompleteHeld(attempt, {.release = true, .why = "its worker ended"}, false);
  }
}

}  // namespace jizi::tuner
