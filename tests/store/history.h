#pragma once
// history.h - histories of studies for the store's tests, made by the core itself, and a few
// helpers around files and SQL.

#include <cstdint>
#include <string>
#include <vector>

#include "tuner-service/core/core.h"
#include "tuner-service/store/store.h"

namespace jizi::tuner::testing {

// A study with an event of every kind but StudyDeleted: reports with NaN and gradients, roll-backs,
// pauses, failures, lost workers.
std::vector<LogRecord> RichHistory(StudyId id, const std::string& name);

// `trials` trials that are suggested, report `reports` times each and complete, all by one worker.
std::vector<LogRecord> PlainHistory(StudyId id, const std::string& name, int trials, int reports);

// A record that deletes the study after this history.
LogRecord Deletion(const std::vector<LogRecord>& history);

StudyData StateAfter(const std::vector<LogRecord>& history, size_t records);
inline StudyData StateAfter(const std::vector<LogRecord>& history) {
  return StateAfter(history, history.size());
}

// A folder that is gone at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& bytes);

// Rows of a query with plain SQLite, cells joined by '|'; NULL is "NULL".
std::vector<std::string> Rows(const std::string& path, const std::string& sql);
// Statements that change the file, with plain SQLite.
void EditFile(const std::string& path, const std::string& sql);

std::unique_ptr<Store> OpenOrFail(const std::string& path);

}  // namespace jizi::tuner::testing
