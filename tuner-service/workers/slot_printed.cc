// What a slot's program prints: lines, measurements, batches on the wire.

#include <algorithm>
#include <chrono>

#include "google/protobuf/util/time_util.h"
#include "tuner-service/workers/printed_report.h"
#include "tuner-service/workers/service_calls.h"
#include "tuner-service/workers/slot.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Stub = v1::TuneService::Stub;
using Seconds = std::chrono::duration<double>;

constexpr milliseconds kSendEvery{100};           // Printed reports go in batches.
constexpr std::chrono::seconds kLastReports{30};  // After the program's end.
constexpr size_t kLinesAtOnce = 256;
constexpr size_t kMostSaid = 20;
// Of lines that are not yet looked at: from here on the program waits.
constexpr size_t kEnoughLineBytes = 4u << 20;
// What the executor tells beyond that is what a pipe holds, unless the program is being ended and
// goes on printing: then the oldest go.
constexpr size_t kMostLineBytes = 24u << 20;

std::string TrialText(int64_t trial) {
  return "trial " + std::to_string(trial) + ": ";
}

size_t CostOf(const std::string& line) {
  return line.size() + sizeof line;
}

google::protobuf::Timestamp Now() {
  return google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace

// On the executor's thread. False: the program waits at its pipe.
bool Slot::KeepLine(std::string line) {
  MutexLock lock(mutex_);
  if (lines_unread_) return true;
  if (lines_.empty()) changed_.NotifyAll();
  line_bytes_ += CostOf(line);
  lines_.push_back(std::move(line));
  while (line_bytes_ > kMostLineBytes) {
    line_bytes_ -= CostOf(lines_.front());
    lines_.pop_front();
    ++lost_lines_;
  }
  lines_held_ = line_bytes_ >= kEnoughLineBytes;
  return !lines_held_;
}

// On the executor's thread.
void Slot::KeepSaid(const std::string& line) {
  MutexLock lock(mutex_);
  if (said_.size() < kMostSaid) said_.push_back(line);
  changed_.NotifyAll();
}

// Each thing once, and no more than a person reads.
void Slot::TellSaid() {
  std::deque<std::string> said;
  {
    MutexLock lock(mutex_);
    said.swap(said_);
  }
  for (const std::string& line : said) {
    if (told_.size() >= kMostSaid || !told_.insert(line).second) continue;
    Note(line.substr(line.find(' ') + 1));
  }
}

std::deque<std::string> Slot::NextLines(Running& running) {
  std::deque<std::string> lines;
  bool read_on = false;
  {
    MutexLock lock(mutex_);
    while (!lines_.empty() && lines.size() < kLinesAtOnce) {
      line_bytes_ -= CostOf(lines_.front());
      lines.push_back(std::move(lines_.front()));
      lines_.pop_front();
    }
    running.dropped += std::exchange(lost_lines_, 0);
    if (line_bytes_ < kEnoughLineBytes / 2) read_on = std::exchange(lines_held_, false);
  }
  if (read_on) running.job->ReadOn();
  return lines;
}

// Lines become measurements; no more of them than can be sent soon, while somebody takes them.
void Slot::TakeLines(Running& running) {
  while (running.away || !running.printed.Enough()) {
    const std::deque<std::string> lines = NextLines(running);
    if (lines.empty()) return;
    for (const std::string& line : lines) TakeLine(running, line);
  }
}

void Slot::TakeLine(Running& running, const std::string& line) {
  PrintedReport report = ParsePrintedReport(line);
  if (report.left_out > 0) LeaveOut(running, report.left_out, report.wrong);
  if (report.total_steps) running.total_steps = report.total_steps;
  v1::Measurement& measurement = report.measurement;
  if (measurement.metrics().empty()) return;
  if (!report.step) measurement.set_step(running.last_step + 1);
  running.last_step = std::max(running.last_step, measurement.step());
  *measurement.mutable_time() = Now();
  running.printed.Add(std::move(measurement));
}

// A helper reports, or nobody wants it: what is printed from here on is for people.
void Slot::DiscardPrinted(Running& running) {
  running.printed.Clear();
  running.report.reset();
  bool read_on;
  {
    MutexLock lock(mutex_);
    lines_.clear();
    line_bytes_ = 0;
    lines_unread_ = true;
    read_on = std::exchange(lines_held_, false);
  }
  if (read_on && running.job) running.job->ReadOn();
}

void Slot::SendPrinted(Running& running) {
  running.next_send = steady_clock::now() + kSendEvery;
  Look(running);  // Is it still ours to send?
  while (!running.printed.empty() && !LimitReached(running) && SendBatch(running, false)) {
  }
}

// After the program's end.
void Slot::SendRest(Running& running, int64_t next_sequence) {
  if (running.report && running.report->sequence() < next_sequence) {
    running.report.reset();  // It had arrived; the answer had not.
    running.printed.Answered();
  }
  running.next_sequence = std::max(running.next_sequence, next_sequence);
  while (!running.printed.empty() && SendBatch(running, true)) {
  }
}

v1::ReportRequest Slot::NextReport(Running& running) {
  v1::ReportRequest request;
  *request.mutable_lease() = running.held.lease();
  request.set_sequence(running.next_sequence);
  for (const v1::Measurement& measurement : running.printed.Batch()) {
    *request.add_measurements() = measurement;
  }
  if (running.total_steps) request.set_total_steps(*running.total_steps);
  return request;
}

// False: not now (the service is away) or not any more.
bool Slot::SendBatch(Running& running, bool patient) {
  if (!running.report) running.report = NextReport(running);
  const auto answer = patient ? CallUntil(client_, &Stub::Report, *running.report,
                                          steady_clock::now() + kLastReports,
                                          [this](milliseconds wait) { return Pause(wait); })
                              : client_.Call(&Stub::Report, *running.report, kWorkerCallDeadline);
  running.away = !answer.ok() && IsAway(answer.status());
  if (running.away) {
    running.next_send = steady_clock::now() + kLongestBackoff;
    return false;  // The same again: it may have arrived.
  }
  const int count = running.report->measurements_size();
  running.report.reset();
  if (answer.ok()) {
    running.printed.Answered();
    ++running.next_sequence;
    running.next_renew = steady_clock::now() +
                         std::chrono::duration_cast<milliseconds>(Seconds(answer->lease_s() / 3));
    for (const v1::RejectedMeasurement& rejected : answer->rejected()) {
      LeaveOut(running, 1, absl::InvalidArgumentError(rejected.why()));
    }
    if (!patient) Obey(running, answer->directive());
    return true;
  }
  const std::string code = DetailOf(answer.status()).code;
  if (code == "STALE_SEQUENCE" || code == "SEQUENCE_REUSED") {
    running.attached = true;  // A helper has counted on.
    DiscardPrinted(running);
    return false;
  }
  if (answer.status().code() == StatusCode::kInvalidArgument) {
    // One of them is no measurement: it alone is lost, once it stands alone.
    if (count > 1) {
      running.printed.Halve();
    } else {
      running.printed.Answered();
      LeaveOut(running, 1, answer.status());
    }
    return true;
  }
  running.printed.Answered();
  running.dropped += count;
  Note(TrialText(running.held.trial().id()) + ForPeople(answer.status()));
  running.next_renew = steady_clock::now();  // Which says whether the lease is lost.
  return false;
}

void Slot::LeaveOut(Running& running, int64_t count, const Status& why) {
  if (running.left_out == 0) {
    running.first_left_out = std::string(why.message());
    Note(TrialText(running.held.trial().id()) + "a printed value was left out: " + ForPeople(why));
  }
  running.left_out += count;
}

void Slot::SayWhatIsMissing(const Running& running) {
  const std::string trial = TrialText(running.held.trial().id());
  if (running.left_out > 1) {
    Note(trial + std::to_string(running.left_out) +
         " printed values were left out (first: " + running.first_left_out + ")");
  }
  const int64_t unsent = running.dropped + running.printed.dropped() + running.printed.size();
  if (unsent > 0) {
    Note(trial + std::to_string(unsent) + " printed reports could not be sent" +
         (running.printed.empty() ? "; of each metric the last value was kept" : ""));
  }
}

}  // namespace jizi::tuner
