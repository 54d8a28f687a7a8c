#pragma once
// machine.h - what the figures of a benchmark stand beside: the disk's fsync, memory, files, and
// a folder to work in.
// Fails: Folder::Make: exits the program, for nothing can be measured then.

#include <cstdint>
#include <string>

namespace jizi::bench {

// Made with mkdtemp under TMPDIR (or /tmp), removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Times in us of `count` appends of 4 KiB, each made durable with fsync; -1 if that fails.
struct FsyncTimes {
  double p50_us = -1;
  double p99_us = -1;
};
FsyncTimes MeasureFsync(const std::string& file, int count);

int64_t ResidentBytes();                         // Of this process.
int64_t DatabaseBytes(const std::string& file);  // With its write-ahead log.

}  // namespace jizi::bench
