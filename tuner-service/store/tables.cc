#include "tuner-service/store/tables.h"

#include <cmath>
#include <type_traits>
#include <utility>

#include "tuner-service/store/schema.h"
#include "tuner-service/store/words.h"

namespace jizi::tuner {
namespace {

const char* KindOf(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "+inf" : "-inf";
  return "finite";
}

std::string JsonObject(const std::map<std::string, std::string>& texts) {
  return ToJsonText(Params(texts.begin(), texts.end()));
}

std::optional<double> SecondsOf(const std::optional<Seconds>& duration) {
  if (!duration) return std::nullopt;
  return duration->count();
}

}  // namespace

struct Tables::Statements {
  Prepared log, measurement, tombstone;
  Prepared create_study, set_budget, set_state, delete_study;
  Prepared create_trial, param, start_trial, set_total_steps, end_trial, set_trial_state,
      requeue_trial;
  Prepared attempt, end_attempt;
  Prepared checkpoint, forget_measurements, forget_checkpoints;
  Prepared set_attribute, remove_attribute;
};

namespace {

constexpr const char* kInsertLog =
    "INSERT INTO log (study, position, time_us, checksum, payload) VALUES (?, ?, ?, ?, ?)";
constexpr const char* kInsertMeasurement =
    "INSERT INTO measurements (study, position, item, trial, attempt, rollback, step, metric, "
    "value, "
    "kind, time_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
constexpr const char* kInsertStudy =
    "INSERT INTO studies (study, name, state, why, method, metric, goal, target, run_cap, "
    "wall_clock_s, seed, created_us) VALUES (?, ?, 'Active', '', ?, ?, ?, ?, ?, ?, ?, ?)";
constexpr const char* kInsertTrial =
    "INSERT INTO trials (study, trial, state, why, end_why, decision, tags, warm_start_trial, "
    "warm_start_step, successor_of, created_us) VALUES (?, ?, 'Queued', ?, '', ?, ?, ?, ?, ?, ?)";
constexpr const char* kInsertAttempt =
    "INSERT INTO attempts (study, trial, attempt, worker, start_step, end, why, started_us) "
    "VALUES (?, ?, ?, ?, ?, 'Running', '', ?)";
constexpr const char* kEndTrial =
    "UPDATE trials SET state = ?3, objective = ?4, end_why = ?5, ended_us = ?6 "
    "WHERE study = ?1 AND trial = ?2";
constexpr const char* kRequeueTrial =
    "UPDATE trials SET state = 'Queued', objective = NULL, end_why = '', ended_us = NULL "
    "WHERE study = ?1 AND trial = ?2";
constexpr const char* kEndAttempt =
    "UPDATE attempts SET end = ?4, why = ?5, ended_us = ?6 "
    "WHERE study = ?1 AND trial = ?2 AND attempt = ?3";
constexpr const char* kInsertCheckpoint =
    "INSERT OR REPLACE INTO checkpoints (study, trial, attempt, step, path, sha256, bytes, "
    "time_us) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)";

}  // namespace

StatusOr<std::unique_ptr<Tables>> Tables::Create(Connection& connection) {
  auto statements = std::make_unique<Statements>();
  Statements& s = *statements;
  s.log = TRY(connection.Prepare(kInsertLog));
  s.measurement = TRY(connection.Prepare(kInsertMeasurement));
  s.tombstone = TRY(connection.Prepare("INSERT INTO deleted (study) VALUES (?)"));
  s.create_study = TRY(connection.Prepare(kInsertStudy));
  s.set_budget = TRY(
      connection.Prepare("UPDATE studies SET run_cap = ?2, wall_clock_s = ?3 WHERE study = ?1"));
  s.set_state = TRY(connection.Prepare("UPDATE studies SET state = ?2, why = ?3 WHERE study = ?1"));
  s.delete_study = TRY(connection.Prepare("DELETE FROM studies WHERE study = ?"));
  s.create_trial = TRY(connection.Prepare(kInsertTrial));
  s.param = TRY(connection.Prepare(
      "INSERT INTO params (study, trial, name, value, type) VALUES (?, ?, ?, ?, ?)"));
  s.start_trial = TRY(connection.Prepare(
      "UPDATE trials SET state = 'Running', started_us = coalesce(started_us, ?3) "
      "WHERE study = ?1 AND trial = ?2"));
  s.set_total_steps =
      TRY(connection.Prepare("UPDATE trials SET total_steps = ?3 WHERE study = ?1 AND trial = ?2"));
  s.end_trial = TRY(connection.Prepare(kEndTrial));
  s.set_trial_state =
      TRY(connection.Prepare("UPDATE trials SET state = ?3 WHERE study = ?1 AND trial = ?2"));
  s.requeue_trial = TRY(connection.Prepare(kRequeueTrial));
  s.attempt = TRY(connection.Prepare(kInsertAttempt));
  s.end_attempt = TRY(connection.Prepare(kEndAttempt));
  s.checkpoint = TRY(connection.Prepare(kInsertCheckpoint));
  s.forget_measurements = TRY(connection.Prepare(
      "UPDATE measurements SET counts = 0 "
      "WHERE study = ?1 AND trial = ?2 AND step > ?3 AND position <= ?4 AND counts = 1"));
  s.forget_checkpoints = TRY(
      connection.Prepare("DELETE FROM checkpoints WHERE study = ?1 AND trial = ?2 AND step > ?3"));
  s.set_attribute = TRY(connection.Prepare(
      "INSERT OR REPLACE INTO attributes (study, trial, name, value) VALUES (?, ?, ?, ?)"));
  s.remove_attribute = TRY(
      connection.Prepare("DELETE FROM attributes WHERE study = ?1 AND trial = ?2 AND name = ?3"));
  return std::unique_ptr<Tables>(new Tables(connection, std::move(statements)));
}

// Writes down what one event means for the tables. One overload an event: a new one does not
// compile until it has its own.
struct Tables::Deriver {
  Statements& s;
  StudyId study;
  int64_t position;
  int64_t time_us;

