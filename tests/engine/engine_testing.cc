#include "tests/engine/engine_testing.h"

#include <thread>

namespace jizi::tuner {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Timestamp FakeClock::Now() {
  const MutexLock lock(mutex_);
  return now_;
}

SteadyTime FakeClock::SteadyNow() {
  const MutexLock lock(mutex_);
  ++looks_;
  return steady_;
}

int64_t FakeClock::looks() {
  const MutexLock lock(mutex_);
  return looks_;
}

void FakeClock::OnJump(const std::function<void()>& jumped) {
  const MutexLock lock(mutex_);
  jumped_ = jumped;
}

void FakeClock::Advance(milliseconds by) {
  const MutexLock lock(mutex_);  // Held over the call: none comes after OnJump(nullptr) returned.
  now_ += by;
  steady_ += by;
  if (jumped_) jumped_();
}

void FakeClock::SetBackWall(milliseconds by) {
  const MutexLock lock(mutex_);
  now_ -= by;
}

void Gate::Open() {
  const MutexLock lock(mutex_);
  open_ = true;
  changed_.NotifyAll();
}

void Gate::Shut() {
  const MutexLock lock(mutex_);
  open_ = false;
}

void Gate::Pass() {
  const auto until = steady_clock::now() + kTestDeadline;
  const MutexLock lock(mutex_);
  ++arrivals_;
  changed_.NotifyAll();
  while (!open_) {
    if (!changed_.WaitUntil(mutex_, until)) return;
  }
}

bool Gate::Arrived(int n) {
  const auto until = steady_clock::now() + kTestDeadline;
  const MutexLock lock(mutex_);
  while (arrivals_ < n) {
    if (!changed_.WaitUntil(mutex_, until)) return false;
  }
  return true;
}

int Gate::arrivals() {
  const MutexLock lock(mutex_);
  return arrivals_;
}

StoreScript::StoreScript(std::shared_ptr<Store> inner_store) : inner(std::move(inner_store)) {}

void StoreScript::OnAppend(std::function<Status(int, std::span<const LogRecord>)> judge) {
  const MutexLock lock(mutex);
  judge_ = std::move(judge);
  appends = 0;
}

void StoreScript::SetLoad(Status status, std::optional<StudyId> of) {
  const MutexLock lock(mutex);
  load_of = of;
  load = std::move(status);
}

int StoreScript::Appends() {
  const MutexLock lock(mutex);
  return appends;
}

namespace {

class StoreByScript final : public Store {
 public:
  explicit StoreByScript(std::shared_ptr<StoreScript> script) : script_(std::move(script)) {}

  StatusOr<std::vector<StudyName>> List() override { return script_->inner->List(); }
  StatusOr<StudyId> LastId() override { return script_->inner->LastId(); }
  StatusOr<StudyData> Load(StudyId study) override {
    {
      const MutexLock lock(script_->mutex);
      if (!script_->load.ok() && script_->load_of.value_or(study) == study) return script_->load;
    }
    return script_->inner->Load(study);
  }
  Status Append(std::span<const LogRecord> records) override {
    script_->gate.Pass();
    std::function<Status(int, std::span<const LogRecord>)> judge;
    int number = 0;
    {
      const MutexLock lock(script_->mutex);
      judge = script_->judge_;
      number = script_->appends++;
    }
    if (judge) TRY(judge(number, records));
    return script_->inner->Append(records);
  }
  Status Idle() override {
    {
      const MutexLock lock(script_->mutex);
      if (!script_->idle.ok()) return script_->idle;
    }
    return script_->inner->Idle();
  }
  Status AfterAnswers() override { return script_->inner->AfterAnswers(); }
  bool MoreToDo() const override { return script_->inner->MoreToDo(); }

 private:
  std::shared_ptr<StoreScript> script_;
};

class ScriptedScheduler final : public Scheduler {
 public:
  ScriptedScheduler(std::shared_ptr<SchedulerScript> script, std::unique_ptr<Scheduler> real)
      : script_(std::move(script)), real_(std::move(real)) {}

  StatusOr<Decision> Suggest(const Study& study, int count, Rng rng, Memo& memo) const override {
    std::optional<StatusOr<Decision>> instead;
    {
      const MutexLock lock(script_->mutex);
      script_->counts.push_back(count);
      instead = script_->instead;
    }
    script_->gate.Pass();
    return instead ? *instead : real_->Suggest(study, count, rng, memo);
  }

