#pragma once
// fault_vfs.h - a SQLite VFS that fails, or loses power, at the k-th write, truncation or sync of
// the files beneath it. Power loss: from then on every call fails; Reboot puts the files back to
// what was synced, plus, at random, some of the writes since (a sector of 512 bytes lands or does
// not). Threads: one store at a time; calls of its connections from any.

#include <cstdint>
#include <memory>
#include <string>

namespace jizi::tuner::testing {

enum class Fault { kIoError, kFull, kReadOnly, kPowerLoss };

class FaultVfs {
 public:
  FaultVfs();  // Registers itself under name().
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  const std::string& name() const;

  // The k-th write from now (1, 2, ...) meets this fault. Other than a power loss it happens once.
  void FailAt(int64_t k, Fault fault);
  bool fired() const;

  // After a power loss, with every connection closed: the files as the disk has them.
  void Reboot(uint64_t seed);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace jizi::tuner::testing
