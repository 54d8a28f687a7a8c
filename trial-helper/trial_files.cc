#include "trial-helper/trial_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "trial-helper/params.h"

namespace jizi::helper {

void MakePrivateFolder(const std::string& folder) {
  const std::filesystem::path parent = std::filesystem::path(folder).parent_path();
  if (mkdir(folder.c_str(), 0700) == 0 || errno != ENOENT || parent == folder) return;
  MakePrivateFolder(parent.string());
  mkdir(folder.c_str(), 0700);
}

void KeepParams(const Assigned& assigned) {
  MakePrivateFolder(assigned.folder);
  const std::string path = assigned.folder + "/params.json";
  const std::string text = ToJson(assigned.params) + "\n";
  // Never waiting: something else may stand there.
  const int file =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  const bool written =
      file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (file >= 0) close(file);
  if (!written) SayLine("cannot write " + path + ": " + std::strerror(error));
}

}  // namespace jizi::helper
