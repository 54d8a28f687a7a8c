#pragma once
// utf8.h - strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. A string field
// of a message holds nothing else: its reader refuses the whole message. Threads: pure functions.
// Cost: linear.

#include <cstddef>
#include <string>
#include <string_view>

namespace jizi {

struct CodePoint {
  char32_t value = 0;
  size_t bytes = 0;  // 0: what stands there is no UTF-8.
};

// `at` must be within the text.
CodePoint DecodeUtf8(std::string_view text, size_t at);

// Where the first byte stands that is no UTF-8; npos: nowhere.
size_t FirstBadUtf8(std::string_view text);
inline bool IsUtf8(std::string_view text) {
  return FirstBadUtf8(text) == text.npos;
}

// At most `limit` bytes, and an ellipsis where more was left out; each byte that is no UTF-8
// becomes
// '?'.
std::string Utf8Text(std::string_view text, size_t limit);

}  // namespace jizi
