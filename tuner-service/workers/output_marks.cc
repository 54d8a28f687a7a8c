#include "tuner-service/workers/output_marks.h"

#include <algorithm>

namespace jizi::tuner {

constexpr size_t kMaxDigits = 18;  // They fit in 63 bits.

void OutputMarks::Expect(const std::string& mark) {
  start_ = mark.empty() ? "" : "\x1ejizi-trial " + mark + " ";
}

OutputMarks::Found OutputMarks::Look(std::string_view text) const {
  const size_t known = std::min(text.size(), start_.size());
  if (text.substr(0, known) != std::string_view(start_).substr(0, known)) return {};
  Found found;
  for (size_t i = start_.size(); i < text.size(); ++i) {
    const char c = text[i];
    const size_t digits = i - start_.size();
    if (c == '\n' && digits > 0) {
      found.size = i + 1;
      return found;
    }
    if (c < '0' || c > '9' || digits == kMaxDigits) return {};
    found.trial = found.trial * 10 + (c - '0');
  }
  return {.partial = true};
}

}  // namespace jizi::tuner
