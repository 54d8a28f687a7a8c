#include <limits>
#include <utility>

#include "tuner-service/store/spec_codec.h"
#include "tuner-service/store/tables.h"

namespace jizi::tuner {
namespace {

// The columns of a row in `measurements`, as ReadRows selects them.
enum Column { kPosition, kItem, kTrial, kAttempt, kRollback, kStep, kMetric, kValue, kKind, kTime };

StatusOr<double> ValueOf(const Prepared& row) {
  std::string kind = row.Text(kKind);
  if (kind == "finite") return row.Double(kValue);
  if (kind == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (kind == "+inf") return std::numeric_limits<double>::infinity();
  if (kind == "-inf") return -std::numeric_limits<double>::infinity();
  return Damaged("a measurement of kind '" + kind + "'");
}

}  // namespace

StatusOr<LogReader> LogReader::Open(Connection& connection, StudyId study) {
  LogReader reader(TRY(connection.Prepare("SELECT position, time_us, checksum, payload FROM log "
                                          "WHERE study = ? ORDER BY position")),
                   TRY(connection.Prepare(
                       "SELECT position, item, trial, attempt, rollback, step, metric, value, "
                       "kind, time_us FROM measurements WHERE study = ? "
                       "ORDER BY position, item")));
  reader.study_ = study;
  reader.log_.Bind(1, study);
  reader.rows_.Bind(1, study);
  reader.row_waits_ = TRY(reader.rows_.Step());
  return reader;
}

StatusOr<bool> LogReader::Next(EncodedRecord& record) {
  if (!TRY(log_.Step())) {
    if (row_waits_) return Damaged("measurements without a record that reported them");
    return false;
  }
  record.study = study_;
  record.position = log_.Int(0);
  record.time_us = log_.Int(1);
  record.checksum = log_.Int(2);
  log_.Text(3, record.payload);
  TRY(ReadRows(record));
  return true;
}

Status LogReader::ReadRows(EncodedRecord& record) {
  size_t count = 0;
  while (row_waits_ && rows_.Int(kPosition) == record.position) {
    if (rows_.Int(kItem) != static_cast<int64_t>(count)) return Damaged("a measurement is missing");
    if (count == record.rows.size()) record.rows.emplace_back();
    MeasurementRow& row = record.rows[count++];
    row.trial = rows_.Int(kTrial);
    row.attempt = static_cast<int>(rows_.Int(kAttempt));
    row.rollback = static_cast<int>(rows_.Int(kRollback));
    row.step = rows_.Int(kStep);
    rows_.Text(kMetric, row.metric);
    row.value = TRY(ValueOf(rows_));
    row.time_us = rows_.Int(kTime);
    row_waits_ = TRY(rows_.Step());
  }
  record.rows.resize(count);
  return absl::OkStatus();
}

}  // namespace jizi::tuner
