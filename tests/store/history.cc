#include "tests/store/history.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "tests/core/machine.h"

namespace jizi::tuner::testing {
namespace {

StudySpec RichSpec(const std::string& name) {
  StudySpec spec = SimpleSpec();
  spec.name = name;
  spec.metrics[0].target = -1e300;
  spec.metrics.push_back({"accuracy", Goal::kMaximize, std::nullopt});
  spec.retries.max_retries = 1;
  spec.budget.run_cap = 50;
  spec.seed = 0xffffffffffffffff;
  spec.attributes = {{"team", "vision"}};
  return spec;
}

// Trial 2 is rolled back at step 3, trial 3 paused at step 2, trial 4 stopped at step 1.
StatusOr<Decision> Interfere(const Study&, TrialId trial, const tuner::Change& change) {
  Decision decision;
  const auto* reported = std::get_if<Reported>(&change);
  if (reported == nullptr) return decision;
  const Measurement& at = reported->measurement;
  if (trial == 2 && at.step == 3 && at.rollback == 0) {
    decision.tell[trial] = Continue{{{"x", 0.5}}, 1, "from an earlier step"};
  }
  if (trial == 3 && at.step == 2 && at.attempt == 1) decision.tell[trial] = Pause{"others first"};
  if (trial == 4 && at.step == 1) decision.tell[trial] = Stop{"hopeless"};
  return decision;
}

LeaseRef TakeAttached(Machine& machine, const std::string& worker) {
  const LeaseRef lease = machine.Take(worker);
  AttachCommand attach;
  attach.lease = lease;
  attach.worker = worker;
  attach.capabilities = Capabilities{true, true, true, {"x"}};
  attach.total_steps = 10;
  EXPECT_TRUE(machine.Call(attach).ok());
  return lease;
}

void Save(Machine& machine, const LeaseRef& lease, int64_t step) {
  RegisterCheckpointCommand command;
  command.lease = lease;
  command.call = machine.NextCall(lease);
  command.checkpoint = {step, "checkpoints/" + std::to_string(step), std::string(64, 'a'), 1000, 0};
  EXPECT_TRUE(machine.Call(command).ok());
}

void Complete(Machine& machine, const LeaseRef& lease) {
  EXPECT_TRUE(machine.Call(machine.CompleteOf(lease)).ok());
}

void Fail(Machine& machine, const LeaseRef& lease) {
  CompleteCommand command = machine.CompleteOf(lease);
  command.outcome = FailedOutcome{"exit code 1\nlast line of stderr"};
  EXPECT_TRUE(machine.Call(command).ok());
}

void ReportMuch(Machine& machine, const LeaseRef& lease) {
  ReportCommand command = machine.ReportOf(lease, 1, 0.25);
  command.measurements[0].metrics.push_back({"accuracy", std::numeric_limits<double>::quiet_NaN()});
  command.measurements[0].metrics.push_back({"up", std::numeric_limits<double>::infinity()});
  command.measurements[0].metrics.push_back({"down", -std::numeric_limits<double>::infinity()});
  command.measurements[0].metrics.push_back({"zero", -0.0});
  command.measurements[0].gradient = GradientStatistics{1, 2, 32, 256};
  NewMeasurement second = command.measurements[0];
  second.step = 2;
  second.metrics = {{"loss", 1e-300}};
  command.measurements.push_back(second);
  EXPECT_TRUE(machine.Call(command).ok());
}

void Trials(Machine& machine) {
  const LeaseRef first = TakeAttached(machine, "w1");
  const LeaseRef second = TakeAttached(machine, "w2");
  const LeaseRef third = TakeAttached(machine, "w3");
  const LeaseRef fourth = TakeAttached(machine, "w4");
  ReportMuch(machine, first);
  Save(machine, first, 2);
  machine.Report(first, 3, 0.75);
  for (int64_t step = 1; step <= 3; ++step) {
    machine.Advance(1);
    machine.Report(second, step, 1.0 / static_cast<double>(step));
    if (step < 3) Save(machine, second, step);
  }
  machine.Report(second, 2, 0.125);  // After the roll-back to step 1.
  machine.Report(third, 1, 0.5);
  machine.Report(third, 2, 0.625);
  machine.Report(fourth, 1, 9.0);
  Complete(machine, third);   // Paused.
  Complete(machine, fourth);  // Stopped.
  Fail(machine, second);      // Tried again, from its checkpoint at step 1.
  machine.Advance(120);
  EXPECT_TRUE(machine.Call(TickCommand{}).ok());  // The first one is lost ...
  machine.Report(first, 4, 0.0625);               // ... and comes back.
  Complete(machine, first);
  const LeaseRef again = TakeAttached(machine, "w2");
  machine.Report(again, 2, 0.375);
  Fail(machine, again);
  EXPECT_TRUE(machine.Call(RetryCommand{{2}, "retry"}).ok());
  EXPECT_TRUE(machine.Call(EnqueueCommand{AtX(0.875), "enqueue"}).ok());
}

}  // namespace

std::vector<LogRecord> RichHistory(StudyId id, const std::string& name) {
  Machine machine(RichSpec(name));
  machine.script.on_change = Interfere;
  EXPECT_TRUE(machine.Call(RetryCommand{{}, "retry none"}).ok());
  Trials(machine);
  EXPECT_TRUE(
      machine.Call(SetAttributesCommand{1, {{"note", "it's \"good\""}, {"a", "b"}}, {}}).ok());
  EXPECT_TRUE(machine.Call(SetAttributesCommand{1, {}, {"a"}}).ok());
  EXPECT_TRUE(machine.Call(SetAttributesCommand{0, {{"owner", "me"}}, {"team"}}).ok());
  EXPECT_TRUE(machine.Call(SetStateCommand{StudyState::kPaused}).ok());
  EXPECT_TRUE(machine.Call(SetStateCommand{StudyState::kActive}).ok());
  StudySpec more = RichSpec(name);
  more.budget.run_cap = 60;
  more.budget.wall_clock = Seconds(3600.5);
  EXPECT_TRUE(machine.Call(ResumeCommand{more, "resume"}).ok());
  const LeaseRef live = TakeAttached(machine, "w5");
  machine.Report(live, 1, 0.3);
  for (LogRecord& record : machine.log) record.study = id;
  return machine.log;
}

std::vector<LogRecord> PlainHistory(StudyId id, const std::string& name, int trials, int reports) {
  StudySpec spec = SimpleSpec();
  spec.name = name;
  Machine machine(std::move(spec));
  machine.check_replay = false;
  for (int trial = 0; trial < trials; ++trial) {
    const LeaseRef lease = machine.Take("worker");
    for (int step = 1; step <= reports; ++step) {
      machine.Report(lease, step, 1.0 / (trial + step));
    }
    Complete(machine, lease);
  }
  for (LogRecord& record : machine.log) record.study = id;
  return std::move(machine.log);
}

LogRecord Deletion(const std::vector<LogRecord>& history) {
  return {history.back().study, history.back().position + 1, history.back().time, {StudyDeleted{}}};
}

StudyData StateAfter(const std::vector<LogRecord>& history, size_t records) {
  StudyData state;
  for (size_t i = 0; i < records; ++i) Apply(state, history[i]);
  return state;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "jizi-store-XXXXXX").string();
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  path_ = name;
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::vector<std::string> Rows(const std::string& path, const std::string& sql) {
  std::vector<std::string> rows;
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  const auto collect = [](void* into, int count, char** cells, char**) {
    std::string row;
    for (int i = 0; i < count; ++i) {
      row += (i > 0 ? "|" : "") + std::string(cells[i] == nullptr ? "NULL" : cells[i]);
    }
    static_cast<std::vector<std::string>*>(into)->push_back(row);
    return 0;
  };
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), collect, &rows, &error), SQLITE_OK)
      << sql << ": " << (error == nullptr ? "" : error);
  sqlite3_free(error);
  sqlite3_close(database);
  return rows;
}

void EditFile(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sql << ": " << sqlite3_errmsg(database);
  sqlite3_close(database);
}

std::unique_ptr<Store> OpenOrFail(const std::string& path) {
  SqliteOptions options;
  options.path = path;
  StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(options);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : MakeMemoryStore();
}

}  // namespace jizi::tuner::testing
