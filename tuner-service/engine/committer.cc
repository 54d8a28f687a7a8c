#include "tuner-service/engine/committer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "tuner-service/engine/call_size.h"

namespace jizi::tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kIdleAfter{
    200};  // Long against a round trip: a checkpoint in between would cost a caller.
constexpr milliseconds kFirstPause{5};
constexpr milliseconds kLongestPause{200};

Status StoreLost(const Status& why) {
  return Error(StatusCode::kUnavailable, "the store is lost: " + std::string(why.message()),
               {"STORE_LOST", "",
                "the service ends; look at the disk, then start it again on the same file"});
}

// What the caller of a lost command hears: try again, and why it failed.
Status AsAnswer(const Status& why) {
  switch (why.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kResourceExhausted:
    case StatusCode::kFailedPrecondition:
      return why;
    default:
      return Error(StatusCode::kUnavailable,
                   "the change could not be stored: " + std::string(why.message()),
                   {"STORE_FAILED", "", "try again; nothing of it was kept"});
  }
}

}  // namespace

Committer::Committer(Store& store, Options options)
    : store_(store), options_(std::move(options)), thread_([this] { Run(); }) {}

Committer::~Committer() {
  Stop();
}

void Committer::Push(std::vector<CommitItem>&& items) {
  if (items.empty()) return;
  size_t bytes = 0;
  for (CommitItem& item : items) {
    item.bytes = item.record ? BytesOf(*item.record) : 0;
    bytes += item.bytes;
  }
  waiting_.fetch_add(items.size(), std::memory_order_relaxed);
  waiting_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  const bool was_empty = queue_.empty();
  if (was_empty) {
    queue_ = std::move(items);
  } else {
    queue_.insert(queue_.end(), std::make_move_iterator(items.begin()),
                  std::make_move_iterator(items.end()));
  }
  items.clear();
  if (was_empty) changed_.NotifyOne();
}

void Committer::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void Committer::Run() {
  bool idled = false;  // Idle has been called since the last group, and has nothing more to do.
  for (;;) {
    std::vector<CommitItem> group;
    {
      const MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_) {
        if (idled) {
          changed_.Wait(mutex_);
        } else if (!changed_.WaitUntil(mutex_, steady_clock::now() + kIdleAfter)) {
          break;
        }
      }
      if (queue_.empty() && stopping_) return;
      group = std::exchange(queue_, {});
    }
    if (group.empty()) {
      if (healthy()) Tend(store_.Idle());
      idled = !healthy() || !store_.MoreToDo();
      continue;
    }
    idled = false;
    const size_t size = group.size();
    size_t bytes = 0;
    for (const CommitItem& item : group) bytes += item.bytes;
    Commit(group);
    if (healthy()) Tend(store_.AfterAnswers());
    const size_t before = waiting_.fetch_sub(size, std::memory_order_relaxed);
    const size_t before_bytes = waiting_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    if ((before > options_.lag && before - size <= options_.lag) ||
        (before_bytes > options_.lag_bytes && before_bytes - bytes <= options_.lag_bytes)) {
      options_.wake_engine();
    }
  }
}

void Committer::Commit(std::vector<CommitItem>& group) {
  std::vector<LogRecord> records;
  for (CommitItem& item : group) {
    if (item.record && item.lost.ok()) records.push_back(std::move(*item.record));
  }
  const Status appended = !healthy() ? Status() : records.empty() ? Status() : Append(records);
  if (!healthy()) {
    const Status lost = StoreLost(Status());
    for (CommitItem& item : group) {
      if (item.lost.ok()) item.lost = lost;
    }
  } else if (appended.code() == StatusCode::kAlreadyExists) {
    size_t next = 0;
    for (CommitItem& item : group) {
      if (item.record && item.lost.ok()) item.record = std::move(records[next++]);
    }
    CommitOneByOne(group);
  } else if (appended.code() == StatusCode::kDataLoss) {
    Fatal(appended);
    for (CommitItem& item : group) {
      if (item.lost.ok()) item.lost = StoreLost(appended);
    }
  } else if (!appended.ok()) {
    std::set<StudyId> studies;
    const Status lost = AsAnswer(appended);
    for (CommitItem& item : group) {
      if (!item.lost.ok()) continue;
      // What came before the first record of its study was decided on what is durable.
      const bool stands_on_it =
          item.study == kAllStudies ? !studies.empty() : studies.contains(item.study);
      if (item.record) studies.insert(item.study);
      if (item.record || stands_on_it) item.lost = lost;
    }
    Rest(lost, std::move(studies), /*every_record=*/true);
  }
  Answer(group);
}

