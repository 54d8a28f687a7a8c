#include "tuner-service/rpc/gate.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "proto/client.h"

namespace jizi::tuner {
namespace {

constexpr std::string_view kBearer = "Bearer ";
constexpr char kMend[] =
    "send the first line of the server's FILE.token: set JIZI_TOKEN_FILE or --token-file";

// Digests have one length, so that a comparison does not tell the token's.
std::array<uint8_t, 32> Sha256(std::string_view text) {
  std::array<uint8_t, 32> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

}  // namespace

Gate::Gate(const std::string& token) : open_(token.empty()), digest_(Sha256(token)) {}

Status Gate::Check(const Credentials& credentials) const {
  if (credentials.protocol && *credentials.protocol != kProtocolVersion) {
    return Error(
        StatusCode::kFailedPrecondition,
        "this server speaks protocol " + std::string(kProtocolVersion) + ", the caller protocol " +
            std::string(credentials.protocol->substr(0, 32)),
        {"VERSION_MISMATCH", "jizi-protocol", "use the same release of Jizi on both sides"});
  }
  if (open_) return absl::OkStatus();
  if (!credentials.authorization ||
      credentials.authorization->substr(0, kBearer.size()) != kBearer) {
    return Error(StatusCode::kUnauthenticated, "this server wants a token",
                 {"TOKEN_MISSING", "authorization", kMend});
  }
  const auto digest = Sha256(credentials.authorization->substr(kBearer.size()));
  if (CRYPTO_memcmp(digest.data(), digest_.data(), digest.size()) != 0) {
    return Error(StatusCode::kUnauthenticated, "the token is not this server's",
                 {"TOKEN_WRONG", "authorization", kMend});
  }
  return absl::OkStatus();
}

}  // namespace jizi::tuner
