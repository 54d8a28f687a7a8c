#pragma once
// text.h - names and messages: which names are allowed, and what a misspelt one was meant to be.
// Threads: pure functions.   Cost: linear; Nearest is candidates x length^2.

#include <optional>
#include <string>
#include <vector>

namespace jizi::tuner {

// 1 to 256 bytes of UTF-8 without control characters, line separators or noncharacters.
bool IsName(const std::string& text);

// The candidate with the fewest edits (letters added, dropped, replaced or swapped with their
// neighbour; the earliest of equals), if at most a third of the word's letters, and at least one
// edit, would have to change.
std::optional<std::string> Nearest(const std::string& word,
                                   const std::vector<std::string>& candidates);

// In double quotes, escaped as in JSON, and cut to about 60 bytes so that a message stays a line.
std::string Quoted(const std::string& text);

}  // namespace jizi::tuner
