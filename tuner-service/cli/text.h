#pragma once
// text.h - text for people: widths on a terminal, the nearest right name, durations and numbers.
// Widths count columns: wide characters (CJK, emoji) take two, combining ones none; control
// characters are shown as `?`. Threads: pure functions.   Cost: linear, but NearestName O(names x
// length^2).

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace jizi::tuner {

using Seconds = std::chrono::duration<double>;

// The lines as they are, but control characters (other than the newline) and bad UTF-8 as `?`.
std::string Printable(const std::string& text);

size_t Width(const std::string& text);

// At most `width` columns; what is cut off is said by an ellipsis. Control characters and bad UTF-8
// become `?`.
std::string Fit(const std::string& text, size_t width);
// Fit, then filled up with blanks.
std::string Padded(const std::string& text, size_t width);
std::string PaddedLeft(const std::string& text, size_t width);

// The items with a blank between them, whole ones only; what does not fit is said by an ellipsis.
std::string FitItems(const std::vector<std::string>& items, size_t width);

// Lines of at most `width` columns, broken at blanks where there are any; the ones after the first
// are indented. Colours (escape sequences that end in `m`) take no column and are kept.
std::vector<std::string> Wrapped(const std::string& line, size_t width);

// For messages: one line, at most 60 columns.
std::string Shown(const std::string& text);

size_t EditDistance(const std::string& a, const std::string& b);

// The name that is at most `edits` away and nearest (the first of equals).
std::optional<std::string> NearestName(const std::string& name,
                                       const std::vector<std::string>& names, size_t edits);

// "did you mean `x`?" if one is near (schedulers/model/text.h, Nearest), else "known here: a, b,
// c".
std::string MendForName(const std::string& name, const std::vector<std::string>& names);

// "90", "90s", "15m", "1h30m", "2d". Fails: InvalidArgument for anything else, and for what is not
// above 0.
StatusOr<Seconds> ParseDuration(const std::string& text);

std::string ShowDuration(Seconds duration);  // "0.0s", "9.1s", "42s", "3m 05s", "2h 07m", "3d 04h".
std::string ShowNumber(double value);        // At most 6 digits: "0.9134", "1.2e-05", "NaN".

// One word of a shell's command line, quoted where it must be.
std::string ForShell(const std::string& word);

std::string Joined(const std::vector<std::string>& parts, const std::string& between);

}  // namespace jizi::tuner
