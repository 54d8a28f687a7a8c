#include "tuner-service/engine/engine_thread.h"

#include <algorithm>

namespace jizi::tuner {
namespace {

using std::chrono::steady_clock;

constexpr size_t kItemsPerPush = 64;  // A long batch of calls keeps the committer busy meanwhile.
constexpr std::chrono::hours kLongestSleep{1};
// Were a tick to leave its deadline where it was, the engine would turn on the spot.
constexpr std::chrono::milliseconds kLeastTickGap{1};

// Stands in for a scheduler that cannot be made (a file of a build that knew more methods): the
// study can be read, and suggestions are refused.
class MissingScheduler final : public Scheduler {
 public:
  explicit MissingScheduler(Status why) : why_(std::move(why)) {}
  StatusOr<Decision> Suggest(const Study&, int, Rng, Memo&) const override { return why_; }

 private:
  Status why_;
};

}  // namespace

void Directory::Add(const std::string& name) {
  const MutexLock lock(mutex_);
  names_.insert(name);
}

void Directory::Remove(const std::string& name) {
  const MutexLock lock(mutex_);
  names_.erase(name);
}

bool Directory::Has(const std::string& name) const {
  const MutexLock lock(mutex_);
  return names_.contains(name);
}

Status StudyNotFound(const std::string& name) {
  return Error(StatusCode::kNotFound, "there is no study named \"" + name + "\"",
               {"STUDY_NOT_FOUND", name, "`jizi studies` lists those that there are"});
}

Status ShuttingDown() {
  return Error(StatusCode::kUnavailable, "the service is shutting down",
               {"SHUTTING_DOWN", "", "try again once it is back; a repeat counts once"});
}

EngineThread::EngineThread(Store& store, const EngineOptions& options, Clock& clock,
                           EngineQueue& queue, Committer& committer, DecisionPool& pool,
                           Directory& directory)
    : store_(store),
      options_(options),
      clock_(clock),
      queue_(queue),
      committer_(committer),
      pool_(pool),
      directory_(directory) {}

Status EngineThread::Load() {
  last_id_ = TRY(store_.LastId());
  for (const StudyName& study : TRY(store_.List())) {
    StudySlot& slot = AddSlot(TRY(store_.Load(study.id)));
    directory_.Add(slot.name);
    if (auto outcome = Run(slot, LoadedCommand{}); outcome.ok()) {
      PushItem(slot.id, RecordOf(slot, std::move(outcome->events)), nullptr);
    }
  }
  UpdateTicks();
  Flush();
  return {};
}

void EngineThread::Close(steady_clock::time_point drain_until) {
  drain_until_.store(drain_until);
  queue_.Close();
}

void EngineThread::Run() {
  bool nothing_came = false;
  for (;;) {
    if (const auto loss = committer_.TakeLoss()) Recover(*loss);
    if (queue_.closed() && Drained(nothing_came)) break;
    const RealTime until = NextWake();
    if (committer_.lagging()) {
      queue_.AwaitWake(until);
      continue;
    }
    std::vector<EngineCall> calls = queue_.Take(until);
    nothing_came = calls.empty();
    for (EngineCall& call : calls) {
      std::visit([this](auto& each) { On(each); }, call);
      if (items_.size() >= kItemsPerPush) Flush();
    }
    RunTicks();
    BeginDecisions();
    UpdateTicks();
    Flush();
  }
  RefuseTheRest();
}

bool EngineThread::Drained(bool nothing_came) {
  if (steady_clock::now() >= drain_until_.load()) return true;
  return nothing_came && parked_ == 0;
}

void EngineThread::RefuseTheRest() {
  for (EngineCall& call : queue_.Take(steady_clock::now())) {
    std::visit(
        [this](auto& each) {
          if constexpr (requires { each.done; }) {
            PushItem(kAllStudies, std::nullopt,
                     [done = std::move(each.done)](const Status&) { done(ShuttingDown()); });
          }
        },
        call);
  }
  for (auto& [name, slot] : slots_) AnswerParked(*slot, ShuttingDown());
  Flush();
}

// ---- slots ----

StudySlot* EngineThread::Find(const std::string& name, Status& why) {
  const auto found = slots_.find(name);
  if (found == slots_.end()) {
    why = StudyNotFound(name);
    return nullptr;
  }
  if (!found->second->unloaded.ok()) {
    LoadAgain(found->second->id, found->second->unloaded);
    const auto again = slots_.find(name);
    if (again == slots_.end()) {
      why = StudyNotFound(name);
      return nullptr;
    }
    why = again->second->unloaded;
    return why.ok() ? again->second.get() : nullptr;
  }
  return found->second.get();
}

StudySlot& EngineThread::AddSlot(StudyData state) {
  auto slot = std::make_unique<StudySlot>();
  slot->id = state.id;
  slot->name = state.study.spec->name;
  slot->epoch = ++last_epoch_;
  slot->state = std::move(state);
  Known& known = known_[slot->id];
  known.name = slot->name;
  if (!known.watchers) known.watchers = std::make_shared<WatchList>();
  slot->watchers = known.watchers;
  MakeSchedulerOf(*slot);
  if (const auto other = slots_.find(slot->name); other != slots_.end()) RemoveSlot(*other->second);
  StudySlot& added = *slot;
  by_id_[added.id] = &added;
  slots_[added.name] = std::move(slot);
  return added;
}

void EngineThread::RemoveSlot(StudySlot& slot) {
  pool_.Drop(slot.id);
  if (slot.tick_at) ticks_.erase({*slot.tick_at, slot.id});
  by_id_.erase(slot.id);
  slots_.erase(slots_.find(slot.name));  // Not erase(name): the name goes with the slot.
}

void EngineThread::MakeSchedulerOf(StudySlot& slot) {
  slot.scheduler_spec = slot.state.study.spec;
  auto made = options_.make_scheduler(*slot.scheduler_spec);
  if (made.ok()) {
    slot.scheduler = *std::move(made);
  } else {
    slot.scheduler = std::make_shared<MissingScheduler>(made.status());
  }
  slot.change_memo = {};
  slot.suggest_memo = std::make_shared<Memo>();  // A decision under way keeps the old one.
}

void EngineThread::Recover(const Committer::Loss& loss) {
  for (const StudyId id : loss.studies) LoadAgain(id, loss.why);
  UpdateTicks();
  Flush();
  committer_.Resume();
}

void EngineThread::LoadAgain(StudyId id, const Status& why) {
  if (const auto found = by_id_.find(id); found != by_id_.end()) {
    AnswerParked(*found->second, why);
    RemoveSlot(*found->second);
  }
  auto loaded = store_.Load(id);
  if (loaded.status().code() == StatusCode::kNotFound) return;
  if (!loaded.ok()) {
    auto slot = std::make_unique<StudySlot>();
    slot->id = id;
    slot->name = known_.at(id).name;
    slot->epoch = ++last_epoch_;
    slot->unloaded = Error(StatusCode::kUnavailable,
                           "the study could not be read: " + std::string(loaded.status().message()),
                           {"STUDY_UNREADABLE", slot->name, "try again"});
    slot->watchers = known_.at(id).watchers;
    by_id_[id] = slot.get();
    slots_[slot->name] = std::move(slot);
    return;
  }
  StudySlot& slot = AddSlot(*std::move(loaded));
  if (auto outcome = Run(slot, LoadedCommand{}); outcome.ok()) {
    PushItem(id, RecordOf(slot, std::move(outcome->events)), nullptr);
  }
}

// ---- items ----

void EngineThread::PushItem(StudyId study, std::optional<LogRecord> record,
                            std::function<void(const Status&)> answer) {
  if (!record && !answer) return;
  std::optional<StudyChange> change;
  std::shared_ptr<WatchList> watchers;
  if (record) {
    const auto found = by_id_.find(study);
    if (found != by_id_.end() && found->second->watchers->watched()) {
      watchers = found->second->watchers;
      change = StudyChange{ViewOf(found->second->state), ChangedTrials(record->events)};
    }
  }
  items_.push_back({study, std::move(record), std::move(answer), {}});
  if (!change) return;
  items_.push_back(
      {study,
       std::nullopt,
       [watchers = std::move(watchers), change = *std::move(change)](const Status& durable) {
         if (durable.ok()) watchers->Deliver(change);
       },
       {}});
}

void EngineThread::Flush() {
  committer_.Push(std::move(items_));
  items_.clear();
}

// ---- time ----

Timestamp EngineThread::Now(const StudyData& state) {
  return std::max(state.last_event, clock_.Now());
}

void EngineThread::RunTicks() {
  const SteadyTime now = clock_.SteadyNow();
  while (!ticks_.empty() && ticks_.begin()->first <= now) {
    const StudyId id = ticks_.begin()->second;
    ticks_.erase(ticks_.begin());
    StudySlot& slot = *by_id_.at(id);
    slot.tick_at.reset();
    if (auto outcome = Run(slot, TickCommand{}); outcome.ok()) {
      PushItem(id, RecordOf(slot, std::move(outcome->events)), nullptr);
    }
  }
}

void EngineThread::UpdateTicks() {
  const SteadyTime now = clock_.SteadyNow();
  for (const StudyId id : touched_) {
    const auto found = by_id_.find(id);
    if (found == by_id_.end() || !found->second->touched) continue;
    StudySlot& slot = *found->second;
    slot.touched = false;
    if (slot.tick_at) ticks_.erase({*slot.tick_at, id});
    slot.tick_at =
        NextDeadline(slot.state, {Now(slot.state), now, *slot.scheduler, slot.change_memo});
    if (!slot.tick_at) continue;
    slot.tick_at = std::max(*slot.tick_at, now + kLeastTickGap);
    ticks_.insert({*slot.tick_at, id});
  }
  touched_.clear();
}

EngineThread::RealTime EngineThread::NextWake() {
  const RealTime now = steady_clock::now();
  RealTime until = now + kLongestSleep;
  if (!ticks_.empty()) until = std::min(until, now + (ticks_.begin()->first - clock_.SteadyNow()));
  if (queue_.closed()) until = parked_ == 0 ? now : std::min(until, drain_until_.load());
  return until;
}

void EngineThread::BeginDecisions() {
  for (const StudyId id : touched_) {
    const auto found = by_id_.find(id);
    if (found == by_id_.end() || !found->second->starting) continue;
    StudySlot& slot = *found->second;
    DecisionJob job = *std::exchange(slot.starting, std::nullopt);
    job.need.count = JoinedCount(slot, job.need.count);
    if (slot.state.pending) slot.state.pending->count = job.need.count;
    pool_.Start(std::move(job));
  }
}

}  // namespace jizi::tuner
