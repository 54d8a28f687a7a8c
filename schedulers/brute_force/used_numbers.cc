#include "schedulers/brute_force/used_numbers.h"

#include <algorithm>

#include "base/status.h"

namespace jizi::tuner {

// The last chunk that starts at or before the number; the first one for a number before all.
size_t UsedNumbers::ChunkOf(int64_t number) const {
  const auto after = std::upper_bound(
      chunks_.begin(), chunks_.end(), number,
      [](int64_t n, const std::vector<int64_t>& chunk) { return n < chunk.front(); });
  return after == chunks_.begin() ? 0 : static_cast<size_t>(after - chunks_.begin()) - 1;
}

bool UsedNumbers::Contains(int64_t number) const {
  if (chunks_.empty()) return false;
  const std::vector<int64_t>& chunk = chunks_[ChunkOf(number)];
  return std::binary_search(chunk.begin(), chunk.end(), number);
}

bool UsedNumbers::Insert(int64_t number) {
  if (chunks_.empty()) {
    chunks_.push_back({number});
    ++size_;
    return true;
  }
  const size_t at = ChunkOf(number);
  std::vector<int64_t>& chunk = chunks_[at];
  const auto place = std::lower_bound(chunk.begin(), chunk.end(), number);
  if (place != chunk.end() && *place == number) return false;
  chunk.insert(place, number);
  ++size_;
  if (chunk.size() >= 2 * kChunk) {
    const auto middle = chunk.begin() + static_cast<ptrdiff_t>(kChunk);
    std::vector<int64_t> upper(middle, chunk.end());
    chunk.erase(middle, chunk.end());
    chunks_.insert(chunks_.begin() + static_cast<ptrdiff_t>(at) + 1, std::move(upper));
  }
  return true;
}

void UsedNumbers::Erase(int64_t number) {
  CHECK(Contains(number));
  const size_t at = ChunkOf(number);
  std::vector<int64_t>& chunk = chunks_[at];
  chunk.erase(std::lower_bound(chunk.begin(), chunk.end(), number));
  --size_;
  if (chunk.empty()) chunks_.erase(chunks_.begin() + static_cast<ptrdiff_t>(at));
}

int64_t UsedNumbers::NthUnused(int64_t smaller) const {
  // In a sorted list the unused numbers before its i-th are list[i] - i: find how many of the list
  // stand before the answer.
  int64_t before = 0;
  for (const std::vector<int64_t>& chunk : chunks_) {
    const auto count = static_cast<int64_t>(chunk.size());
    if (chunk.back() - (before + count - 1) <= smaller) {
      before += count;
      continue;
    }
    int64_t low = 0,
            high = count - 1;  // The first whose unused numbers before it are more than `smaller`.
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (chunk[static_cast<size_t>(middle)] - (before + middle) <= smaller) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return smaller + before + low;
  }
  return smaller + before;
}

}  // namespace jizi::tuner
