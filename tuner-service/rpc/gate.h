#pragma once
// gate.h - who may call: the protocol's version, and the token (docs/contracts.md, 24).
// Fails: FailedPrecondition VERSION_MISMATCH; Unauthenticated TOKEN_MISSING, TOKEN_WRONG.
// Threads: immutable.   Cost: one SHA-256 of the token; the comparison takes the same time wherever
// the tokens differ.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace jizi::tuner {

// Metadata of a call; absent where the caller sent none.
struct Credentials {
  std::optional<std::string_view>
      protocol;  // `jizi-protocol`. Absent is taken: a person with grpcurl need not know of it.
  std::optional<std::string_view> authorization;  // "Bearer " and the token.
};

class Gate {
 public:
  explicit Gate(const std::string& token);  // Empty: everyone may.
  Status Check(const Credentials& credentials) const;

 private:
  bool open_;
  std::array<uint8_t, 32> digest_{};
};

}  // namespace jizi::tuner
