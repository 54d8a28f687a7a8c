#include "tuner-service/cli/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/utf8.h"
#include "schedulers/model/text.h"

namespace jizi::tuner {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};
// Unicode 15, coarse: what people put into names. Not worth a table generator.
constexpr std::array kNoWidth = {Range{0x300, 0x36F}, Range{0x200B, 0x200F}, Range{0x20D0, 0x20FF},
                                 Range{0xFE00, 0xFE0F}, Range{0xFE20, 0xFE2F}};
constexpr std::array kTwoWide = {
    Range{0x1100, 0x115F},   Range{0x2E80, 0x303E},   Range{0x3041, 0x33FF},
    Range{0x3400, 0x4DBF},   Range{0x4E00, 0x9FFF},   Range{0xA000, 0xA4CF},
    Range{0xAC00, 0xD7A3},   Range{0xF900, 0xFAFF},   Range{0xFE30, 0xFE4F},
    Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},   Range{0x1F300, 0x1F64F},
    Range{0x1F680, 0x1F6FF}, Range{0x1F900, 0x1F9FF}, Range{0x20000, 0x3FFFD}};

template <size_t N>
bool In(const std::array<Range, N>& ranges, uint32_t value) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
    return value >= range.first && value <= range.last;
  });
}

// Text directions could hide what a name says, so they are shown as `?` like control characters.
bool IsControl(uint32_t value) {
  return value < 0x20 || (value >= 0x7F && value < 0xA0) || (value >= 0x202A && value <= 0x202E) ||
         (value >= 0x2066 && value <= 0x2069) || value == 0x2028 || value == 0x2029;
}

struct Cell {
  std::string text;
  size_t width = 1;
};

std::vector<Cell> Cells(const std::string& text) {
  std::vector<Cell> cells;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = DecodeUtf8(text, at);
    if (point.bytes == 0 || IsControl(point.value)) {
      cells.push_back({"?", 1});
      at += std::max<size_t>(1, point.bytes);
      continue;
    }
    const size_t width = In(kNoWidth, point.value) ? 0 : In(kTwoWide, point.value) ? 2 : 1;
    cells.push_back({text.substr(at, point.bytes), width});
    at += point.bytes;
  }
  return cells;
}

}  // namespace

std::string Printable(const std::string& text) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = DecodeUtf8(text, at);
    const size_t bytes = std::max<size_t>(1, point.bytes);
    const bool bad = point.bytes == 0 || (IsControl(point.value) && text[at] != '\n');
    shown += bad ? "?" : text.substr(at, bytes);
    at += bytes;
  }
  return shown;
}

size_t Width(const std::string& text) {
  size_t width = 0;
  for (const Cell& cell : Cells(text)) width += cell.width;
  return width;
}

std::string Fit(const std::string& text, size_t width) {
  const std::vector<Cell> cells = Cells(text);
  size_t total = 0;
  for (const Cell& cell : cells) total += cell.width;
  std::string fitted;
  if (total <= width) {
    for (const Cell& cell : cells) fitted += cell.text;
    return fitted;
  }
  if (width == 0) return "";
  size_t used = 0;
  for (const Cell& cell : cells) {
    if (used + cell.width > width - 1) break;
    fitted += cell.text;
    used += cell.width;
  }
  return fitted + "…";
}

std::string Padded(const std::string& text, size_t width) {
  std::string fitted = Fit(text, width);
  return fitted + std::string(width - std::min(width, Width(fitted)), ' ');
}

std::string PaddedLeft(const std::string& text, size_t width) {
  const std::string fitted = Fit(text, width);
  return std::string(width - std::min(width, Width(fitted)), ' ') + fitted;
}

std::string FitItems(const std::vector<std::string>& items, size_t width) {
  std::string line;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string longer = line.empty() ? items[i] : line + " " + items[i];
    const size_t after = i + 1 < items.size() ? 2 : 0;  // For " …".
    if (Width(longer) + after > width) {
      line.resize(line.find_last_not_of(' ') + 1);
      return Fit(line.empty() ? "…" : line + " …", width);
    }
    line = longer;
  }
  return Fit(line, width);
}