  Status operator()(const StudyCreated& event) const {
    const StudySpec& spec = event.spec;
    const MetricSpec* metric = spec.Metric();
    Prepared& row = s.create_study;
    row.Bind(1, study).Bind(2, spec.name).Bind(3, spec.method);
    if (metric == nullptr) {
      row.BindNull(4).BindNull(5).BindNull(6);
    } else {
      row.Bind(4, metric->name);
      row.Bind(5, metric->goal == Goal::kMinimize ? "minimize" : "maximize");
      row.BindIf(6, metric->target);
    }
    row.BindIf(7, spec.budget.run_cap).BindIf(8, SecondsOf(spec.budget.wall_clock));
    TRY(row.Bind(9, std::to_string(spec.seed)).Bind(10, time_us).Run());
    return SetAttributes(0, spec.attributes);
  }
  Status operator()(const StudyResumed& event) const {
    s.set_budget.Bind(1, study).BindIf(2, event.budget.run_cap);
    return s.set_budget.BindIf(3, SecondsOf(event.budget.wall_clock)).Run();
  }
  Status operator()(const StudyStateSet& event) const {
    return s.set_state.Bind(1, study).Bind(2, Name(event.state)).Bind(3, event.why).Run();
  }
  Status operator()(const StudyDeleted&) const { return s.delete_study.Bind(1, study).Run(); }
  Status operator()(const Decided&) const { return absl::OkStatus(); }
  Status operator()(const TrialCreated& event) const {
    const Proposal& proposal = event.proposal;
    Prepared& row = s.create_trial;
    row.Bind(1, study).Bind(2, event.trial).Bind(3, proposal.why).Bind(4, event.decision);
    row.Bind(5, JsonObject(proposal.tags)).BindIf(8, proposal.successor_of).Bind(9, time_us);
    if (proposal.warm_start) {
      row.Bind(6, proposal.warm_start->trial).Bind(7, proposal.warm_start->checkpoint.step);
    } else {
      row.BindNull(6).BindNull(7);
    }
    TRY(row.Run());
    for (const auto& [name, value] : proposal.params) {
      s.param.Bind(1, study).Bind(2, event.trial).Bind(3, name);
      BindParam(value);
      TRY(s.param.Run());
    }
    return absl::OkStatus();
  }
  Status operator()(const TrialAssigned& event) const {
    const bool own = event.start && event.start->trial == event.trial;
    if (event.attempt > 1) {
      TRY(ForgetAfter(event.trial, own ? event.start->checkpoint.step : -1));
    }
    TRY(s.start_trial.Bind(1, study).Bind(2, event.trial).Bind(3, time_us).Run());
    s.attempt.Bind(1, study).Bind(2, event.trial).Bind(3, event.attempt).Bind(4, event.worker);
    s.attempt.Bind(5, event.start ? event.start->checkpoint.step : int64_t{0}).Bind(6, time_us);
    return s.attempt.Run();
  }
  Status operator()(const AttemptReclaimed& event) const {
    TRY(s.start_trial.Bind(1, study).Bind(2, event.trial).Bind(3, time_us).Run());
    s.end_attempt.Bind(1, study).Bind(2, event.trial).Bind(3, event.attempt);
    return s.end_attempt.Bind(4, Name(AttemptEnd::kRunning)).Bind(5, "").BindNull(6).Run();
  }
  Status operator()(const AttemptAttached& event) const {
    return SetTotalSteps(event.trial, event.total_steps);
  }
  Status operator()(const MeasurementsReported& event) const {
    return SetTotalSteps(event.trial, event.total_steps);
  }
  Status operator()(const CheckpointRegistered& event) const {
    const Checkpoint& checkpoint = event.checkpoint;
    Prepared& row = s.checkpoint;
    row.Bind(1, study).Bind(2, event.trial).Bind(3, checkpoint.attempt).Bind(4, checkpoint.step);
    row.Bind(5, checkpoint.path).Bind(6, checkpoint.sha256);
    return row.Bind(7, checkpoint.bytes).Bind(8, time_us).Run();
  }
  Status operator()(const TrialTold&) const { return absl::OkStatus(); }
  Status operator()(const DirectiveDelivered& event) const {
    if (!event.rolled_back_to) return absl::OkStatus();
    return ForgetAfter(event.trial, *event.rolled_back_to);
  }
  Status operator()(const AttemptEnded& event) const {
    s.end_attempt.Bind(1, study).Bind(2, event.trial).Bind(3, event.attempt);
    TRY(s.end_attempt.Bind(4, Name(event.end)).Bind(5, event.why).Bind(6, time_us).Run());
    if (!IsEnded(event.state)) {
      return s.set_trial_state.Bind(1, study).Bind(2, event.trial).Bind(3, Name(event.state)).Run();
    }
    s.end_trial.Bind(1, study).Bind(2, event.trial).Bind(3, Name(event.state));
    return s.end_trial.BindIf(4, event.objective).Bind(5, event.why).Bind(6, time_us).Run();
  }
  Status operator()(const TrialRequeued& event) const {
    return s.requeue_trial.Bind(1, study).Bind(2, event.trial).Run();
  }
  Status operator()(const RetryFoundNone&) const { return absl::OkStatus(); }
  Status operator()(const AttributesSet& event) const {
    for (const std::string& name : event.remove) {
      TRY(s.remove_attribute.Bind(1, study).Bind(2, event.trial).Bind(3, name).Run());
    }
    return SetAttributes(event.trial, event.set);
  }
  Status operator()(const CallAnswered&) const { return absl::OkStatus(); }

