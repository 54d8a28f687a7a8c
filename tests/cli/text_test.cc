#include "tuner-service/cli/text.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tuner-service/cli/table.h"

namespace jizi::tuner {
namespace {

TEST(Text, WidthsCountColumns) {
  EXPECT_EQ(Width("abc"), 3u);
  EXPECT_EQ(Width("résumé"), 6u);
  EXPECT_EQ(Width("参数"), 4u);
  EXPECT_EQ(Width("e\xCC\x81"), 1u);  // A combining accent.
}

TEST(Text, FitNeverCutsACharacterAndNeverIsWider) {
  EXPECT_EQ(Fit("abcdef", 6), "abcdef");
  EXPECT_EQ(Fit("abcdef", 4), "abc…");
  EXPECT_EQ(Fit("参数参数", 4), "参…");
  EXPECT_EQ(Fit("x", 0), "");
  for (size_t width = 0; width < 12; ++width) EXPECT_LE(Width(Fit("a参é数bcd", width)), width);
}

TEST(Text, WhatCouldMoveTheCursorIsShownAsAQuestionMark) {
  EXPECT_EQ(Fit("a\x1b[2Jb\nc\td", 20), "a?[2Jb?c?d");
  EXPECT_EQ(Fit("bad \xff\xfe", 20), "bad ??");
  EXPECT_EQ(Fit("a\xE2\x80\xAE"
                "b",
                20),
            "a?b");  // Right-to-left override.
}

TEST(Text, ItemsAreShownWholeOrNotAtAll) {
  EXPECT_EQ(FitItems({"lr=0.1", "b=2", "c=3"}, 14), "lr=0.1 b=2 c=3");
  EXPECT_EQ(FitItems({"lr=0.1", "b=2", "c=3"}, 13), "lr=0.1 b=2 …");
  EXPECT_EQ(FitItems({"lr=0.1", "b=2", "c=3"}, 11), "lr=0.1 …");
  EXPECT_EQ(FitItems({"lr=0.1", "b=2"}, 4), "…");
}

TEST(Text, ALineIsBrokenAtWordsAndColoursTakeNoColumn) {
  EXPECT_EQ(Wrapped("trial one \x1b[31mfailed\x1b[0m because", 16),
            (std::vector<std::string>{"trial one \x1b[31mfailed\x1b[0m", "because"}));
  EXPECT_EQ(Wrapped("aaaaa bbbbb ccccc ddddd eeeee", 20),
            (std::vector<std::string>{"aaaaa bbbbb ccccc", "    ddddd eeeee"}));
  EXPECT_EQ(Wrapped("", 20), std::vector<std::string>{""});
  const std::string word(1000, 'x');
  for (size_t width = 1; width < 50; ++width) {
    for (const std::string& line : Wrapped("some words, then " + word + " 参数 and more", width)) {
      EXPECT_LE(Width(line), std::max<size_t>(2, width));
    }
  }
}

TEST(Text, FirstBadUtf8IsFound) {
  EXPECT_EQ(FirstBadUtf8("abc é 参"), std::string::npos);
  EXPECT_EQ(FirstBadUtf8("ab\xC0\x80"), 2u);     // Overlong.
  EXPECT_EQ(FirstBadUtf8("a\xED\xA0\x80"), 1u);  // A surrogate.
  EXPECT_EQ(FirstBadUtf8("a\xE2\x80"), 1u);      // Cut off.
}

TEST(Text, NearestNames) {
  const std::vector<std::string> names = {"min", "max", "distribution", "values"};
  EXPECT_EQ(NearestName("distributon", names, 2), "distribution");
  EXPECT_EQ(NearestName("vlaues", names, 2), "values");
  EXPECT_EQ(NearestName("something", names, 2), std::nullopt);
  EXPECT_EQ(MendForName("maxx", names), "did you mean `max`?");
  EXPECT_EQ(MendForName("zzz", names), "known here: min, max, distribution, values");
}

TEST(Text, Durations) {
  const std::vector<std::pair<std::string, double>> table = {
      {"90", 90}, {"90s", 90}, {"15m", 900}, {"1h30m", 5400}, {"2d", 172800}, {"0.5h", 1800}};
  for (const auto& [text, seconds] : table)
    EXPECT_EQ(ParseDuration(text)->count(), seconds) << text;
  for (const char* text : {"", "0", "-1s", "1x", "1h30", "h", "1e400h", "99999999999999d"}) {
    EXPECT_EQ(ParseDuration(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(ShowDuration(Seconds(0.96)), "0.9s");
  EXPECT_EQ(ShowDuration(Seconds(42)), "42s");
  EXPECT_EQ(ShowDuration(Seconds(-1)), "0.0s");
  EXPECT_EQ(ShowDuration(Seconds(185)), "3m 05s");
  EXPECT_EQ(ShowDuration(Seconds(7620)), "2h 07m");
  EXPECT_EQ(ShowDuration(Seconds(273600)), "3d 04h");
}

TEST(Text, PrintableKeepsLinesAndNothingThatMovesTheCursor) {
  EXPECT_EQ(Printable("a\nb\t\x1b[2J\x7f\n"), "a\nb??[2J?\n");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "2J 参数 \xff"),
            "?2J 参数 ?");
}

TEST(Table, ColumnsAreAlignedAndFitTheWidth) {
  const std::vector<Column> columns = {{"name"}, {"n", true}};
  const std::vector<Row> rows = {{"参数", "1"}, {"a long name indeed", "20"}};
  EXPECT_EQ(RenderTable(columns, rows, 0),
            "name                 n\n参数                 1\na long name indeed  20\n");
  EXPECT_EQ(RenderTable(columns, rows, 12), "name       n\n参数       1\na long …  20\n");
}

TEST(Table, CsvIsQuotedAsRfc4180Says) {
  EXPECT_EQ(CsvLine({"a", "b c", "d,e", "f\"g", "h\ni", ""}),
            "a,b c,\"d,e\",\"f\"\"g\",\"h\ni\",\r\n");
}

TEST(Text, AWordOfAShellsLineIsQuotedWhereItMustBe) {
  EXPECT_EQ(ForShell("sweep.yaml"), "sweep.yaml");
  EXPECT_EQ(ForShell("a b"), "'a b'");
  EXPECT_EQ(ForShell("it's; $(x)"), "'it'\\''s; $(x)'");
  EXPECT_EQ(ForShell(""), "''");
}

}  // namespace
}  // namespace jizi::tuner
