#pragma once
// printed_report.h - what a program that links nothing says on its stdout (contract 23):
//   jizi step=3 val_accuracy=0.91 loss=nan total_steps=10
//   jizi {"step": 3, "val_accuracy": 0.91, "loss": NaN}
// Without a step the line counts one on from the line before (0 first). Numbers as strtod reads
// them, nan and inf too; in JSON also as the strings "NaN", "Infinity", "-Infinity".
// One bad value costs itself alone: the good ones of its line stand. A metric's name has 1 to 256
// bytes of UTF-8 without control characters, and a line at most 1,000 of them, as the service wants
// it. A line whose step is wrong is left out whole: nobody knows where its values belong.
// Fails: says in `wrong` what was left out; the program goes on. Threads: values.

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "jizi/v1/types.pb.h"

namespace jizi::tuner {

struct PrintedReport {
  std::optional<int64_t> step;
  std::optional<int64_t> total_steps;
  v1::Measurement measurement;  // metrics and, if given, step. No metric: it measures nothing.
  int64_t left_out = 0;         // Values; a line of which nothing can be used counts as one.
  Status wrong;                 // InvalidArgument PRINTED_REPORT: the first of them.
};

PrintedReport ParsePrintedReport(const std::string& line);

}  // namespace jizi::tuner
