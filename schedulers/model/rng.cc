#include "schedulers/model/rng.h"

#include <bit>

#include "schedulers/model/quantile.h"

namespace jizi::tuner {
namespace {

// First words of the keys, so that the two kinds of streams never meet.
constexpr uint64_t kSuggestStream = 1;
constexpr uint64_t kChangeStream = 2;

}  // namespace

uint64_t SplitMix64::Next() {
  state += 0x9E3779B97F4A7C15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

uint64_t Xoshiro256::Next() {
  const uint64_t result = std::rotl(state[1] * 5, 7) * 9;
  const uint64_t shifted = state[1] << 17;
  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= shifted;
  state[3] = std::rotl(state[3], 45);
  return result;
}

uint64_t HashOf(std::initializer_list<uint64_t> key) {
  // Each word is mixed in before the next, so that order and number of the words count.
  uint64_t hash = key.size();
  for (const uint64_t word : key) hash = SplitMix64{hash ^ word}.Next() + word;
  return SplitMix64{hash}.Next();
}

Rng::Rng(std::initializer_list<uint64_t> key) {
  SplitMix64 seeds{HashOf(key)};
  for (uint64_t& word : bits_.state) word = seeds.Next();
}

Rng Rng::ForSuggest(uint64_t seed, int64_t decision) {
  return Rng({kSuggestStream, seed, static_cast<uint64_t>(decision)});
}

Rng Rng::ForChange(uint64_t seed, int64_t trial, int attempt, int rollback, int64_t step,
                   int change) {
  return Rng({kChangeStream, seed, static_cast<uint64_t>(trial), static_cast<uint64_t>(attempt),
              static_cast<uint64_t>(rollback), static_cast<uint64_t>(step),
              static_cast<uint64_t>(change)});
}

uint64_t Rng::Next() {
  return bits_.Next();
}

double Rng::Uniform() {
  return static_cast<double>(Next() >> 11) * 0x1p-53;
}

uint64_t Rng::Below(uint64_t bound) {
  // Lemire's method: the high half of a product is uniform once the few low halves that would bias
  // it are drawn again.
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(Next()) * bound;
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t biased = (0 - bound) % bound;
    while (static_cast<uint64_t>(product) < biased) product = static_cast<Wide>(Next()) * bound;
  }
  return static_cast<uint64_t>(product >> 64);
}

double Rng::Normal() {
  // The middle of one of 2^53 cells, so that neither tail ends at a probability of 0.
  return NormalQuantile((static_cast<double>(Next() >> 11) + 0.5) * 0x1p-53);
}

}  // namespace jizi::tuner
