#include "base/utf8.h"

#include <gtest/gtest.h>

namespace jizi {
namespace {

using namespace std::string_literals;

TEST(Utf8, CodePointsOfEachLengthAreDecoded) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  size_t at = 0;
  for (const char32_t expected : {U'a', U'\u00E9', U'\u20AC', U'\U0001F600'}) {
    const CodePoint point = DecodeUtf8(text, at);
    EXPECT_EQ(point.value, expected);
    at += point.bytes;
  }
  EXPECT_EQ(at, text.size());
  EXPECT_EQ(FirstBadUtf8(text), std::string_view::npos);
}

TEST(Utf8, WhatIsNoneIsFoundWhereItStands) {
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
                          "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82"}) {
    EXPECT_FALSE(IsUtf8(bad));
    EXPECT_EQ(FirstBadUtf8("ab"s + bad), 2U);
  }
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("a\0b"s));
}

TEST(Utf8, TextIsMadeValidAndNeverCutWithinACodePoint) {
  EXPECT_EQ(Utf8Text("caf\xE9", 10), "caf?");
  EXPECT_EQ(Utf8Text("\xE2\x82\xAC\xE2\x82\xAC", 5), "\xE2\x82\xAC...");
  EXPECT_EQ(Utf8Text("abc", 3), "abc");
  EXPECT_EQ(Utf8Text("abcd", 3), "abc...");
}

}  // namespace
}  // namespace jizi
