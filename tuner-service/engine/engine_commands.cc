// engine_commands.cc - what the engine thread does with each kind of call.

#include <utility>

#include "tuner-service/engine/engine_thread.h"

namespace jizi::tuner {
namespace {

// The Suggest in a command: it itself, or the `next` of a Complete.
const SuggestCommand* SuggestIn(const Command& command) {
  if (const auto* suggest = std::get_if<SuggestCommand>(&command)) return suggest;
  if (const auto* complete = std::get_if<CompleteCommand>(&command)) {
    if (complete->next) return &*complete->next;
  }
  return nullptr;
}

bool SameCall(const CallNumber& a, const CallNumber& b) {
  return a.sequence == b.sequence && a.digest == b.digest;
}

}  // namespace

template <typename T>
void EngineThread::Answer(StudyId study, std::optional<LogRecord> record, Engine::Done<T> done,
                          StatusOr<T> value) {
  PushItem(study, std::move(record),
           [done = std::move(done), value = std::move(value)](const Status& durable) mutable {
             if (durable.ok()) {
               done(std::move(value));
             } else {
               done(durable);
             }
           });
}

void EngineThread::On(ExecuteCall& call) {
  Status why;
  StudySlot* slot = Find(call.study, why);
  if (slot == nullptr) return Answer<Reply>(kAllStudies, {}, std::move(call.done), why);
  if (Status refused = CheckInFlight(*slot, call.command); !refused.ok()) {
    return Answer<Reply>(slot->id, {}, std::move(call.done), refused);
  }
  LeaveOutNextIfFull(call.command);
  if (const auto* suggest = std::get_if<SuggestCommand>(&call.command)) {
    ParkedSuggest* parked = slot->parked.Find(suggest->worker);
    if (parked != nullptr && SameCall(parked->command.call, suggest->call)) {
      slot->parked.Park(std::move(std::get<SuggestCommand>(call.command)),
                        {std::move(call.done), std::nullopt});
      ++parked_;
      return;
    }
  }
  auto outcome = Run(*slot, call.command);
  if (!outcome.ok()) return Answer<Reply>(slot->id, {}, std::move(call.done), outcome.status());
  auto record = RecordOf(*slot, std::move(outcome->events));
  if (outcome->reply) {
    return Answer<Reply>(slot->id, std::move(record), std::move(call.done),
                         *std::move(outcome->reply));
  }
  PushItem(slot->id, std::move(record), nullptr);
  CHECK(outcome->parked.has_value());  // No reply: the core says what waits.
  slot->parked.Park(*std::move(outcome->parked),
                    {std::move(call.done), std::move(outcome->completed)});
  ++parked_;
  Took(*slot, *outcome);
}

// One call in flight for each worker (docs/contracts.md, 12), and a bound on those that wait for
// decisions.
Status EngineThread::CheckInFlight(StudySlot& slot, const Command& command) const {
  const SuggestCommand* suggest = SuggestIn(command);
  if (suggest == nullptr) return {};
  if (parked_ >= options_.queue && std::holds_alternative<SuggestCommand>(command)) {
    return Error(
        StatusCode::kResourceExhausted, std::to_string(parked_) + " calls wait for the scheduler",
        {"QUEUE_FULL", suggest->worker, "wait a moment and try again, or use fewer workers"});
  }
  const ParkedSuggest* parked = slot.parked.Find(suggest->worker);
  if (parked == nullptr || SameCall(parked->command.call, suggest->call)) return {};
  const int64_t in_flight = parked->command.call.sequence;
  const std::string number = std::to_string(suggest->call.sequence);
  if (suggest->call.sequence == in_flight) {
    return Error(
        StatusCode::kInvalidArgument,
        "call " + number + " of worker \"" + suggest->worker + "\" is under way with another body",
        {"SEQUENCE_REUSED", suggest->worker, "use each sequence number for one call only"});
  }
  if (suggest->call.sequence < in_flight)
    return {};  // The core knows whether it is the last one's repeat.
  return Error(StatusCode::kFailedPrecondition,
               "worker \"" + suggest->worker + "\" sent call " + number + " while call " +
                   std::to_string(in_flight) + " waits for its answer",
               {"CALL_IN_FLIGHT", suggest->worker, "wait for the answer, or repeat that call"});
}

// A Complete is never refused for its `next`: above the bound it is done without, and its worker
// asks again with a Suggest of its own, under the number that it gave to `next`.
void EngineThread::LeaveOutNextIfFull(Command& command) const {
  auto* complete = std::get_if<CompleteCommand>(&command);
  if (complete == nullptr || !complete->next || parked_ < options_.queue) return;
  complete->next.reset();
}

void EngineThread::Touch(StudySlot& slot) {
  if (slot.touched) return;
  slot.touched = true;
  touched_.push_back(slot.id);
}

StatusOr<Outcome> EngineThread::Run(StudySlot& slot, const Command& command) {
  Touch(slot);
  if (!options_.keep_memos) slot.change_memo = {};
  auto outcome = Execute(slot.state, command,
                         {Now(slot.state), clock_.SteadyNow(), *slot.scheduler, slot.change_memo});
  if (slot.state.study.spec != slot.scheduler_spec) MakeSchedulerOf(slot);
  if (outcome.ok() && options_.on_error) {
    for (const Status& error : outcome->scheduler_errors) options_.on_error(error);
  }
  return outcome;
}

std::optional<LogRecord> EngineThread::RecordOf(StudySlot& slot, std::vector<Event> events) {
  if (events.empty()) return std::nullopt;
  return LogRecord{slot.id, slot.state.log_position, slot.state.last_event, std::move(events)};
}

void EngineThread::Took(StudySlot& slot, Outcome& outcome) {
  if (!outcome.need) return;
  if (!options_.keep_memos) slot.suggest_memo = std::make_shared<Memo>();
  slot.starting = DecisionJob{slot.id,          slot.epoch,     *outcome.need,
                              slot.state.study, slot.scheduler, slot.suggest_memo};
}

void EngineThread::On(DecisionResult& result) {
  const auto found = by_id_.find(result.study);
  if (found == by_id_.end() || found->second->epoch != result.epoch) return;
  StudySlot& slot = *found->second;
  auto outcome = Run(slot, std::move(result.answer));
  if (!outcome.ok()) return AnswerParked(slot, outcome.status());
  PushItem(slot.id, RecordOf(slot, std::move(outcome->events)), nullptr);
  ServeParked(slot);
}

void EngineThread::ServeParked(StudySlot& slot) {
  std::vector<ParkedSuggest> all = slot.parked.TakeAll();
  for (ParkedSuggest& parked : all) parked_ -= parked.waiters.size();
  for (ParkedSuggest& parked : all) {
    auto outcome = Run(slot, parked.command);
    if (!outcome.ok()) {
      AnswerAll(slot, std::nullopt, std::move(parked.waiters), outcome.status());
      continue;
    }
    auto record = RecordOf(slot, std::move(outcome->events));
    if (outcome->reply) {
      AnswerAll(slot, std::move(record), std::move(parked.waiters), *std::move(outcome->reply));
      continue;
    }
    PushItem(slot.id, std::move(record), nullptr);
    parked_ += parked.waiters.size();
    slot.parked.ParkAgain(std::move(parked));
    Took(slot, *outcome);
  }
  CHECK(slot.parked.empty() || slot.state.pending);  // Who waits, waits for a decision.
}

void EngineThread::AnswerAll(StudySlot& slot, std::optional<LogRecord> record,
                             std::vector<Waiter> waiters, StatusOr<Reply> reply) {
  PushItem(slot.id, std::move(record),
           [waiters = std::move(waiters), reply = std::move(reply)](const Status& durable) {
             for (const Waiter& waiter : waiters) {
               if (durable.ok()) {
                 AnswerWaiter(waiter, reply);
               } else {
                 waiter.done(durable);  // The half that was done is lost with it, or repeated.
               }
             }
           });
}

void EngineThread::AnswerParked(StudySlot& slot, const StatusOr<Reply>& reply) {
  for (ParkedSuggest& parked : slot.parked.TakeAll()) {
    parked_ -= parked.waiters.size();
    AnswerAll(slot, std::nullopt, std::move(parked.waiters), reply);
  }
}

void EngineThread::On(CreateCall& call) {
  Status why;
  if (StudySlot* slot = Find(call.spec.name, why)) return ResumeStudy(*slot, call);
  if (why.code() != StatusCode::kNotFound) {
    return Answer<Engine::Created>(kAllStudies, {}, std::move(call.done), why);
  }
  auto record = CreateStudy(last_id_ + 1, call.spec, call.request_id, clock_.Now());
  if (!record.ok()) {
    return Answer<Engine::Created>(kAllStudies, {}, std::move(call.done), record.status());
  }
  StudyData state;
  Apply(state, *record);
  ++last_id_;
  StudySlot& slot = AddSlot(std::move(state));
  Touch(slot);
  PushItem(slot.id, *std::move(record),
           [directory = &directory_, done = std::move(call.done),
            created = Engine::Created{ViewOf(slot.state), true}](const Status& durable) {
             if (!durable.ok()) return done(durable);
             directory->Add(created.view.study.spec->name);
             done(created);
           });
}

void EngineThread::ResumeStudy(StudySlot& slot, CreateCall& call) {
  const auto kept = slot.state.requests.find(call.request_id);
  const bool made = !call.request_id.empty() && kept != slot.state.requests.end() &&
                    kept->second.kind == KeptRequest::Kind::kCreateStudy;
  if (made) {  // It gets what it made, and hears so (docs/contracts.md, 12).
    return Answer<Engine::Created>(slot.id, {}, std::move(call.done),
                                   Engine::Created{ViewOf(slot.state), true});
  }
  if (!call.resume) {
    return Answer<Engine::Created>(
        slot.id, {}, std::move(call.done),
        Error(
            StatusCode::kAlreadyExists, "there is a study named \"" + slot.name + "\" already",
            {"STUDY_EXISTS", slot.name,
             "--resume continues it; or give this one another name (`name:` in the sweep file)"}));
  }
  auto outcome = Run(slot, ResumeCommand{std::move(call.spec), std::move(call.request_id)});
  if (!outcome.ok()) {
    return Answer<Engine::Created>(slot.id, {}, std::move(call.done), outcome.status());
  }
  auto record = RecordOf(slot, std::move(outcome->events));
  Answer<Engine::Created>(slot.id, std::move(record), std::move(call.done),
                          Engine::Created{ViewOf(slot.state), false});
}

void EngineThread::On(DeleteCall& call) {
  Status why;
  StudySlot* slot = Find(call.study, why);
  if (slot == nullptr) return Answer<DoneReply>(kAllStudies, {}, std::move(call.done), why);
  const Status gone = StudyNotFound(slot->name);
  LogRecord record{slot->id, slot->state.log_position + 1, Now(slot->state), {StudyDeleted{}}};
  Apply(slot->state, record);
  const StudyId id = slot->id;
  auto answer = [this, id, name = slot->name, watchers = slot->watchers,
                 last = StudyChange{ViewOf(slot->state), {}, true, {}},
                 done = std::move(call.done)](const Status& durable) {
    if (!durable.ok()) return done(durable);
    directory_.Remove(name);
    watchers->Deliver(last);
    queue_.PushOwn(ForgetStudy{id});
    done(DoneReply{});
  };
  // Not by PushItem: its watchers are told of the end alone, and last.
  items_.push_back({id, std::move(record), std::move(answer)});
  RemoveSlot(*slot, gone);  // After the item: whoever is told so waits for it.
}

void EngineThread::On(ReadCall& call) {
  Status why;
  StudySlot* slot = Find(call.study, why);
  if (slot == nullptr) return Answer<StudyView>(kAllStudies, {}, std::move(call.done), why);
  Answer<StudyView>(slot->id, {}, std::move(call.done), ViewOf(slot->state));
}

void EngineThread::On(ReadWorkerCall& call) {
  Status why;
  StudySlot* slot = Find(call.study, why);
  if (slot == nullptr) return Answer<WorkerView>(kAllStudies, {}, std::move(call.done), why);
  WorkerView view{ViewOf(slot->state), {}};
  for (const auto& [id, lease] : slot->state.leases) {
    const Trial& trial = *slot->state.study.Find(id);
    if (trial.state != TrialState::kRunning) continue;  // Lost, and may still come back.
    if (trial.attempts.back().worker == call.worker) view.held.push_back(id);
  }
  Answer<WorkerView>(slot->id, {}, std::move(call.done), std::move(view));
}

void EngineThread::On(ForgetStudy& call) {
  known_.erase(call.study);
}

void EngineThread::On(ListCall& call) {
  std::vector<std::string> unloaded;
  for (const auto& [name, why] : unloaded_) unloaded.push_back(name);
  for (const std::string& name : unloaded) {
    Status why;
    if (Find(name, why) != nullptr || why.code() != StatusCode::kUnavailable) continue;
    // A list without it would say that it is gone. (A damaged one is: Start said so.)
    return Answer<std::vector<StudyView>>(kAllStudies, {}, std::move(call.done), why);
  }
  std::vector<StudyView> views;
  for (const auto& [id, slot] : by_id_) views.push_back(ViewOf(slot->state));
  Answer<std::vector<StudyView>>(kAllStudies, {}, std::move(call.done), std::move(views));
}

void EngineThread::On(WatchCall& call) {
  // Where what it stands on is lost, it asks for the study as it is then.
  auto again = [this, call](const Status&) {
    if (committer_.healthy()) queue_.PushOwn(call);
  };
  Status why;
  StudySlot* slot = Find(call.study, why);
  if (slot == nullptr) {  // It was deleted meanwhile, or cannot be read: the stream ends.
    StudyChange end{{}, {}, true, why.code() == StatusCode::kNotFound ? Status() : why};
    return PushItem(kAllStudies, std::nullopt,
                    [watcher = call.watcher, end = std::move(end), again](const Status& durable) {
                      if (!durable.ok()) return again(durable);
                      watcher->Deliver(end);
                    });
  }
  slot->watchers->Expect();
  PushItem(slot->id, std::nullopt,
           [watchers = slot->watchers, watcher = call.watcher, again = std::move(again),
            present = StudyChange{ViewOf(slot->state), {}, false, {}}](const Status& durable) {
             if (durable.ok()) return watchers->Add(watcher, present);
             watchers->Unexpect();
             again(durable);
           });
}

}  // namespace jizi::tuner
