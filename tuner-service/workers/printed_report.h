#pragma once
// printed_report.h - what a program that links nothing says on its stdout (contract 23):
//   jizi step=3 val_accuracy=0.91 loss=nan total_steps=10
//   jizi {"step": 3, "val_accuracy": 0.91, "loss": NaN}
// Without a step the line counts one on from the line before (0 first). Numbers as strtod reads
// them, nan and inf too; in JSON also as the strings "NaN", "Infinity", "-Infinity".
// Fails: InvalidArgument PRINTED_REPORT with what is wrong: the line is left out, the program goes
// on.
// Threads: values.

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "jizi/v1/types.pb.h"

namespace jizi::tuner {

struct PrintedReport {
  std::optional<int64_t> step;
  std::optional<int64_t> total_steps;
  v1::Measurement
      measurement;  // metrics and, if given, step. No metric: only total_steps was said.
};

StatusOr<PrintedReport> ParsePrintedReport(const std::string& line);

}  // namespace jizi::tuner
