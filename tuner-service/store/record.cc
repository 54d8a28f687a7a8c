#include "tuner-service/store/record.h"

#include <google/protobuf/arena.h>

#include <array>
#include <bit>
#include <map>
#include <span>
#include <utility>

#include "tuner-service/core/core.h"
#include "tuner-service/store/event_codec.h"
#include "tuner-service/store/spec_codec.h"

namespace jizi::tuner {
namespace {

// FNV-1a, 64 bits (Fowler, Noll & Vo 1991): finds damage, not malice. Eight bytes at a time for
// numbers.
class Checksum {
 public:
  void Add(int64_t number) { Mix(static_cast<uint64_t>(number)); }
  void Add(double number) { Mix(number != number ? kNan : std::bit_cast<uint64_t>(number)); }
  void Add(const std::string& bytes) {
    Mix(bytes.size());
    for (const char byte : bytes) Mix(static_cast<unsigned char>(byte));
  }
  // SQLite's integers are signed.
  int64_t value() const { return static_cast<int64_t>(hash_); }

 private:
  static constexpr uint64_t kNan = 0x7ff8000000000000;  // All NaN are one: only the kind is stored.
  void Mix(uint64_t word) {
    hash_ = (hash_ ^ word) * 0x100000001b3;
    hash_ ^= hash_ >> 32;  // A word's high bits must reach the low ones.
  }
  uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace

Status InRecord(StudyId study, int64_t position, const Status& status) {
  if (status.ok()) return status;
  return Error(status.code(),
               "study " + std::to_string(study) + ", record " + std::to_string(position) + ": " +
                   std::string(status.message()),
               DetailOf(status));
}

int64_t ChecksumOf(const EncodedRecord& record) {
  Checksum sum;
  sum.Add(record.study);
  sum.Add(record.position);
  sum.Add(record.time_us);
  sum.Add(record.payload);
  for (const MeasurementRow& row : record.rows) {
    sum.Add(row.trial);
    sum.Add(static_cast<int64_t>(row.attempt));
    sum.Add(static_cast<int64_t>(row.rollback));
    sum.Add(row.step);
    sum.Add(row.metric);
    sum.Add(row.value);
    sum.Add(row.time_us);
  }
  return sum.value();
}

EncodedRecord Encode(const LogRecord& record) {
  EncodedRecord encoded;
  encoded.study = record.study;
  encoded.position = record.position;
  encoded.time_us = record.time.time_since_epoch().count();
  google::protobuf::Arena arena;
  auto* message = google::protobuf::Arena::CreateMessage<stored::Record>(&arena);
  for (const Event& event : record.events) ToStored(event, message->add_events(), encoded.rows);
  message->SerializeToString(&encoded.payload);
  encoded.checksum = ChecksumOf(encoded);
  return encoded;
}

struct RecordDecoder::Memory {
  static google::protobuf::ArenaOptions Options(std::array<char, 16384>& block) {
    google::protobuf::ArenaOptions options;
    options.initial_block = block.data();
    options.initial_block_size = block.size();
    return options;
  }
  alignas(16) std::array<char, 16384> block;
  google::protobuf::Arena arena{Options(block)};
};

RecordDecoder::RecordDecoder() : memory_(std::make_unique<Memory>()) {}
RecordDecoder::~RecordDecoder() = default;

StatusOr<LogRecord> RecordDecoder::Decode(const EncodedRecord& record) {
  const auto damaged = [&record](const char* what) {
    return InRecord(record.study, record.position, Damaged(what));
  };
  if (ChecksumOf(record) != record.checksum) {
    return damaged("its checksum is not the one that it was written with");
  }
  memory_->arena.Reset();
  auto* message = google::protobuf::Arena::CreateMessage<stored::Record>(&memory_->arena);
  if (!message->ParseFromString(record.payload)) return damaged("its bytes are not a record");
  LogRecord decoded;
  decoded.study = record.study;
  decoded.position = record.position;
  decoded.time = Timestamp(std::chrono::microseconds(record.time_us));
  decoded.events.reserve(static_cast<size_t>(message->events().size()));
  EventReader reader(record.rows);
  for (const stored::Event& event : message->events()) {
    StatusOr<Event> read = reader.Read(event);
    if (!read.ok()) return InRecord(record.study, record.position, read.status());
    decoded.events.push_back(*std::move(read));
  }
  if (reader.rows_left() != 0) return damaged("it has too many measurements");
  return decoded;
}

Status Replay::Add(const EncodedRecord& record) {
  const LogRecord decoded = TRY(decoder_.Decode(record));
  TRY(CheckFits(state_, decoded));
  Apply(state_, decoded);
  return absl::OkStatus();
}

}  // namespace jizi::tuner
