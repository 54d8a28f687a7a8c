// The memory twin: keeps what the file would keep, encoded, so that tests and simulators run the
// same codec, checks and replay.

#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "base/mutex.h"
#include "tuner-service/store/log_tails.h"
#include "tuner-service/store/record.h"
#include "tuner-service/store/store.h"

namespace jizi::tuner {
namespace {

class MemoryStore : public Store {
 public:
  StatusOr<std::vector<StudyName>> List() override {
    const MutexLock lock(mutex_);
    std::vector<StudyName> names;
    for (const auto& [id, tail] : tails_.all()) {
      if (!tail.deleted) names.push_back({id, tail.name});
    }
    return names;
  }

  StatusOr<StudyId> LastId() override {
    const MutexLock lock(mutex_);
    return tails_.all().empty() ? 0 : tails_.all().rbegin()->first;
  }

  StatusOr<StudyData> Load(StudyId study) override {
    const MutexLock lock(mutex_);
    const auto tail = tails_.all().find(study);
    if (tail == tails_.all().end() || tail->second.deleted) return NoSuchStudy(study);
    Replay replay;
    for (const EncodedRecord& record : logs_.at(study)) TRY(replay.Add(record));
    return std::move(replay.state());
  }

  Status Append(std::span<const LogRecord> records) override {
    const MutexLock lock(mutex_);
    LogTails::Tails changed = TRY(tails_.Check(records));
    std::vector<EncodedRecord> group;
    std::set<Key> keys;
    for (const LogRecord& record : records) {
      group.push_back(Encode(record));
      for (const MeasurementRow& row : group.back().rows) {
        Key key{record.study, row.trial, row.attempt, row.rollback, row.step, row.metric};
        if (keys_.contains(key) || !keys.insert(std::move(key)).second) {
          return Clash("trial " + std::to_string(row.trial) + " has '" + row.metric + "' at step " +
                       std::to_string(row.step) + " already");
        }
      }
    }
    keys_.merge(keys);
    for (EncodedRecord& record : group) logs_[record.study].push_back(std::move(record));
    for (const auto& [study, tail] : changed) {
      if (tail.deleted) logs_.erase(study);
    }
    tails_.Keep(std::move(changed));
    return absl::OkStatus();
  }

 private:
  // The key of a measurement (docs/contracts.md, 7).
  using Key = std::tuple<StudyId, TrialId, int, int, int64_t, std::string>;

  Mutex mutex_;
  LogTails tails_ GUARDED_BY(mutex_);
  std::map<StudyId, std::vector<EncodedRecord>> logs_ GUARDED_BY(mutex_);
  std::set<Key> keys_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Store> MakeMemoryStore() {
  return std::make_unique<MemoryStore>();
}

}  // namespace jizi::tuner