 private:
  Status SetAttributes(TrialId trial, const std::map<std::string, std::string>& attributes) const {
    for (const auto& [name, value] : attributes) {
      TRY(s.set_attribute.Bind(1, study).Bind(2, trial).Bind(3, name).Bind(4, value).Run());
    }
    return absl::OkStatus();
  }
  Status SetTotalSteps(TrialId trial, const std::optional<int64_t>& total_steps) const {
    if (!total_steps) return absl::OkStatus();
    return s.set_total_steps.Bind(1, study).Bind(2, trial).Bind(3, *total_steps).Run();
  }
  // From `step` on, a line of training was given up. Not what came later: a rebuild sees that, too.
  Status ForgetAfter(TrialId trial, int64_t step) const {
    s.forget_measurements.Bind(1, study).Bind(2, trial).Bind(3, step);
    TRY(s.forget_measurements.Bind(4, position).Run());
    return s.forget_checkpoints.Bind(1, study).Bind(2, trial).Bind(3, step).Run();
  }
  void BindParam(const ParamValue& value) const {
    std::visit(
        [this](const auto& held) {
          using T = std::decay_t<decltype(held)>;
          if constexpr (std::is_same_v<T, bool>) {
            s.param.Bind(4, held ? 1 : 0).Bind(5, "bool");
          } else if constexpr (std::is_same_v<T, int64_t>) {
            s.param.Bind(4, held).Bind(5, "int");
          } else if constexpr (std::is_same_v<T, double>) {
            s.param.Bind(4, held).Bind(5, "float");
          } else if constexpr (std::is_same_v<T, std::string>) {
            s.param.Bind(4, held).Bind(5, "string");
          } else {
            static_assert(std::is_same_v<T, JsonText>);
            s.param.Bind(4, held.text).Bind(5, "json");
          }
        },
        value);
  }
};

Tables::Tables(Connection& connection, std::unique_ptr<Statements> statements)
    : connection_(connection), statements_(std::move(statements)) {}
Tables::~Tables() = default;

Status Tables::Derive(const LogRecord& record) {
  const Deriver derive{*statements_, record.study, record.position,
                       record.time.time_since_epoch().count()};
  for (const Event& event : record.events) TRY(std::visit(derive, event));
  return absl::OkStatus();
}

Status Tables::Write(const LogRecord& record) {
  Statements& s = *statements_;
  const EncodedRecord encoded = Encode(record);
  s.log.Bind(1, encoded.study).Bind(2, encoded.position).Bind(3, encoded.time_us);
  TRY(s.log.Bind(4, encoded.checksum).BindBlob(5, encoded.payload).Run());
  int item = 0;
  for (const MeasurementRow& row : encoded.rows) {
    s.measurement.Bind(1, encoded.study).Bind(2, encoded.position).Bind(3, item++);
    s.measurement.Bind(4, row.trial).Bind(5, row.attempt).Bind(6, row.rollback).Bind(7, row.step);
    s.measurement.Bind(8, row.metric).Bind(9, row.value).Bind(10, KindOf(row.value));
    TRY(s.measurement.Bind(11, row.time_us).Run());
  }
  for (const Event& event : record.events) {
    if (!std::holds_alternative<StudyDeleted>(event)) continue;
    TRY(s.tombstone.Bind(1, record.study).Run());
  }
  return Derive(record);
}

Status Tables::Rebuild() {
  for (const char* table : DerivedTables()) {
    TRY(connection_.Run(std::string("DELETE FROM ") + table));
  }
  TRY(connection_.Run("UPDATE measurements SET counts = 1 WHERE counts <> 1"));
  Prepared studies =
      TRY(connection_.Prepare("SELECT DISTINCT study FROM log WHERE study NOT IN (SELECT study "
                              "FROM deleted) ORDER BY study"));
  RecordDecoder decoder;
  while (TRY(studies.Step())) {
    const StudyId study = studies.Int(0);
    const Status rebuilt = Rebuild(study, decoder);
    if (rebuilt.ok()) continue;
    if (DetailOf(rebuilt).code != "LOG_DAMAGED") return rebuilt;
    TRY(NameDamaged(study));
  }
  return absl::OkStatus();
}

Status Tables::Rebuild(StudyId study, RecordDecoder& decoder) {
  LogReader reader = TRY(LogReader::Open(connection_, study));
  EncodedRecord encoded;
  while (TRY(reader.Next(encoded))) {
    const LogRecord record = TRY(decoder.Decode(encoded));
    TRY(Derive(record));
  }
  return absl::OkStatus();
}

// So that it is not forgotten: where its first record can be read it has its row already.
Status Tables::NameDamaged(StudyId study) {
  Prepared row = TRY(connection_.Prepare(
      "INSERT OR IGNORE INTO studies (study, name, state, why, method, seed, created_us) "
      "VALUES (?, ?, 'Active', 'its log is damaged', '', '0', 0)"));
  return row.Bind(1, study).Bind(2, "damaged study " + std::to_string(study)).Run();
}

}  // namespace jizi::tuner
