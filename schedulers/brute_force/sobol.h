#pragma once
// sobol.h - Sobol's low-discrepancy points with Owen's nested uniform scrambling.
// Shapes: point i of d dimensions is d coordinates in [0, 1), multiples of 2^-53.
// Promise: of the points 0 .. 2^k - 1 (k <= 53) each dimension has exactly one in each interval [j
// / 2^k, (j + 1) / 2^k), and pairs of dimensions share the net's balance; another seed scrambles
// anew and keeps both. Fails: never; dimension < kSobolDimensions and 0 <= point < 2^53 are the
// caller's to see to. Threads: immutable.   Cost: O(53) hashes a coordinate. Source: Joe & Kuo 2008
// (direction numbers, in Gray-code order as Antonov & Saleev 1979); Owen 1995.

#include <array>
#include <cstdint>

namespace jizi::tuner {

inline constexpr int kSobolDimensions = 256;
inline constexpr int kSobolBits = 53;

struct SobolNumbers {
  uint32_t polynomial;               // Primitive over GF(2), all coefficients as bits.
  std::array<uint32_t, 11> initial;  // As many as its degree.
};
extern const SobolNumbers kSobolNumbers[kSobolDimensions];

// The bits of the coordinate before scrambling: the coordinate is they / 2^53.
uint64_t SobolBits(int dimension, int64_t point);

// Each bit is flipped by a coin that depends on the bits above it (and on seed and dimension).
uint64_t OwenScramble(uint64_t bits, uint64_t seed, int dimension);

double ScrambledSobol(uint64_t seed, int dimension, int64_t point);

}  // namespace jizi::tuner
