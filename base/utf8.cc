#include "base/utf8.h"

#include <algorithm>

namespace jizi {

CodePoint DecodeUtf8(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + bytes > text.size()) return {};
  char32_t value = first & (0xFFU >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    value = value << 6 | (byte(i) & 0x3FU);
  }
  const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  if (overlong || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return {};
  return {value, bytes};
}

size_t FirstBadUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = DecodeUtf8(text, at).bytes;
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::string_view::npos;
}

std::string Utf8Text(std::string_view text, size_t limit) {
  std::string clipped;
  for (size_t at = 0; at < text.size();) {
    const size_t length = DecodeUtf8(text, at).bytes;
    const size_t taken = std::max<size_t>(length, 1);
    if (clipped.size() + taken > limit) return clipped + "...";
    if (length == 0) {
      clipped += '?';
    } else {
      clipped.append(text, at, length);
    }
    at += taken;
  }
  return clipped;
}

}  // namespace jizi
