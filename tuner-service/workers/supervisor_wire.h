#pragma once
// supervisor_wire.h - what parent and supervisor say to each other over their socket pair.
// A message is a fixed header (length, kind) that carries the descriptors, then its body.
// Fails: Send: false when the other side is gone. Receive: nullopt at end of file or for a message
// that is not whole; both ends are our own code, so that means the other side was killed.
// Threads: one reader and one writer for each end.   Cost: two system calls a message.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace jizi::tuner {

enum class WireKind : uint32_t {
  kStart = 1,     // Parent: id, folder, argv, environment; descriptors: stdout, stderr.
  kEnd = 2,       // Parent: id, value = grace in milliseconds.
  kStarted = 3,   // Supervisor: id, value = pid.
  kRefused = 4,   // Supervisor: id, value = errno, folder = what failed.
  kFinished = 5,  // Supervisor: id, value = exit code or -1, signal.
};

// What a refusal names when only the program itself can be to blame.
inline constexpr char kExecStep[] = "starting";

struct WireMessage {
  WireKind kind = WireKind::kEnd;
  int64_t id = 0;
  int64_t value = 0;
  int64_t signal = 0;
  std::string text;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // NAME=value.
  std::vector<int> descriptors;          // Received ones belong to the receiver.
};

bool SendWire(int socket, const WireMessage& message);
std::optional<WireMessage> ReceiveWire(int socket);

}  // namespace jizi::tuner
