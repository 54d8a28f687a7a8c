#include "tuner-service/cli/run_files.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>

namespace jizi::tuner {
namespace {

constexpr size_t kLongestName =
    80;  // A file name has at most 255 bytes; people read the beginning.

bool IsSafe(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

// FNV-1a, folded to 32 bits: the same on every machine, for folders that outlive a build.
uint32_t HashOfName(const std::string& name) {
  uint64_t hash = 14695981039346656037ULL;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

std::string SupervisorLockOf(const std::string& database) {
  return database + ".supervisor";
}

std::string TrialsRootOf(const std::string& database) {
  const std::string stem =
      database.ends_with(".db") ? database.substr(0, database.size() - 3) : database;
  return stem + ".trials";
}

std::string StudyFolder(const std::string& trials_root, const std::string& study) {
  std::string safe = study.substr(0, kLongestName);
  for (char& c : safe) {
    if (!IsSafe(c)) c = '_';
  }
  char hash[16];
  std::snprintf(hash, sizeof hash, "-%08x", static_cast<unsigned>(HashOfName(study)));
  return trials_root + "/" + safe + hash;
}

Status MakeFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return Error(
      StatusCode::kPermissionDenied,
      "cannot make the trials' folder " + folder + ": " + error.message(),
      {"TRIALS_FOLDER", folder, "make its parent writable, or choose another place with --db"});
}

}  // namespace jizi::tuner
