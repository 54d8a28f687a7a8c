#include "tuner-service/workers/random_hex.h"

#include <sys/random.h>

#include <cerrno>

#include "base/status.h"

namespace jizi::tuner {

std::string RandomHex64() {
  std::string bytes(8, '\0');
  ssize_t got;
  do {
    got = getrandom(bytes.data(), bytes.size(), 0);
  } while (got < 0 && errno == EINTR);
  CHECK(got == static_cast<ssize_t>(bytes.size()));  // The kernel promises it for so few bytes.
  return HexOf(bytes);
}

std::string HexOf(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace jizi::tuner
