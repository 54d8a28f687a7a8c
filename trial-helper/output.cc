#include "trial-helper/output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>

namespace jizi::helper {

void FlushOutput() {
  // Not fflush(nullptr): that would wait for a thread that reads stdin.
  std::fflush(stdout);
  std::fflush(stderr);
  std::cout.flush();
  std::clog.flush();
}

void MarkOutput(const std::string& mark, int64_t trial) {
  if (mark.empty()) return;
  const std::string line = "\x1ejizi-trial " + mark + " " + std::to_string(trial) + "\n";
  for (const int file : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat info{};
    // A file of the program's own is not its worker's to divide.
    if (fstat(file, &info) != 0 || !S_ISFIFO(info.st_mode)) continue;
    // In one piece: it is shorter than what a pipe takes at once.
    while (write(file, line.data(), line.size()) < 0 && errno == EINTR) {
    }
  }
}

}  // namespace jizi::helper