// With no call waiting nobody else would hear of it (docs/contracts.md, 3).
void Committer::Tend(const Status& tended) {
  if (tended.code() == StatusCode::kDataLoss) Fatal(tended);
}

Status Committer::Append(const std::vector<LogRecord>& records) {
  const auto deadline = steady_clock::now() + options_.retry;
  milliseconds pause = kFirstPause;
  for (;;) {
    const Status appended = store_.Append(records);
    const bool busy =
        appended.code() == StatusCode::kUnavailable && DetailOf(appended).code == "STORE_BUSY";
    if (!busy || steady_clock::now() + pause >= deadline) return appended;
    std::this_thread::sleep_for(pause);  // Only this thread waits, and the deadline bounds it.
    pause = std::min(2 * pause, kLongestPause);
  }
}

void Committer::CommitOneByOne(std::vector<CommitItem>& group) {
  std::set<StudyId> studies;
  Status why;
  bool every_record = false;
  for (CommitItem& item : group) {
    if (!item.lost.ok()) continue;
    const bool stands_on_it =
        item.study == kAllStudies ? !studies.empty() : studies.contains(item.study);
    if (stands_on_it || (every_record && item.record)) {
      item.lost = AsAnswer(why);
      if (item.record) studies.insert(item.study);
      continue;
    }
    if (!item.record) continue;
    const Status appended = Append({*item.record});
    if (appended.ok()) continue;
    why = appended;
    studies.insert(item.study);
    if (appended.code() == StatusCode::kAlreadyExists) {
      item.lost = Error(StatusCode::kInternal,
                        "the change contradicts what is stored: " + std::string(appended.message()),
                        {"CONSTRAINT", std::to_string(item.study),
                         "this is a bug of ours; please report it with the service's log"});
      continue;
    }
    if (appended.code() == StatusCode::kDataLoss) Fatal(appended);
    item.lost = healthy() ? AsAnswer(appended) : StoreLost(appended);
    every_record = true;
  }
  if (!studies.empty()) Rest(AsAnswer(why), std::move(studies), every_record);
}

void Committer::Answer(std::vector<CommitItem>& group) {
  for (CommitItem& item : group) {
    if (item.answer) item.answer(item.lost);
    item.answer = nullptr;  // What it holds (a trial, a view) goes before the next one is called.
  }
}

// The answers of what was lost wait for the end of the rest too: who hears of the loss and looks
// finds the state as it is stored.
void Committer::Rest(Status why, std::set<StudyId> studies, bool every_record) {
  {
    const MutexLock lock(mutex_);
    loss_ = Loss{std::move(why), std::move(studies)};
    every_record_lost_ = every_record;
    resting_ = true;
  }
  options_.wake_engine();
  const MutexLock lock(mutex_);
  while (resting_ && !stopping_) changed_.Wait(mutex_);
  if (!resting_) return;
  DropWhatStandsOnTheLoss();  // Stopping, and the engine is gone: nobody else ends the rest.
  resting_ = false;
}

void Committer::DropWhatStandsOnTheLoss() {
  if (!loss_) return;
  for (CommitItem& item : queue_) {
    if (!item.lost.ok()) continue;
    const bool stands_on_it = item.study == kAllStudies || loss_->studies.contains(item.study);
    if (!stands_on_it && !(item.record && every_record_lost_)) continue;
    if (item.record) loss_->studies.insert(item.study);
    item.record.reset();
    item.lost = loss_->why;
  }
}

std::optional<Committer::Loss> Committer::TakeLoss() {
  const MutexLock lock(mutex_);
  if (!loss_) return std::nullopt;
  DropWhatStandsOnTheLoss();
  return std::exchange(loss_, std::nullopt);
}

void Committer::Resume() {
  const MutexLock lock(mutex_);
  resting_ = false;
  changed_.NotifyOne();
}

void Committer::Fatal(const Status& why) {
  healthy_.store(false, std::memory_order_relaxed);
  if (options_.on_fatal) options_.on_fatal(why);
}

}  // namespace jizi::tuner
