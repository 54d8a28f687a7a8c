#pragma once
// output.h - what a program prints belongs to the trial that it works on. C's and C++'s buffers are
// emptied where a trial begins and ends, and in a process that takes trial after trial each begins
// with a mark that its worker takes out of the stream again (contract 19).
// Threads: any.

#include <cstdint>
#include <string>

namespace jizi::helper {

// stdout, std::cout, std::clog.
void FlushOutput();

// Into stdout and stderr, where they are pipes. `mark`: JIZI_OUTPUT_MARK; empty: nothing.
void MarkOutput(const std::string& mark, int64_t trial);

}  // namespace jizi::helper
