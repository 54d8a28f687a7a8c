#include "schedulers/model/params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

TEST(Params, ValuesDifferByType) {
  EXPECT_NE(ParamValue(int64_t{1}), ParamValue(1.0));
  EXPECT_NE(ParamValue(int64_t{1}), ParamValue(true));
  EXPECT_NE(ParamValue(int64_t{1}), ParamValue(std::string("1")));
  EXPECT_NE(ParamValue(std::string("[]")), ParamValue(JsonText{"[]"}));
}

TEST(Params, TextTellsTheTypesApart) {
  EXPECT_EQ(ToJsonText(ParamValue(int64_t{1})), "1");
  EXPECT_EQ(ToJsonText(ParamValue(1.0)), "1.0");
  EXPECT_EQ(ToJsonText(ParamValue(true)), "true");
  EXPECT_EQ(ToJsonText(ParamValue(std::string("1"))), "\"1\"");
  EXPECT_EQ(ToJsonText(ParamValue(JsonText{"[1,null]"})), "[1,null]");
  EXPECT_EQ(ToJsonText(ParamValue(std::numeric_limits<int64_t>::min())), "-9223372036854775808");
}

TEST(Params, DoublesReadBackTheSameAndLookLikeDoubles) {
  Rng rng({TestSeed(), 2});
  for (int i = 0; i < 2000; ++i) {
    const double value = std::ldexp(rng.Uniform() - 0.5, static_cast<int>(rng.Below(2000)) - 1000);
    const std::string text = ToJsonText(ParamValue(value));
    EXPECT_EQ(std::strtod(text.c_str(), nullptr), value) << text;
    EXPECT_NE(text.find_first_of(".e"), std::string::npos) << text;
  }
  EXPECT_EQ(ToJsonText(ParamValue(-0.0)), "0.0");  // It equals 0.0, so it has the same text.
  EXPECT_EQ(ToJsonText(ParamValue(0.1)), "0.1");
}

TEST(Params, AnObjectHasSortedKeysAndEscapes) {
  const Params params = {{"b", std::string("a\"\\\n\x01\xC3\xA9")}, {"a", false}};
  EXPECT_EQ(ToJsonText(params), "{\"a\":false,\"b\":\"a\\\"\\\\\\n\\u0001\xC3\xA9\"}");
  EXPECT_EQ(ToJsonText(Params{}), "{}");
}

}  // namespace
}  // namespace jizi::tuner
