#include "schedulers/model/text.h"

#include <algorithm>
#include <utility>

#include "schedulers/model/params.h"

namespace jizi::tuner {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxQuotedBytes = 60;
constexpr char32_t kBad = 0xFFFFFFFF;

bool IsContinuation(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

// The code point at `at`, which moves behind it; kBad where the bytes are no UTF-8 (overlong forms
// and surrogates included).
char32_t NextCodePoint(const std::string& text, size_t& at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const int extra = first < 0x80             ? 0
                    : (first & 0xE0) == 0xC0 ? 1
                    : (first & 0xF0) == 0xE0 ? 2
                    : (first & 0xF8) == 0xF0 ? 3
                                             : -1;
  if (extra < 0 || at + static_cast<size_t>(extra) >= text.size()) return kBad;
  char32_t point = extra == 0 ? first : first & (0x3F >> extra);
  for (int i = 1; i <= extra; ++i) {
    const auto byte = static_cast<unsigned char>(text[at + static_cast<size_t>(i)]);
    if (!IsContinuation(byte)) return kBad;
    point = (point << 6) | (byte & 0x3F);
  }
  at += static_cast<size_t>(extra) + 1;
  constexpr char32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
  if (point < kSmallest[extra] || point > 0x10FFFF) return kBad;
  return point >= 0xD800 && point <= 0xDFFF ? kBad : point;
}

bool IsPrintable(char32_t point) {
  if (point < 0x20 || (point >= 0x7F && point < 0xA0)) return false;  // C0, DEL, C1.
  if (point == 0x2028 || point == 0x2029) return false;               // They end a line.
  return (point & 0xFFFE) != 0xFFFE && point != 0xFEFF;
}

// Optimal string alignment: Levenshtein's edits and swaps of neighbours.
size_t Edits(const std::string& a, const std::string& b) {
  std::vector<size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

bool IsUtf8(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    if (NextCodePoint(text, at) == kBad) return false;
  }
  return true;
}

bool IsName(const std::string& text) {
  if (text.empty() || text.size() > kMaxNameBytes) return false;
  for (size_t at = 0; at < text.size();) {
    const char32_t point = NextCodePoint(text, at);
    if (point == kBad || !IsPrintable(point)) return false;
  }
  return true;
}

std::optional<std::string> Nearest(const std::string& word,
                                   const std::vector<std::string>& candidates) {
  if (word.size() > kMaxNameBytes) return std::nullopt;
  std::optional<std::string> nearest;
  size_t fewest = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 2 * kMaxNameBytes) continue;
    const size_t edits = Edits(word, candidate);
    if (edits > 0 && edits < fewest) {
      fewest = edits;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string Quoted(const std::string& text) {
  if (text.size() <= kMaxQuotedBytes) return ToJsonText(ParamValue(text));
  size_t cut = kMaxQuotedBytes;  // Not inside a character.
  while (cut > 0 && IsContinuation(static_cast<unsigned char>(text[cut]))) --cut;
  return ToJsonText(ParamValue(text.substr(0, cut) + "..."));
}

}  // namespace jizi::tuner
