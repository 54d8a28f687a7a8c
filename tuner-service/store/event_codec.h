#pragma once
// event_codec.h - what happened, to and from the messages that the log stores; and the rows that
// hold measurements' numbers. A measurement's numbers are stored once, as rows of table
// `measurements`, a row per metric: the event says only how many rows each has. Fails: EventReader
// gives DataLoss LOG_DAMAGED for bytes that no version of ours wrote and for rows that do not fit
// the event. Threads: values.   Cost: O(size).

#include <span>
#include <vector>

#include "base/status.h"
#include "jizi/store/v1/events.pb.h"
#include "tuner-service/core/events.h"
#include "tuner-service/store/record.h"

namespace jizi::tuner {

namespace stored = ::jizi::store::v1;

// Appends the event's measurements to `rows`.
void ToStored(const Event& event, stored::Event* message, std::vector<MeasurementRow>& rows);

// Reads the events of one record, taking the rows of their measurements in order.
class EventReader {
 public:
  explicit EventReader(std::span<const MeasurementRow> rows) : rows_(rows) {}
  StatusOr<Event> Read(const stored::Event& message);
  size_t rows_left() const { return rows_.size(); }

 private:
  StatusOr<Event> ReadMeasurements(const stored::MeasurementsReported& message);

  std::span<const MeasurementRow> rows_;
};

}  // namespace jizi::tuner
