#include "trial-helper/session.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace jizi::helper {
namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::steady_clock;

constexpr duration<double> kHangs{1};   // A call without an answer for so long: write to disk.
constexpr size_t kMaxQueue = 1000;      // Measurements in memory only, while the service is there.
constexpr int kMaxMeasurements = 1000;  // In one request (proto/README.md).
constexpr size_t kMaxRequestBytes = size_t{1} << 20;

SteadyTime After(duration<double> wait) {
  return steady_clock::now() + duration_cast<steady_clock::duration>(wait);
}

}  // namespace

Session::Session(Client& client, Outbox& outbox, Options options)
    : client_(client),
      options_(std::move(options)),
      outbox_(outbox),
      attached_(options_.next_sequence.has_value()),
      heard_at_(steady_clock::now()),
      lease_(options_.lease_s) {
  // What an earlier process of the same attempt left (a wrapper that starts the program again).
  for (const v1::ReportRequest& request : outbox_.found()) {
    if (request.lease().token() != options_.lease.token()) continue;
    if (request.sequence() < options_.next_sequence.value_or(1)) continue;
    Sealed& sealed = sealed_.emplace_back();
    sealed.reports = 0;  // Of nobody who could wait for them here.
    sealed.on_disk = true;
    sealed.sent = true;
    sealed_bytes_ += static_cast<int64_t>(request.ByteSizeLong());
    next_sequence_ = request.sequence() + 1;
    sealed.request = request;
    ++pending_;
  }
  // Its answer to Attach says where the sequence stands; a gap is closed there too.
  if (!sealed_.empty()) attached_ = false;
  if (sealed_.empty()) next_sequence_ = options_.next_sequence.value_or(1);
  thread_ = std::thread([this] { Run(); });
  calls_thread_ = std::thread([this] { RunCalls(); });
}

Session::~Session() {
  {
    MutexLock lock(mutex_);
    closing_ = true;
    if (context_ != nullptr) context_->TryCancel();
    changed_.NotifyAll();
  }
  calls_thread_.join();
  thread_.join();
}

int64_t Session::Report(v1::Measurement measurement, std::optional<int64_t> total_steps) {
  MutexLock lock(mutex_);
  ++reports_;
  if (told_.lost || completed_) {
    reports_settled_ = reports_;
  } else if (told_.roll_back_to) {
    ++reports_settled_;  // Measured before the program heard of the roll-back: it does not count.
  } else {
    ++pending_;
    ++queued_reports_;
    queue_.push_back(ReportItem{std::move(measurement), total_steps});
    changed_.NotifyAll();
  }
  return reports_;
}

void Session::AddCheckpoint(v1::Checkpoint checkpoint) {
  MutexLock lock(mutex_);
  if (told_.lost || completed_) return;
  if (told_.roll_back_to && checkpoint.step() > *told_.roll_back_to) return;
  ++pending_;
  queue_.push_back(std::move(checkpoint));
  changed_.NotifyAll();
}

void Session::WaitForAnswer(int64_t report, duration<double> at_most) {
  const SteadyTime deadline = After(at_most);
  MutexLock lock(mutex_);
  while (reports_settled_ < report && !given_up_waiting_) {
    if (!changed_.WaitUntil(mutex_, deadline) && reports_settled_ < report) {
      given_up_waiting_ = true;
    }
  }
}

Told Session::Take() {
  MutexLock lock(mutex_);
  const bool lost = told_.lost;
  const std::string why = told_.why;
  Told told = std::exchange(told_, {});
  told_.lost = lost;
  if (lost) told_.why = why;
  return told;
}

bool Session::Flush(SteadyTime deadline) {
  MutexLock lock(mutex_);
  while (pending_ > 0) {
    if (!changed_.WaitUntil(mutex_, deadline)) return pending_ == 0;
  }
  return true;
}

bool Session::Complete(v1::CompleteRequest request, SteadyTime deadline) {
  MutexLock lock(mutex_);
  if (told_.lost) return true;
  ++pending_;
  queue_.push_back(std::move(request));
  changed_.NotifyAll();
  while (!completed_ && !told_.lost) {
    if (!changed_.WaitUntil(mutex_, deadline)) break;
  }
  return completed_ || (told_.lost && !complete_refused_);
}

// Measurements at the front of the queue become one numbered request.
bool Session::SealReports() {
  v1::ReportRequest request;
  int64_t dropped = 0;
  {
    MutexLock lock(mutex_);
    size_t bytes = 0;
    while (!queue_.empty() && request.measurements_size() < kMaxMeasurements &&
           bytes < kMaxRequestBytes) {
      auto* item = std::get_if<ReportItem>(&queue_.front());
      if (item == nullptr) break;
      if (item->total_steps) request.set_total_steps(*item->total_steps);
      if (sealed_bytes_ > kMaxOutboxBytes) {
        ++dropped;
      } else {
        bytes += item->measurement.ByteSizeLong();
        *request.add_measurements() = std::move(item->measurement);
      }
      queue_.pop_front();
      --queued_reports_;
    }
  }
  if (dropped > 0) {
    Settle(dropped, dropped);
    if (!std::exchange(overflow_said_, true)) {
      Say("more than 32 MiB of reports wait for the service; what comes now is dropped");
    }
  }
  if (request.measurements_size() == 0) return false;
  *request.mutable_lease() = options_.lease;
  request.set_sequence(next_sequence_++);
  request.set_catching_up(away_);
  Sealed& sealed = sealed_.emplace_back();
  sealed.reports = request.measurements_size();
  sealed_bytes_ += static_cast<int64_t>(request.ByteSizeLong());
  sealed.request = std::move(request);
  return true;
}

