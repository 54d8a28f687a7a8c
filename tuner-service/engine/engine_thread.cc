#include "tuner-service/engine/engine_thread.h"

#include <algorithm>

namespace jizi::tuner {
namespace {

using std::chrono::steady_clock;

constexpr size_t kItemsPerPush = 64;  // A long batch of calls keeps the committer busy meanwhile.
constexpr std::chrono::hours kLongestSleep{1};
// Were a tick to leave its deadline where it was, the engine would turn on the spot.
constexpr std::chrono::milliseconds kLeastTickGap{1};
// A tick that could not be stored is due again at once, and costs another reload: it waits.
constexpr std::chrono::seconds kTickPauseAfterLoss{1};
constexpr int kTickPauseInReloads = 10;

// Stands in for a scheduler that cannot be made (a file of a build that knew more methods): the
// study can be read, and suggestions are refused.
class MissingScheduler final : public Scheduler {
 public:
  MissingScheduler(const StudySpec& spec, const Status& why)
      : why_(Error(StatusCode::kUnimplemented,
                   "this service cannot go on with method \"" + spec.method + "\" of study \"" +
                       spec.name + "\": " + std::string(why.message()),
                   {DetailOf(why).code, spec.method,
                    "start the release of jizi that made the study; what it has measured can be "
                    "read here"})) {}
  StatusOr<Decision> Suggest(const Study&, int, Rng, Memo&) const override { return why_; }

 private:
  Status why_;
};

// It stays so: trying again costs a long read, and helps nobody.
bool IsDamaged(const Status& status) {
  return DetailOf(status).code == "LOG_DAMAGED";
}

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
    const Status loaded = LoadSlot(study);
    if (!loaded.ok() && !IsDamaged(loaded)) return loaded;
    directory_.Add(study.name);
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
    if (committer_.lagging()) {  // Nothing may be added; its wake-up comes, whatever is due here.
      queue_.AwaitWake(std::min(steady_clock::now() + kLongestSleep, drain_until_.load()));
      continue;
    }
    std::vector<EngineCall> calls = queue_.Take(NextWake());
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
  if (unloaded_.contains(name)) LoadAgain(name);
  if (const auto found = slots_.find(name); found != slots_.end()) return found->second.get();
  const auto unloaded = unloaded_.find(name);
  why = unloaded == unloaded_.end() ? StudyNotFound(name) : unloaded->second;
  return nullptr;
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
  // The store knows this one by that name: its namesake stands on a deletion that was lost.
  if (const auto other = slots_.find(slot->name); other != slots_.end()) {
    RemoveSlot(*other->second, StudyNotFound(slot->name));
  }
  StudySlot& added = *slot;
  by_id_[added.id] = &added;
  slots_[added.name] = std::move(slot);
  return added;
}

void EngineThread::RemoveSlot(StudySlot& slot, const Status& why) {
  AnswerParked(slot, why);
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
    slot.scheduler = std::make_shared<MissingScheduler>(*slot.scheduler_spec, made.status());
  }
  slot.change_memo = {};
  slot.suggest_memo = std::make_shared<Memo>();  // A decision under way keeps the old one.
}

// Names, not ids, are loaded again: a deletion and a creation of one name may both be lost.
void EngineThread::Recover(const Committer::Loss& loss) {
  const RealTime began = steady_clock::now();
  std::set<std::string> names;
  for (const StudyId id : loss.studies) {
    if (const auto found = by_id_.find(id); found != by_id_.end()) {
      RemoveSlot(*found->second, loss.why);
    }
    if (const auto known = known_.find(id); known != known_.end()) names.insert(known->second.name);
  }
  for (const std::string& name : names) {
    if (!slots_.contains(name)) LoadAgain(name);
  }
  for (const StudyId id : loss.studies) {
    const auto known = known_.find(id);
    if (known == known_.end() || by_id_.contains(id)) continue;
    if (!unloaded_.contains(known->second.name)) known_.erase(known);  // It was never there.
  }
  const auto took = steady_clock::now() - began;
  no_tick_before_ = clock_.SteadyNow() +
                    std::max<SteadyTime::duration>(kTickPauseAfterLoss, kTickPauseInReloads * took);
  UpdateTicks();
  Flush();
  committer_.Resume();
}

Status EngineThread::LoadSlot(const StudyName& study) {
  auto loaded = store_.Load(study.id);
  if (loaded.ok()) {
    unloaded_.erase(study.name);
    RunOwn(AddSlot(*std::move(loaded)), LoadedCommand{});
    return {};
  }
  const Status& why = loaded.status();
  unloaded_[study.name] = IsDamaged(why)
                              ? why
                              : Error(StatusCode::kUnavailable,
                                      "the study could not be read: " + std::string(why.message()),
                                      {"STUDY_UNREADABLE", study.name, "try again"});
  if (options_.on_error) options_.on_error(why);
  return why;
}

// A study that is not loaded: as the store has it now, if it still has it.
void EngineThread::LoadAgain(const std::string& name) {
  if (const auto known = unloaded_.find(name);
      known != unloaded_.end() && IsDamaged(known->second)) {
    return;
  }
  const auto studies = store_.List();
  if (!studies.ok()) {
    unloaded_[name] =
        Error(StatusCode::kUnavailable,
              "the studies could not be read: " + std::string(studies.status().message()),
              {"STUDY_UNREADABLE", name, "try again"});
    return;
  }
  for (const StudyName& study : *studies) {
    if (study.name != name) continue;
    LoadSlot(study).IgnoreError();  // unloaded_ has it.
    return;
  }
  unloaded_.erase(name);
}

// A command of the engine's own, that nobody waits for.
void EngineThread::RunOwn(StudySlot& slot, const Command& command) {
  if (auto outcome = Run(slot, command); outcome.ok()) {
    PushItem(slot.id, RecordOf(slot, std::move(outcome->events)), nullptr);
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
      change = StudyChange{ViewOf(found->second->state), ChangedTrials(record->events), false, {}};
    }
  }
  items_.push_back({study, std::move(record), std::move(answer)});
  if (!change) return;
  items_.push_back(
      {study, std::nullopt,
       [watchers = std::move(watchers), change = *std::move(change)](const Status& durable) {
         if (durable.ok()) watchers->Deliver(change);
       }});
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
    RunOwn(slot, TickCommand{});
  }
}

void EngineThread::UpdateTicks() {
  const SteadyTime now = clock_.SteadyNow();
  for (const StudyId id : touched_) {
    const auto found = by_id_.find(id);
    if (found == by_id_.end() || !found->second->touched) continue;
    StudySlot& slot = *found->second;
    slot.touched = false;
    if (options_.read_only) continue;
    if (slot.tick_at) ticks_.erase({*slot.tick_at, id});
    slot.tick_at =
        NextDeadline(slot.state, {Now(slot.state), now, *slot.scheduler, slot.change_memo});
    if (!slot.tick_at) continue;
    slot.tick_at = std::max({*slot.tick_at, now + kLeastTickGap, no_tick_before_});
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
