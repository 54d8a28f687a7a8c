#pragma once
// used_numbers.h - a set of whole numbers that finds the k-th number that is not in it.
// Threads: a value.   Cost: O(log n + n / kChunk) each, 8 bytes a number.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace jizi::tuner {

class UsedNumbers {
 public:
  bool Insert(int64_t number);  // False if it was there already.
  void Erase(int64_t number);   // It must be there.
  bool Contains(int64_t number) const;
  int64_t size() const { return size_; }

  // The number that `smaller` unused numbers from 0 on stand before.
  int64_t NthUnused(int64_t smaller) const;

 private:
  static constexpr size_t kChunk = 2048;  // A chunk is split at twice this.

  size_t ChunkOf(int64_t number) const;

  std::vector<std::vector<int64_t>> chunks_;  // Ascending, none empty.
  int64_t size_ = 0;
};

}  // namespace jizi::tuner
