#include "schedulers/brute_force/sobol.h"

#include <bit>
#include <cstddef>

#include "schedulers/model/rng.h"

namespace jizi::tuner {
namespace {

using Directions = std::array<uint64_t, kSobolBits>;

// The direction of bit k stands at 53 - k - 1 leading bits: v_k = m_k / 2^(k+1) as a fraction of 53
// bits.
Directions DirectionsOf(int dimension) {
  const SobolNumbers& numbers = kSobolNumbers[dimension];
  const int degree = std::bit_width(numbers.polynomial) - 1;
  std::array<uint64_t, kSobolBits> m{};
  for (int k = 0; k < kSobolBits; ++k) {
    const auto at = static_cast<size_t>(k);
    if (degree == 0) {
      m[at] = 1;
    } else if (k < degree) {
      m[at] = numbers.initial[at];
    } else {
      m[at] = m[at - static_cast<size_t>(degree)];
      for (int i = 1; i <= degree; ++i) {
        const uint64_t coefficient = (numbers.polynomial >> (degree - i)) & 1;
        m[at] ^= (coefficient * m[at - static_cast<size_t>(i)]) << i;
      }
    }
  }
  for (int k = 0; k < kSobolBits; ++k) m[static_cast<size_t>(k)] <<= kSobolBits - k - 1;
  return m;
}

}  // namespace

uint64_t SobolBits(int dimension, int64_t point) {
  const Directions directions = DirectionsOf(dimension);
  const auto index = static_cast<uint64_t>(point);
  uint64_t bits = 0;
  for (uint64_t gray = index ^ (index >> 1); gray != 0; gray &= gray - 1) {
    bits ^= directions[static_cast<size_t>(std::countr_zero(gray))];
  }
  return bits;
}

uint64_t OwenScramble(uint64_t bits, uint64_t seed, int dimension) {
  const uint64_t key = HashOf({seed, static_cast<uint64_t>(dimension)});
  uint64_t scrambled = 0;
  for (int level = 0; level < kSobolBits; ++level) {
    const int below = kSobolBits - level - 1;
    // The bits above this one, marked by a leading 1 so that levels do not share coins.
    const uint64_t prefix = (uint64_t{1} << level) | (level == 0 ? 0 : bits >> (below + 1));
    const uint64_t coin = SplitMix64{key ^ (prefix * 0xD1342543DE82EF95)}.Next() >> 63;
    scrambled |= (((bits >> below) & 1) ^ coin) << below;
  }
  return scrambled;
}

double ScrambledSobol(uint64_t seed, int dimension, int64_t point) {
  const uint64_t bits = OwenScramble(SobolBits(dimension, point), seed, dimension);
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace jizi::tuner