// The next thing in the queue becomes a numbered request.
bool Session::SealNext() {
  if (SealReports()) return true;
  MutexLock lock(mutex_);
  if (queue_.empty() || std::holds_alternative<ReportItem>(queue_.front())) return false;
  Sealed& sealed = sealed_.emplace_back();
  if (const auto* checkpoint = std::get_if<v1::Checkpoint>(&queue_.front())) {
    v1::RegisterCheckpointRequest request;
    *request.mutable_lease() = options_.lease;
    request.set_sequence(next_sequence_++);
    *request.mutable_checkpoint() = *checkpoint;
    sealed.request = std::move(request);
  } else {
    auto request = std::get<v1::CompleteRequest>(std::move(queue_.front()));
    *request.mutable_lease() = options_.lease;
    request.set_sequence(next_sequence_++);
    sealed.request = std::move(request);
  }
  queue_.pop_front();
  return true;
}

bool Session::MustSpool() const {
  if (lost_ || completed_) return false;
  const bool hangs = in_flight_ && steady_clock::now() - sent_at_ >= kHangs;
  if ((away_ || hangs) && HasUnsaved()) return true;
  return queued_reports_ > 0 && (away_ || hangs || queued_reports_ >= kMaxQueue);
}

// Is there a numbered report that memory alone holds? Not asked again of an outbox that cannot be
// written.
bool Session::HasUnsaved() const {
  return !outbox_broken_ && std::any_of(sealed_.begin(), sealed_.end(), [](const Sealed& sealed) {
    return !sealed.on_disk && std::holds_alternative<v1::ReportRequest>(sealed.request);
  });
}

// Everything measured so far goes to the outbox; checkpoints and Complete wait for the service.
void Session::Spool() {
  std::deque<Item> others;
  while (true) {
    while (SealReports()) {
    }
    MutexLock lock(mutex_);
    if (queue_.empty()) break;
    if (!std::holds_alternative<ReportItem>(queue_.front())) {
      others.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
  }
  {
    MutexLock lock(mutex_);
    queue_.insert(queue_.begin(), std::make_move_iterator(others.begin()),
                  std::make_move_iterator(others.end()));
  }
  std::vector<const v1::ReportRequest*> unsaved;
  for (const Sealed& sealed : sealed_) {
    const auto* request = std::get_if<v1::ReportRequest>(&sealed.request);
    if (request != nullptr && !sealed.on_disk) unsaved.push_back(request);
  }
  if (unsaved.empty()) return;
  if (!outbox_.Append(unsaved)) {
    if (!std::exchange(outbox_broken_, true)) {
      Say("cannot write the outbox " + outbox_.path() + ": " + outbox_.error() +
          "; reports stay in memory alone");
    }
    return;
  }
  for (Sealed& sealed : sealed_) sealed.on_disk = true;  // Or is no report.
}

SteadyTime Session::RenewalDue() const {
  const SteadyTime due = heard_at_ + duration_cast<steady_clock::duration>(lease_ / 3);
  return std::max(due, retry_at_);
}

SteadyTime Session::NextWake() const {
  const SteadyTime never = After(duration<double>(3600));
  if (lost_ || completed_) return never;
  if (MustSpool()) return steady_clock::now();
  if (in_flight_) {
    if (queued_reports_ == 0 && !HasUnsaved()) return never;
    return sent_at_ + duration_cast<steady_clock::duration>(kHangs);
  }
  const bool to_send = !attached_ || !sealed_.empty() || !queue_.empty();
  return to_send ? retry_at_ : renewing_ ? never : RenewalDue();
}

void Session::Run() {
  while (true) {
    std::vector<std::function<void()>> done;
    bool spool = false;
    {
      MutexLock lock(mutex_);
      while (done_.empty() && !closing_ && steady_clock::now() < NextWake()) {
        changed_.WaitUntil(mutex_, NextWake());
      }
      while (closing_ && done_.empty() && unfinished_ > 0) changed_.Wait(mutex_);
      done.swap(done_);
      if (closing_ && done.empty()) break;
    }
    for (const std::function<void()>& handle : done) handle();
    {
      MutexLock lock(mutex_);
      spool = MustSpool();
    }
    if (spool) Spool();
    Send();
  }
  // What was not answered is for the worker to send: leave it on disk, all of it.
  if (!lost_) Spool();
}

}  // namespace jizi::helper
