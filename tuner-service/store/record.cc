#include "tuner-service/store/record.h"

#include <google/protobuf/arena.h>

#include <array>
#include <bit>
#include <type_traits>
#include <utility>

#include "tuner-service/core/core.h"
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

std::string Place(const EncodedRecord& record) {
  return "study " + std::to_string(record.study) + ", record " + std::to_string(record.position);
}

// What an event says about trials must be about trials that exist.
class FitsState {
 public:
  explicit FitsState(const StudyData& state)
      : state_(state), trials_(static_cast<int64_t>(state.study.trials.size())) {}

  Status operator()(const StudyCreated&) {
    if (state_.log_position != 0 || created_) return Damaged("a study that is created twice");
    created_ = true;
    return absl::OkStatus();
  }
  Status operator()(const TrialCreated& event) {
    if (event.trial != trials_ + 1) return Damaged("a trial whose number does not follow the last");
    ++trials_;
    return Exists();
  }
  Status operator()(const TrialAssigned& event) {
    if (event.attempt != AttemptsOf(event.trial) + 1) {
      return Damaged("an attempt whose number does not follow the last");
    }
    started_ = event.trial;
    return Trial(event.trial);
  }
  Status operator()(const AttributesSet& event) {
    return event.trial == 0 ? Exists() : Trial(event.trial);
  }
  Status operator()(const CallAnswered& event) {
    return event.worker.empty() ? Attempt(event.trial, event.attempt) : Exists();
  }
  Status operator()(const MeasurementsReported& event) {
    if (AttemptsOf(event.trial) == 0) return Damaged("a report of a trial that never ran");
    return Trial(event.trial);
  }
  template <typename T>
  Status operator()(const T& event) {
    if constexpr (requires { event.attempt; }) {
      return Attempt(event.trial, event.attempt);
    } else if constexpr (requires { event.trial; }) {
      return Trial(event.trial);
    } else {
      return Exists();
    }
  }

 private:
  Status Exists() const {
    if (state_.log_position == 0 && !created_) return Damaged("a study without its creation");
    return absl::OkStatus();
  }
  Status Trial(TrialId trial) const {
    if (trial < 1 || trial > trials_) {
      return Damaged("trial " + std::to_string(trial) + " of " + std::to_string(trials_));
    }
    return Exists();
  }
  int AttemptsOf(TrialId trial) const {
    const tuner::Trial* found = state_.study.Find(trial);
    const int before = found == nullptr ? 0 : static_cast<int>(found->attempts.size());
    return before + (started_ == trial ? 1 : 0);
  }
  Status Attempt(TrialId trial, int attempt) const {
    TRY(Trial(trial));
    if (attempt < 1 || attempt > AttemptsOf(trial)) {
      return Damaged("trial " + std::to_string(trial) + " has no attempt " +
                     std::to_string(attempt));
    }
    return absl::OkStatus();
  }

  const StudyData& state_;
  int64_t trials_;
  TrialId started_ = 0;
  bool created_ = false;
};

}  // namespace

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
  if (ChecksumOf(record) != record.checksum) {
    return Damaged(Place(record) + " does not have the checksum that it was written with");
  }
  memory_->arena.Reset();
  auto* message = google::protobuf::Arena::CreateMessage<stored::Record>(&memory_->arena);
  if (!message->ParseFromString(record.payload)) {
    return Damaged(Place(record) + " is not a record");
  }
  LogRecord decoded;
  decoded.study = record.study;
  decoded.position = record.position;
  decoded.time = Timestamp(std::chrono::microseconds(record.time_us));
  decoded.events.reserve(static_cast<size_t>(message->events().size()));
  EventReader reader(record.rows);
  for (const stored::Event& event : message->events()) {
    auto read = reader.Read(event);
    if (!read.ok()) return Damaged(Place(record) + ": " + std::string(read.status().message()));
    decoded.events.push_back(*std::move(read));
  }
  if (reader.rows_left() != 0) return Damaged(Place(record) + " has too many measurements");
  return decoded;
}

Status CheckFits(const StudyData& state, const LogRecord& record) {
  const std::string place =
      "study " + std::to_string(record.study) + ", record " + std::to_string(record.position);
  if (record.position != state.log_position + 1) {
    return Damaged(place + " stands after record " + std::to_string(state.log_position));
  }
  FitsState fits(state);
  for (const Event& event : record.events) {
    const Status status = std::visit(fits, event);
    if (!status.ok()) return Damaged(place + ": " + std::string(status.message()));
  }
  return absl::OkStatus();
}

Status Replay::Add(const EncodedRecord& record) {
  const LogRecord decoded = TRY(decoder_.Decode(record));
  TRY(CheckFits(state_, decoded));
  for (const Event& event : decoded.events) {
    if (std::holds_alternative<StudyDeleted>(event)) deleted_ = true;
  }
  Apply(state_, decoded);
  return absl::OkStatus();
}

}  // namespace jizi::tuner
