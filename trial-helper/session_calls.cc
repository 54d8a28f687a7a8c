// The calls of a session and what their answers mean. All but RunCalls runs on the session's
// thread.
#include <algorithm>
#include <cstdio>
#include <type_traits>
#include <utility>

#include "trial-helper/session.h"

namespace jizi::helper {
namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kCallDeadline{10'000};
constexpr duration<double> kFirstBackoff{0.1};
constexpr duration<double> kLastBackoff{1};
constexpr int kMaxInternal = 5;  // Then the request is at fault, and is dropped.
constexpr int kMaxLines = 20;    // On stderr for one trial.

int64_t SequenceOf(const auto& request) {
  return std::visit([](const auto& r) { return r.sequence(); }, request);
}

}  // namespace

void SayLine(const std::string& line) {
  std::fprintf(stderr, "jizi: %s\n", line.c_str());
}

bool MayComeBack(const Status& status) {
  return IsAway(status) || status.code() == StatusCode::kUnauthenticated ||
         status.code() == StatusCode::kPermissionDenied ||
         DetailOf(status).code == "VERSION_MISMATCH";
}

void Session::Say(const std::string& line) {
  if (lines_said_ == kMaxLines) SayLine("more of the kind is not said for this trial");
  if (lines_said_++ < kMaxLines) {
    SayLine("trial " + std::to_string(options_.lease.trial()) + ": " + line);
  }
}

// Of refusals that come back with every request of the kind.
void Session::SayOnce(const std::string& code, const std::string& line) {
  if (codes_said_.insert(code).second) Say(line);
}

// Starts a call on the calls' thread; `then` runs on the session's. Everything is handed over under
// our own lock: gRPC's callbacks hand over under locks that TSAN does not see.
template <typename Request, typename Response>
void Session::Start(Method<Request, Response> method, Request request,
                    std::function<void(const StatusOr<Response>&)> then) {
  MutexLock lock(mutex_);
  if (closing_) return;  // The calls' thread may be gone.
  calls_.push_back([this, method, request = std::move(request), then = std::move(then)] {
    grpc::ClientContext context;
    client_.Prepare(context, kCallDeadline);
    {
      MutexLock registered(mutex_);
      context_ = &context;
      if (closing_) context.TryCancel();
    }
    Response response;
    const grpc::Status status = (client_.stub().*method)(&context, request, &response);
    const Status checked = Client::Check(context, status);
    const auto result =
        checked.ok() ? StatusOr<Response>(std::move(response)) : StatusOr<Response>(checked);
    MutexLock finished(mutex_);
    context_ = nullptr;
    done_.push_back([then, result] { then(result); });
    changed_.NotifyAll();
  });
  ++unfinished_;
  changed_.NotifyAll();
}

// The calls' thread: it alone waits for the service.
void Session::RunCalls() {
  while (true) {
    std::function<void()> call;
    {
      MutexLock lock(mutex_);
      while (calls_.empty() && !closing_) changed_.Wait(mutex_);
      if (calls_.empty()) return;
      call = std::move(calls_.front());
      calls_.pop_front();
    }
    call();
    MutexLock lock(mutex_);
    --unfinished_;
    changed_.NotifyAll();
  }
}

// Starts what is due, one numbered call at a time.
void Session::Send() {
  bool closing = false;
  {
    MutexLock lock(mutex_);
    closing = closing_ || completed_;
  }
  const auto now = steady_clock::now();
  if (closing || lost_ || in_flight_ || now < retry_at_) return;
  if (!attached_) return SendAttach();
  const bool to_send = !sealed_.empty() || SealNext();
  // A report renews the lease, unless it is one that the service keeps putting off.
  const bool put_off = to_send && sealed_.front().sent;
  if ((put_off || !to_send) && !renewing_ && now >= RenewalDue()) SendRenewal();
  if (to_send) {
    Sealed& front = sealed_.front();
    front.sent = true;
    using Stub = v1::TuneService::Stub;
    const auto start = [&](const auto& request) {
      using Request = std::decay_t<decltype(request)>;
      if constexpr (std::is_same_v<Request, v1::ReportRequest>) {
        Start<v1::ReportRequest, v1::ReportResponse>(
            &Stub::Report, request, [this](const auto& response) { OnReport(response); });
      } else if constexpr (std::is_same_v<Request, v1::RegisterCheckpointRequest>) {
        Start<v1::RegisterCheckpointRequest, v1::RegisterCheckpointResponse>(
            &Stub::RegisterCheckpoint, request,
            [this](const auto& response) { OnCheckpoint(response); });
      } else {
        Start<v1::CompleteRequest, v1::CompleteResponse>(
            &Stub::Complete, request, [this](const auto& response) { OnComplete(response); });
      }
    };
    in_flight_ = true;
    sent_at_ = now;
    std::visit(start, front.request);
  }
}

void Session::SendAttach() {
  v1::AttachRequest request;
  *request.mutable_lease() = options_.lease;
  request.set_worker(options_.worker);
  *request.mutable_capabilities() = options_.capabilities;
  in_flight_ = true;
  sent_at_ = steady_clock::now();
  Start<v1::AttachRequest, v1::AttachResponse>(
      &v1::TuneService::Stub::Attach, std::move(request),
      [this](const auto& response) { OnAttach(response); });
}

void Session::SendRenewal() {
  v1::RenewRequest request;
  *request.add_leases() = options_.lease;
  renewing_ = true;
  Start<v1::RenewRequest, v1::RenewResponse>(&v1::TuneService::Stub::Renew, std::move(request),
                                             [this](const auto& response) { OnRenewal(response); });
}

// The lease holds from now.
void Session::Heard(double lease_s) {
  heard_at_ = steady_clock::now();
  if (lease_s > 0) lease_ = duration<double>(lease_s);
}

// The service was there.
void Session::Answered(double lease_s) {
  Heard(lease_s);
  if (std::exchange(away_, false)) Say("the service is back");
  backoff_ = duration<double>(0);
  retry_at_ = {};
  MutexLock lock(mutex_);
  given_up_waiting_ = false;
}

void Session::Away(const Status& status) {
  {
    MutexLock lock(mutex_);
    if (closing_) return;  // Cancelled by ourselves.
  }
  if (!std::exchange(away_, true)) {
    Say("the service is away (" + ForPeople(status) + "); the training goes on, reports are kept" +
        (outbox_.path().empty() ? "" : " in " + outbox_.path()));
  }
  backoff_ = std::clamp(backoff_ * 2, kFirstBackoff, kLastBackoff);
  retry_at_ = steady_clock::now() + duration_cast<steady_clock::duration>(backoff_);
  MutexLock lock(mutex_);
  given_up_waiting_ = true;
  changed_.NotifyAll();
}

void Session::Settle(int64_t items, int64_t reports) {
  MutexLock lock(mutex_);
  pending_ -= items;
  reports_settled_ += reports;
  changed_.NotifyAll();
}

// The front was answered, or is not to be sent any more.
void Session::PopFront() {
  const Sealed front = std::move(sealed_.front());
  sealed_.pop_front();
  if (const auto* report = std::get_if<v1::ReportRequest>(&front.request)) {
    sealed_bytes_ -= static_cast<int64_t>(report->ByteSizeLong());
  }
  if (sealed_.empty()) outbox_.Clear();
  Settle(front.reports > 0 ? front.reports : 1, front.reports);
}

void Session::OnReport(const StatusOr<v1::ReportResponse>& response) {
  in_flight_ = false;
  if (!response.ok()) return OnError(response.status());
  Answered(response->lease_s());
  const auto& report = std::get<v1::ReportRequest>(sealed_.front().request);
  for (const v1::RejectedMeasurement& rejected : response->rejected()) {
    const bool known = rejected.index() >= 0 && rejected.index() < report.measurements_size();
    Say("the service did not take the measurement of step " +
        std::to_string(known ? report.measurements(rejected.index()).step() : -1) + ": " +
        rejected.why());
  }
  Hear(response->directive());
  PopFront();
}

void Session::OnCheckpoint(const StatusOr<v1::RegisterCheckpointResponse>& response) {
  in_flight_ = false;
  if (!response.ok()) return OnError(response.status());
  Answered(response->lease_s());
  PopFront();
}

void Session::OnComplete(const StatusOr<v1::CompleteResponse>& response) {
  in_flight_ = false;
  if (!response.ok()) return OnError(response.status());
  Answered(0);
  PopFront();
  MutexLock lock(mutex_);
  completed_ = true;
  changed_.NotifyAll();
}

void Session::OnRenewal(const StatusOr<v1::RenewResponse>& response) {
  renewing_ = false;
  if (lost_) return;
  if (!response.ok()) {
    if (MayComeBack(response.status()) || response.status().code() == StatusCode::kInternal) {
      return Away(response.status());
    }
    return Lose(response.status());
  }
  if (response->leases_size() != 1 || !response->leases(0).held()) {
    return Lose(
        Error(StatusCode::kFailedPrecondition, "the lease was lost", {"LEASE_LOST", "", ""}));
  }
  Heard(response->leases(0).lease_s());
  // What waits for another try says itself whether the service is back.
  if (sealed_.empty()) Answered(0);
  // Changes and roll-backs come with the next report's answer; an end is not to be waited for.
  const v1::Directive& directive = response->leases(0).directive();
  if (directive.has_stop() || directive.has_pause()) Hear(directive);
}

void Session::OnAttach(const StatusOr<v1::AttachResponse>& response) {
  in_flight_ = false;
  if (!response.ok()) {
    const bool wait =
        MayComeBack(response.status()) || response.status().code() == StatusCode::kInternal;
    return wait ? Away(response.status()) : Lose(response.status());
  }
  if (response->held_size() != 1 || response->next_sequence_size() != 1) {
    return Lose(
        Error(StatusCode::kFailedPrecondition, "the lease was lost", {"LEASE_LOST", "", ""}));
  }
  attached_ = true;
  Answered(response->held(0).lease_s());
  const int64_t next = response->next_sequence(0);
  // Acknowledged before, by whoever sent it.
  while (!sealed_.empty() && sealed_.front().sent && SequenceOf(sealed_.front().request) < next) {
    PopFront();
  }
  if (sealed_.empty()) {
    next_sequence_ = next;
  } else if (SequenceOf(sealed_.front().request) != next) {
    Renumber(next);
  }
}

// Requests that nobody has sent get their numbers anew, and the file with them.
void Session::Renumber(int64_t next) {
  for (Sealed& sealed : sealed_) {
    std::visit([&](auto& request) { request.set_sequence(next); }, sealed.request);
    ++next;
  }
  next_sequence_ = next;
  RewriteOutbox();
}

void Session::RewriteOutbox() {
  std::vector<const v1::ReportRequest*> saved;
  for (const Sealed& sealed : sealed_) {
    const auto* request = std::get_if<v1::ReportRequest>(&sealed.request);
    if (request != nullptr && sealed.on_disk) saved.push_back(request);
  }
  if (outbox_.bytes() > 0 && !outbox_.Replace(saved)) {
    Say("cannot write the outbox " + outbox_.path() + ": " + outbox_.error());
  }
}

// The service refuses, or is away.
void Session::OnError(const Status& status) {
  if (lost_ || sealed_.empty()) return;
  Sealed& front = sealed_.front();
  const bool internal = status.code() == StatusCode::kInternal;
  if (MayComeBack(status) || (internal && ++front.refusals < kMaxInternal)) return Away(status);
  const std::string code = DetailOf(status).code;
  if ((code == "SEQUENCE_GAP" || code == "SEQUENCE_REUSED") && ++front.refusals < kMaxInternal) {
    // Its number is another's, or the service went back to an older file: ask where it stands.
    attached_ = false;
    return;
  }
  const bool precondition = status.code() == StatusCode::kFailedPrecondition;
  const bool checkpoint = std::holds_alternative<v1::RegisterCheckpointRequest>(front.request);
  if (status.code() == StatusCode::kNotFound || (precondition && code == "LEASE_LOST") ||
      (precondition && code != "STALE_SEQUENCE" && !checkpoint)) {
    return Lose(status);
  }
  SayOnce(checkpoint ? "checkpoint " + code : std::string(status.message()),
          checkpoint ? "a checkpoint was not registered, the trial goes on without it (others "
                       "refused for the same reason are not said): " +
                           ForPeople(status)
                     : "the service refused a request, which is dropped: " + ForPeople(status));
  const bool was_complete = std::holds_alternative<v1::CompleteRequest>(front.request);
  PopFront();
  // Whether its number is used up the service says.
  attached_ = false;
  if (!was_complete) return;
  {
    MutexLock lock(mutex_);
    complete_refused_ = true;
  }
  Lose(status);
}

// Nothing that this process says about the attempt counts any more.
void Session::Lose(const Status& status) {
  lost_ = true;
  Say("its lease is lost, what comes now does not count: " + ForPeople(status));
  sealed_.clear();
  sealed_bytes_ = 0;
  outbox_.Clear();
  MutexLock lock(mutex_);
  queue_.clear();
  queued_reports_ = 0;
  pending_ = 0;
  reports_settled_ = reports_;
  told_.lost = true;
  told_.why = "the lease was lost: " + std::string(status.message());
  changed_.NotifyAll();
}

// What was measured and saved on a branch that the service has rolled back. The front is the report
// whose answer says so.
void Session::ForgetUnsent(int64_t roll_back_to) {
  int64_t items = 0;
  int64_t reports = 0;
  // Behind it stand reports alone (Spool), and none of them was sent.
  for (; sealed_.size() > 1; sealed_.pop_back()) {
    const Sealed& back = sealed_.back();
    sealed_bytes_ -= static_cast<int64_t>(std::get<v1::ReportRequest>(back.request).ByteSizeLong());
    next_sequence_ = SequenceOf(back.request);
    items += back.reports > 0 ? back.reports : 1;
    reports += back.reports;
  }
  RewriteOutbox();
  {
    MutexLock lock(mutex_);
    const auto end = std::remove_if(queue_.begin(), queue_.end(), [&](const Item& item) {
      const auto* checkpoint = std::get_if<v1::Checkpoint>(&item);
      return std::holds_alternative<ReportItem>(item) ||
             (checkpoint != nullptr && checkpoint->step() > roll_back_to);
    });
    items += queue_.end() - end;
    reports += static_cast<int64_t>(queued_reports_);
    queue_.erase(end, queue_.end());
    queued_reports_ = 0;
  }
  if (items > 0) Settle(items, reports);
}

void Session::Hear(const v1::Directive& directive) {
  if (directive.go_on().has_roll_back_to()) ForgetUnsent(directive.go_on().roll_back_to());
  MutexLock lock(mutex_);
  if (directive.has_stop()) told_.stop = true;
  if (directive.has_pause()) told_.pause = true;
  for (const auto& [name, value] : directive.go_on().set()) told_.set[name] = value;
  if (directive.go_on().has_roll_back_to()) {
    told_.roll_back_to = directive.go_on().roll_back_to();
  }
  if (!directive.why().empty()) told_.why = directive.why();
  changed_.NotifyAll();
}

}  // namespace jizi::helper
