#pragma once
// printed_queue.h - what a program has printed and the service has not yet taken: measurements in
// the order of their printing, in bounded memory.
// While the service answers, the slot takes no more lines once there are `Enough`, and the program
// waits at its pipe. While it is away training goes on: the oldest measurements go first, counted;
// of each metric the last value that went is kept, so that what was printed last is never lost.
// A batch stays the same until it is answered: the service knows a repeat by its bytes.
// Fails: never. Threads: one at a time.   Cost: Add is O(its metrics).

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "jizi/v1/tune_service.pb.h"

namespace jizi::tuner {

class PrintedQueue {
 public:
  static constexpr size_t kEnoughBytes = 4u << 20;  // Of memory, as all but kBatchBytes.
  static constexpr size_t kMostBytes = 32u << 20;
  static constexpr size_t kMostKeptNames = 1000;   // Of metrics whose last value is kept.
  static constexpr size_t kBatchCount = 1000;      // Measurements in one batch.
  static constexpr size_t kBatchBytes = 1u << 20;  // The same; the service takes 16 MiB.

  void Add(v1::Measurement measurement);
  void Clear();  // Also the batch that is not answered.

  bool empty() const { return waiting_.empty() && kept_.empty() && batch_.empty(); }
  bool Enough() const { return bytes_ >= kEnoughBytes; }
  size_t bytes() const { return bytes_; }
  int64_t dropped() const { return dropped_; }  // Measurements of which something went.
  int64_t size() const;                         // Measurements.

  // The batch that is to be answered next: the same until one of the three below.
  const std::deque<v1::Measurement>& Batch();
  bool in_flight() const { return !batch_.empty(); }
  void Answered();
  // The service refuses it for one of its measurements: the next batches are halves of it, until
  // that one stands alone. Not for a batch of one.
  void Halve();

 private:
  struct Waiting {
    v1::Measurement measurement;
    size_t bytes = 0;
  };
  struct Kept {
    v1::Measurement at;  // Step and time.
    double value = 0;
  };

  void DropOldest();
  void ReturnKept();

  std::deque<Waiting> waiting_;
  size_t bytes_ = 0;  // Of waiting_.
  std::map<std::string, Kept> kept_;
  std::deque<v1::Measurement> batch_;
  size_t most_ = kBatchCount;  // Of the next batch.
  int64_t dropped_ = 0;
};

}  // namespace jizi::tuner
