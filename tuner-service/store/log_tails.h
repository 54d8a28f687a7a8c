#pragma once
// log_tails.h - where each study's log ends: what both stores check before they write a group.
// Fails: Check gives AlreadyExists CONSTRAINT for a record that does not follow its study's last
// one, comes after the study was deleted, or creates a study whose name is taken. Threads: none of
// its own.   Cost: O(log studies) a record.

#include <map>
#include <span>
#include <string>

#include "base/status.h"
#include "tuner-service/core/events.h"

namespace jizi::tuner {

// AlreadyExists CONSTRAINT: one command of the group clashes with what is stored.
Status Clash(const std::string& what);

// NotFound STUDY_NOT_FOUND.
Status NoSuchStudy(StudyId study);

class LogTails {
 public:
  struct Tail {
    int64_t position = 0;
    std::string name;
    bool deleted = false;
  };
  using Tails = std::map<StudyId, Tail>;

  // The tails that these records would change, as they would be then.
  StatusOr<Tails> Check(std::span<const LogRecord> records) const;

  // Once the records are durable.
  void Keep(Tails changed);

  const Tails& all() const { return tails_; }

 private:
  Tails tails_;
  std::map<std::string, StudyId> names_;  // Of studies that are not deleted.
};

}  // namespace jizi::tuner
