#include "tuner-service/store/log_tails.h"

#include <utility>

namespace jizi::tuner {

Status Clash(const std::string& what) {
  return Error(StatusCode::kAlreadyExists, what, {"CONSTRAINT", "log", "retry one by one"});
}

Status NoSuchStudy(StudyId study) {
  return Error(StatusCode::kNotFound, "there is no study " + std::to_string(study),
               {"STUDY_NOT_FOUND", std::to_string(study), "list what there is: jizi studies"});
}

StatusOr<LogTails::Tails> LogTails::Check(std::span<const LogRecord> records) const {
  Tails changed;
  std::map<std::string, StudyId> taken;  // By this group.
  for (const LogRecord& record : records) {
    const auto known = tails_.find(record.study);
    Tail& tail = changed.try_emplace(record.study, known == tails_.end() ? Tail() : known->second)
                     .first->second;
    const std::string place =
        "record " + std::to_string(record.position) + " of study " + std::to_string(record.study);
    if (tail.deleted) return Clash(place + ": the study was deleted");
    if (record.position != tail.position + 1) {
      return Clash(place + " does not follow record " + std::to_string(tail.position));
    }
    tail.position = record.position;
    for (const Event& event : record.events) {
      if (const auto* created = std::get_if<StudyCreated>(&event)) {
        tail.name = created->spec.name;
        const auto holder = names_.find(tail.name);
        const bool free = holder == names_.end() ||
                          (changed.count(holder->second) > 0 && changed[holder->second].deleted);
        const auto mine = taken.find(tail.name);
        if (!free || (mine != taken.end() && !changed[mine->second].deleted)) {
          return Clash(place + ": there is a study named '" + tail.name + "' already");
        }
        taken[tail.name] = record.study;
      } else if (std::holds_alternative<StudyDeleted>(event)) {
        tail.deleted = true;
      }
    }
  }
  return changed;
}

void LogTails::Keep(Tails changed) {
  // Names are freed before they are taken: one group may delete a study and create its namesake.
  for (const auto& [study, tail] : changed) {
    const auto holder = names_.find(tail.name);
    if (tail.deleted && holder != names_.end() && holder->second == study) names_.erase(holder);
  }
  for (auto& [study, tail] : changed) {
    if (!tail.deleted) names_[tail.name] = study;
    tails_[study] = std::move(tail);
  }
}

}  // namespace jizi::tuner
