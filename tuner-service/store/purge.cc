#include "tuner-service/store/purge.h"

#include <array>
#include <string>

namespace jizi::tuner {
namespace {

// By its key and not by positions or trials: one record may hold a million measurements.
struct Part {
  const char* table;
  const char* key;  // Without the study.
};
constexpr std::array<Part, 7> kParts = {{{"measurements", "position, item"},
                                         {"log", "position"},
                                         {"trials", "trial"},
                                         {"params", "trial, name"},
                                         {"attempts", "trial, attempt"},
                                         {"checkpoints", "trial, attempt, step"},
                                         {"attributes", "trial, name"}}};

std::string Slice(const Part& part) {
  const std::string key = part.key;
  return std::string("DELETE FROM ") + part.table + " WHERE study = ?1 AND (" + key +
         ") IN (SELECT " + key + " FROM " + part.table + " WHERE study = ?1 ORDER BY " + key +
         " LIMIT ?2)";
}

}  // namespace

StatusOr<bool> PurgeSlice(Connection& connection) {
  Prepared next = TRY(connection.Prepare("SELECT study FROM deleted WHERE purged = 0 LIMIT 1"));
  if (!TRY(next.Step())) return false;
  const int64_t study = next.Int(0);
  next.Reset();
  TRY(connection.Begin());
  bool found = false;
  for (const Part& part : kParts) {
    Prepared statement = TRY(connection.Prepare(Slice(part).c_str()));
    TRY(statement.Bind(1, study).Bind(2, kPurgeRows).Run());
    found = found || connection.changes() > 0;
  }
  if (!found) {
    Prepared done = TRY(connection.Prepare("UPDATE deleted SET purged = 1 WHERE study = ?"));
    TRY(done.Bind(1, study).Run());
  }
  TRY(connection.Commit());
  return true;
}

}  // namespace jizi::tuner
