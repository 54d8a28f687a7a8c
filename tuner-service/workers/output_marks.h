#pragma once
// output_marks.h - where in a stream a warm process went on to another trial. Its helper writes a
// mark into stdout and stderr as it takes a trial (contract 19): "\x1e" "jizi-trial MARK ID\n",
// where MARK is the JIZI_OUTPUT_MARK that its worker gave it, so that nothing a program prints is
// taken for one. Marks are taken out of the stream, wherever in a line they stand.
// Threads: one at a time.   Cost: one look for a rare byte; holds back at most a mark.

#include <cstdint>
#include <string>
#include <string_view>

namespace jizi::tuner {

class OutputMarks {
 public:
  void Expect(const std::string& mark);  // Before anything is appended; else there are none.

  // on_text(std::string_view) and on_trial(int64_t), in the order of the stream.
  template <typename Text, typename Trial>
  void Append(std::string_view text, const Text& on_text, const Trial& on_trial) {
    std::string joined;
    if (!kept_.empty()) {
      joined = std::move(kept_) + std::string(text);
      kept_.clear();
      text = joined;
    }
    while (!text.empty()) {
      const size_t begin = start_.empty() ? text.npos : text.find(start_.front());
      if (begin != 0) on_text(text.substr(0, begin));
      if (begin == text.npos) return;
      text.remove_prefix(begin);
      const Found found = Look(text);
      if (found.partial) {
        kept_ = text;
        return;
      }
      if (found.size == 0) {
        on_text(text.substr(0, 1));
      } else {
        on_trial(found.trial);
      }
      text.remove_prefix(found.size == 0 ? 1 : found.size);
    }
  }
  // The stream has ended.
  template <typename Text>
  void Finish(const Text& on_text) {
    if (!kept_.empty()) on_text(std::string_view(kept_));
    kept_.clear();
  }

 private:
  struct Found {
    bool partial = false;  // It may become one.
    size_t size = 0;       // 0: none.
    int64_t trial = 0;
  };
  Found Look(std::string_view text) const;

  std::string start_;  // All but the number; empty: no marks are expected.
  std::string kept_;
};

}  // namespace jizi::tuner
