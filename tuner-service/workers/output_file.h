#pragma once
// output_file.h - the file that keeps what a program prints: all of it up to a cap, then its head
// and its tail, with a line between that says how much was dropped.
// While the program runs the tail stands in two files beside it (.tail, .tail2), each at most a
// quarter of the cap, so that memory stays small and kill -9 of us loses nothing that was written.
// Disk: at most the cap and a line, and as much again for the file of the attempt before (.old).
// Fails: what cannot be written (a full disk) is dropped, counted and said; the program goes on.
// Threads: one at a time.   Cost: one write(2) for each Append.

#include <cstdint>
#include <string>
#include <string_view>

namespace jizi::tuner {

class OutputFile {
 public:
  // Appends to what an earlier attempt left there; when that has used half of the cap, it becomes
  // <path>.old and a new file starts. Leftover tails of a killed owner are put in their place.
  OutputFile(std::string path, size_t cap_bytes);
  ~OutputFile();  // Puts head, the line and tail together.
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Append(std::string_view text);

 private:
  void OpenHead();
  void AppendTail(std::string_view text);
  void JoinTails();

  const std::string path_;
  const size_t half_;
  int head_ = -1;
  size_t head_bytes_ = 0;
  int tail_ = -1;
  size_t tail_bytes_ = 0;
  int64_t dropped_bytes_ = 0;  // Overwritten in the tail, or not written.
};

// The last lines of a stream: 20 lines, 4 KiB at most.
class TailLines {
 public:
  void Append(std::string_view text);
  std::string Text() const;  // Without the last line's end; cut at a line where possible.

 private:
  std::string kept_;
};

// Takes the lines that start with a mark ("jizi ") out of a stream, at most 64 KiB each; longer
// ones and all others are passed over without being kept.
class LineScanner {
 public:
  explicit LineScanner(std::string_view mark = "jizi ") : mark_(mark) {}
  template <typename Sink>
  void Append(std::string_view text, const Sink& sink) {
    for (const char c : text) {
      if (c == '\n') {
        if (Take()) sink(std::move(line_));
        line_.clear();
        skip_ = false;
      } else if (!skip_) {
        Add(c);
      }
    }
  }
  // The last line may lack its end.
  template <typename Sink>
  void Finish(const Sink& sink) {
    if (Take()) sink(std::move(line_));
    line_.clear();
  }

 private:
  bool Take();
  void Add(char c);

  std::string_view mark_;
  std::string line_;
  bool skip_ = false;
};

}  // namespace jizi::tuner
