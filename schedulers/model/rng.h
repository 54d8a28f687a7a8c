#pragma once
// rng.h - random numbers that are an argument: a stream keyed by where it is used, the same on
// every machine. Draws are our own, since the standard library's distributions differ between
// vendors. Threads: a value; copy it to have the same stream again.   Cost: O(1) a draw, 32 bytes.
// Source: xoshiro256** (Blackman & Vigna 2018), keyed through SplitMix64; Lemire 2019 for Below.

#include <array>
#include <cstdint>
#include <initializer_list>

namespace jizi::tuner {

// Sebastiano Vigna's generators, to the letter.
struct SplitMix64 {
  uint64_t state = 0;
  uint64_t Next();
};
struct Xoshiro256 {  // xoshiro256**; the state must not be all zero.
  std::array<uint64_t, 4> state{};
  uint64_t Next();
};

// One well mixed word of a key; other words, another order or another number of words give another
// hash.
uint64_t HashOf(std::initializer_list<uint64_t> key);

class Rng {
 public:
  // Streams of different keys are independent for all practical purposes; the order of the key
  // matters.
  explicit Rng(std::initializer_list<uint64_t> key);

  static Rng ForSuggest(uint64_t seed, int64_t decision);
  static Rng ForChange(uint64_t seed, int64_t trial, int attempt, int rollback, int64_t step,
                       int change);

  uint64_t Next();
  double Uniform();                // [0, 1), 53 bits.
  uint64_t Below(uint64_t bound);  // [0, bound), without bias; bound > 0.
  double Normal();                 // Mean 0, variance 1.

 private:
  Xoshiro256 bits_;
};

}  // namespace jizi::tuner
