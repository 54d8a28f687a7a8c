#pragma once
// random_hex.h - 64 random bits as 16 hex digits, for names that nobody else may guess or repeat.
// Threads: any.

#include <string>

namespace jizi::tuner {

std::string RandomHex64();

// Lower-case hex of bytes: a lease's token in the environment.
std::string HexOf(const std::string& bytes);

}  // namespace jizi::tuner
