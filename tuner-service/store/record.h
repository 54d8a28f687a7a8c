#pragma once
// record.h - one row of the log as bytes: what both stores keep, so that both run the same codec.
// The checksum covers the whole record with its measurements: bytes that a disk or a hand changed
// are found before Apply sees them. Fails: Decode gives DataLoss LOG_DAMAGED. A record that decodes
// is still judged by CheckFits before it is applied. Threads: Encode and CheckFits are pure; a
// RecordDecoder is used by one thread at a time.   Cost: O(size).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tuner-service/core/state.h"

namespace jizi::tuner {

// One metric of one measurement.
struct MeasurementRow {
  TrialId trial = 0;
  int attempt = 0;
  int rollback = 0;
  int64_t step = 0;
  std::string metric;
  double value = 0;  // NaN and infinities allowed; never -0.
  int64_t time_us = 0;
};

struct EncodedRecord {
  StudyId study = 0;
  int64_t position = 0;
  int64_t time_us = 0;
  std::string payload;   // A jizi.store.v1.Record.
  int64_t checksum = 0;  // Of everything here.
  std::vector<MeasurementRow> rows;
};

EncodedRecord Encode(const LogRecord& record);
int64_t ChecksumOf(const EncodedRecord& record);  // Of all but its checksum.

class RecordDecoder {
 public:
  RecordDecoder();
  ~RecordDecoder();
  StatusOr<LogRecord> Decode(const EncodedRecord& record);

 private:
  struct Memory;  // Reused from record to record: a load decodes millions.
  std::unique_ptr<Memory> memory_;
};

// Adds to an error in which record it is.
Status InRecord(StudyId study, int64_t position, const Status& status);

// May this record follow that state? Apply trusts its log, and Execute what Apply made, so a file
// that someone wrote by hand is stopped here (check_fits.cc). Fails: DataLoss LOG_DAMAGED for a
// wrong position, a trial or an attempt that is not there or not in the state for it, a study that
// does not begin with its creation, and values that no command could have brought.
Status CheckFits(const StudyData& state, const LogRecord& record);

// Replays encoded records, one after the other.
class Replay {
 public:
  Status Add(const EncodedRecord& record);
  StudyData& state() { return state_; }

 private:
  RecordDecoder decoder_;
  StudyData state_;
};

}  // namespace jizi::tuner