 private:
  std::shared_ptr<SchedulerScript> script_;
  std::unique_ptr<Scheduler> real_;
};

}  // namespace

std::unique_ptr<Store> ScriptedStore(std::shared_ptr<StoreScript> script) {
  return std::make_unique<StoreByScript>(std::move(script));
}

Status Busy() {
  return Error(StatusCode::kUnavailable, "the database is locked", {"STORE_BUSY", "", "try again"});
}
Status Full() {
  return Error(StatusCode::kUnavailable, "the disk is full", {"STORE_FULL", "", "make room"});
}
Status Constraint() {
  return Error(StatusCode::kAlreadyExists, "it is there already", {"CONSTRAINT", "", ""});
}
Status Damaged() {
  return Error(StatusCode::kDataLoss, "record 7 is damaged", {"LOG_DAMAGED", "", "restore a copy"});
}
Status Broken() {
  return Error(StatusCode::kDataLoss, "I/O error", {"STORE_IO", "", ""});
}

bool Eventually(const std::function<bool()>& condition) {
  const auto until = steady_clock::now() + kTestDeadline;
  while (!condition()) {
    if (steady_clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

StudySpec SpecOf(const std::string& name) {
  StudySpec spec;
  spec.name = name;
  spec.space.parameters.push_back({"lr", NumericDomain{Uniform{0.0, 1.0}}, {}});
  spec.metrics.push_back({"loss", Goal::kMinimize, std::nullopt});
  spec.method = "random";
  spec.seed = 7;
  return spec;
}

Token TokenOf(uint8_t fill) {
  Token token;
  token.fill(fill);
  return token;
}

SuggestCommand SuggestOf(const std::string& worker, int64_t sequence, int count) {
  SuggestCommand command;
  command.worker = worker;
  command.call = {sequence, {static_cast<uint8_t>(count)}};
  command.count = count;
  // Tokens are fresh in each try, as rpc makes them; the digest is not of them.
  static std::atomic<uint8_t> fill{1};
  for (int i = 0; i < count; ++i) command.tokens.push_back(TokenOf(fill++));
  return command;
}

ReportCommand ReportOf(const Assigned& assigned, int64_t sequence, int64_t step, double loss) {
  ReportCommand command;
  command.lease = {assigned.trial->id, assigned.attempt, assigned.token};
  command.call = {sequence, {static_cast<uint8_t>(step)}};
  command.measurements.push_back({step, Timestamp{}, {{"loss", loss}}, std::nullopt});
  return command;
}

CompleteCommand CompleteOf(const Assigned& assigned, int64_t sequence) {
  CompleteCommand command;
  command.lease = {assigned.trial->id, assigned.attempt, assigned.token};
  command.call = {sequence, {0xC0}};
  command.outcome = FinishedOutcome{};
  return command;
}

StatusOr<Engine::Created> Create(Engine& engine, StudySpec spec, const std::string& request_id,
                                 bool resume) {
  const Awaited<Engine::Created> created;
  engine.Create(std::move(spec), request_id, resume, created.done());
  return created.Get();
}

Awaited<Reply> Send(Engine& engine, const std::string& study, Command command) {
  Awaited<Reply> reply;
  engine.Execute(study, std::move(command), reply.done());
  return reply;
}

StatusOr<Reply> Execute(Engine& engine, const std::string& study, Command command) {
  return Send(engine, study, std::move(command)).Get();
}

StatusOr<SuggestReply> Suggest(Engine& engine, const std::string& study, SuggestCommand command) {
  return std::get<SuggestReply>(TRY(Execute(engine, study, std::move(command))));
}

StatusOr<StudyView> Read(Engine& engine, const std::string& study) {
  const Awaited<StudyView> view;
  engine.Read(study, view.done());
  return view.Get();
}

Assigned OnlyTrial(const StatusOr<SuggestReply>& reply) {
  if (reply.ok()) {
    const auto* trials = std::get_if<std::vector<Assigned>>(&*reply);
    if (trials != nullptr && trials->size() == 1) return trials->front();
  }
  Assigned none;
  none.trial = Cow<Trial>(Trial{});
  return none;
}

Assigned OnlyTrial(const StatusOr<Reply>& reply) {
  if (reply.ok() && std::holds_alternative<SuggestReply>(*reply)) {
    return OnlyTrial(StatusOr<SuggestReply>(std::get<SuggestReply>(*reply)));
  }
  return OnlyTrial(StatusOr<SuggestReply>(absl::UnknownError("")));
}

Decision ProposalOf(double lr) {
  Decision decision;
  decision.start.push_back({{{"lr", lr}}, {}, {}, {}, "as told"});
  return decision;
}

void SchedulerScript::Instead(std::optional<StatusOr<Decision>> answer) {
  const MutexLock lock(mutex);
  instead = std::move(answer);
}

std::vector<int> SchedulerScript::Counts() {
  const MutexLock lock(mutex);
  return counts;
}

std::function<StatusOr<std::unique_ptr<Scheduler>>(const StudySpec&)> ScriptedSchedulers(
    std::shared_ptr<SchedulerScript> script) {
  return
      [script = std::move(script)](const StudySpec& spec) -> StatusOr<std::unique_ptr<Scheduler>> {
        return std::unique_ptr<Scheduler>(
            std::make_unique<ScriptedScheduler>(script, TRY(MakeScheduler(spec))));
      };
}

}  // namespace jizi::tuner
