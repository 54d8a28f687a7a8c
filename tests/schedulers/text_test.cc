#include "schedulers/model/text.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace jizi::tuner {
namespace {

TEST(Text, NamesAre1To256BytesOfPrintableUtf8) {
  for (const std::string name : {"lr", "optimizer.config.lr", "Validation/Accuracy",
                                 "\xC3\xA9t\xC3\xA9 \xF0\x9F\x98\x80", "it's \"x\""}) {
    EXPECT_TRUE(IsName(name)) << name;
  }
  EXPECT_TRUE(IsName(std::string(256, 'x')));
  EXPECT_FALSE(IsName(std::string(257, 'x')));
  EXPECT_FALSE(IsName(""));
  for (const std::string name : {"a\nb", "a\tb", "\x7F", "\xC2\x85", "\xE2\x80\xA8"}) {
    EXPECT_FALSE(IsName(name));
  }
  EXPECT_FALSE(IsName(std::string("a\0b", 3)));
}

TEST(Text, BytesThatAreNoUtf8AreFound) {
  EXPECT_TRUE(IsUtf8("a\n\xE2\x82\xAC\xF4\x8F\xBF\xBF"));
  for (const std::string bad : {"\x80", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                                "\xF4\x90\x80\x80", "\xFF", "\xE2\x82", "\xC3("}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

TEST(Text, NearestFindsOneEditAndASwapButNothingFar) {
  const std::vector<std::string> names = {"sampler", "seed", "min", "max"};
  EXPECT_EQ(Nearest("sampelr", names), "sampler");
  EXPECT_EQ(Nearest("smpler", names), "sampler");
  EXPECT_EQ(Nearest("mx", names), "max");
  EXPECT_EQ(Nearest("sampler", {"sampler"}), std::nullopt);
  EXPECT_EQ(Nearest("optimizer", names), std::nullopt);
  EXPECT_EQ(Nearest("", names), std::nullopt);
  EXPECT_EQ(Nearest(std::string(100000, 'a'), names), std::nullopt);
}

TEST(Text, QuotedIsShortOneLineAndCutsNoCharacter) {
  EXPECT_EQ(Quoted("a\nb"), "\"a\\nb\"");
  std::string text(59, 'x');
  text += "\xC3\xA9 and more";
  EXPECT_EQ(Quoted(text), "\"" + std::string(59, 'x') + "...\"");
}

}  // namespace
}  // namespace jizi::tuner
