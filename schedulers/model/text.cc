#include "schedulers/model/text.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "schedulers/model/params.h"

namespace jizi::tuner {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxQuotedBytes = 60;

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

bool IsName(const std::string& text) {
  if (text.empty() || text.size() > kMaxNameBytes) return false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = DecodeUtf8(text, at);
    if (point.bytes == 0 || !IsPrintable(point.value)) return false;
    at += point.bytes;
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
  return ToJsonText(ParamValue(Utf8Text(text, kMaxQuotedBytes)));
}

}  // namespace jizi::tuner