std::vector<std::string> Wrapped(const std::string& line, size_t width) {
  constexpr size_t kIndent = 4;
  std::vector<std::string> lines(1);
  size_t used = 0;
  size_t blank = std::string::npos;  // The last one in lines.back() where it can be broken,
  size_t used_to_blank = 0;          // and the columns up to and with it.
  for (size_t at = 0; at < line.size();) {
    if (line[at] == '\x1b') {
      const size_t end = std::min(line.find('m', at), line.size() - 1) + 1;
      lines.back().append(line, at, end - at);
      at = end;
      continue;
    }
    const CodePoint point = DecodeUtf8(line, at);
    const size_t bytes = std::max<size_t>(1, point.bytes);
    const std::string character = line.substr(at, bytes);
    const size_t columns = Width(character);
    if (used + columns > width && used > 0) {
      std::string rest;
      if (character == " ") {
        at = std::min(line.find_first_not_of(' ', at), line.size());
        used = 0;
      } else if (blank != std::string::npos) {
        rest = lines.back().substr(blank + 1);
        lines.back().resize(blank);
        used -= used_to_blank;
      } else {
        used = 0;
      }
      const size_t indent = width > 4 * kIndent ? kIndent : 0;
      lines.push_back(std::string(indent, ' ') + rest);
      used += indent;
      blank = std::string::npos;
      continue;
    }
    lines.back() += character;
    used += columns;
    at += bytes;
    if (character == " " && used > kIndent) {
      blank = lines.back().size() - 1;
      used_to_blank = used;
    }
  }
  return lines;
}

std::string Shown(const std::string& text) {
  return Fit(text, 60);
}

size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::optional<std::string> NearestName(const std::string& name,
                                       const std::vector<std::string>& names, size_t edits) {
  std::optional<std::string> nearest;
  size_t best = edits + 1;
  for (const std::string& candidate : names) {
    // A long name cannot be near a short one, and comparing them would be slow.
    if (name.size() > candidate.size() + edits) continue;
    if (const size_t distance = EditDistance(name, candidate); distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string MendForName(const std::string& name, const std::vector<std::string>& names) {
  if (const auto nearest = Nearest(name, names)) return "did you mean `" + *nearest + "`?";
  return "known here: " + Joined(names, ", ");
}

StatusOr<Seconds> ParseDuration(const std::string& text) {
  const auto bad = [&] {
    return Error(StatusCode::kInvalidArgument, "`" + Shown(text) + "` is no length of time",
                 {"BAD_DURATION", "", "write it as 90s, 15m, 1h30m or 2d, and above 0"});
  };
  double seconds = 0;
  size_t at = 0;
  if (text.empty() || text.size() > 64) return bad();
  while (at < text.size()) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number,
                                              std::chars_format::fixed);
    if (error != std::errc() || number < 0) return bad();
    const bool only = at == 0;
    at = static_cast<size_t>(end - text.data());
    double unit = 1;
    if (at == text.size()) {
      if (!only) return bad();
    } else if (text[at] == 's') {
      unit = 1;
    } else if (text[at] == 'm') {
      unit = 60;
    } else if (text[at] == 'h') {
      unit = 3600;
    } else if (text[at] == 'd') {
      unit = 86400;
    } else {
      return bad();
    }
    if (at < text.size()) ++at;
    seconds += number * unit;
  }
  constexpr double kLongest = 100.0 * 365 * 86400;
  if (!(seconds > 0) || seconds > kLongest) return bad();
  return Seconds(seconds);
}

std::string ShowDuration(Seconds duration) {
  const auto s = static_cast<int64_t>(std::max(0.0, duration.count()));
  char text[64];
  if (duration.count() < 10) {
    const double shown = std::max(0.0, duration.count());
    std::snprintf(text, sizeof text, "%.1fs", std::floor(shown * 10) / 10);
  } else if (s < 60) {
    std::snprintf(text, sizeof text, "%ds", static_cast<int>(s));
  } else if (s < 3600) {
    std::snprintf(text, sizeof text, "%dm %02ds", static_cast<int>(s / 60),
                  static_cast<int>(s % 60));
  } else if (s < 86400) {
    std::snprintf(text, sizeof text, "%dh %02dm", static_cast<int>(s / 3600),
                  static_cast<int>(s / 60 % 60));
  } else {
    std::snprintf(text, sizeof text, "%lldd %02dh", static_cast<long long>(s / 86400),
                  static_cast<int>(s / 3600 % 24));
  }
  return text;
}

std::string ShowNumber(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char text[64];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string ForShell(const std::string& word) {
  static constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=+-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string Joined(const std::vector<std::string>& parts, const std::string& between) {
  std::string joined;
  for (const std::string& part : parts) joined += (joined.empty() ? "" : between) + part;
  return joined;
}

}  // namespace jizi::tuner
