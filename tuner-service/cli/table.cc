#include "tuner-service/cli/table.h"

#include <algorithm>
#include <numeric>

#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kNarrowest = 4;  // A column is not cut below this.

std::string Line(const std::vector<Column>& columns, const std::vector<size_t>& widths,
                 const Row& cells) {
  std::string line;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) line += std::string(kGap, ' ');
    line +=
        columns[i].right_aligned ? PaddedLeft(cells[i], widths[i]) : Padded(cells[i], widths[i]);
  }
  const size_t end = line.find_last_not_of(' ');
  return line.substr(0, end == std::string::npos ? 0 : end + 1) + "\n";
}

}  // namespace

std::string RenderTable(const std::vector<Column>& columns, const std::vector<Row>& rows,
                        size_t width) {
  std::vector<size_t> widths(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    widths[i] = Width(columns[i].title);
    for (const Row& row : rows) widths[i] = std::max(widths[i], Width(row[i]));
  }
  const auto total = [&] {
    return std::accumulate(widths.begin(), widths.end(), size_t{0}) + kGap * (columns.size() - 1);
  };
  while (width > 0 && !widths.empty() && total() > width) {
    const auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= kNarrowest) break;
    --*widest;
  }
  Row titles;
  for (const Column& column : columns) titles.push_back(column.title);
  std::string table = Line(columns, widths, titles);
  for (const Row& row : rows) table += Line(columns, widths, row);
  return table;
}

std::string CsvLine(const Row& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    if (cells[i].find_first_of(",\"\r\n") == std::string::npos) {
      line += cells[i];
      continue;
    }
    line += '"';
    for (const char c : cells[i]) {
      if (c == '"') line += '"';
      line += c;
    }
    line += '"';
  }
  return line + "\r\n";
}

}  // namespace jizi::tuner
