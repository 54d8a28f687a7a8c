#pragma once
// table.h - aligned columns for a terminal, and CSV.
// Shapes: every row has as many cells as there are columns.   Threads: pure functions.

#include <string>
#include <vector>

namespace jizi::tuner {

struct Column {
  std::string title;
  bool right_aligned = false;
};

using Row = std::vector<std::string>;

// Lines end in a newline, without trailing blanks. `width` 0: as wide as it wants (so that a pipe
// sees everything); else the widest columns are cut, with an ellipsis, until a line fits.
std::string RenderTable(const std::vector<Column>& columns, const std::vector<Row>& rows,
                        size_t width);

// One line of CSV with its line end, quoted where RFC 4180 wants it.
std::string CsvLine(const Row& cells);

}  // namespace jizi::tuner
