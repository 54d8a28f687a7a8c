#include <gtest/gtest.h>

#include "tests/schedulers/support.h"

namespace jizi::tuner {
namespace {

TEST(MakeScheduler, AnUnknownMethodIsUnimplementedAndNamesWhatThereIs) {
  for (const char* method : {"pbt", "batch_size", "replay", "custom", "", "Grid"}) {
    const auto made = MakeScheduler(SpecOf({{Int("x", 0, 3)}}, method));
    ASSERT_EQ(made.status().code(), StatusCode::kUnimplemented) << method;
    const std::string text = ForPeople(made.status());
    EXPECT_NE(text.find("grid, random"), std::string::npos) << text;
    EXPECT_EQ(DetailOf(made.status()).code, "METHOD_UNKNOWN");
  }
  const auto near = MakeScheduler(SpecOf({{Int("x", 0, 3)}}, "randon"));
  EXPECT_NE(ForPeople(near.status()).find("did you mean random?"), std::string::npos);
}

std::string Refusal(const char* method, const std::string& settings) {
  const auto made = MakeScheduler(SpecOf({{Int("x", 0, 3)}}, method, settings));
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument) << settings;
  EXPECT_FALSE(DetailOf(made.status()).mend.empty());
  return ForPeople(made.status());
}

TEST(MakeScheduler, AnUnknownSettingIsRefusedWithTheNearestRightName) {
  EXPECT_NE(Refusal("random", R"({"sampelr": "sobol"})").find("did you mean \"sampler\"?"),
            std::string::npos);
  EXPECT_NE(Refusal("random", R"({"sampler": "sobl"})").find("did you mean \"sobol\"?"),
            std::string::npos);
  EXPECT_NE(Refusal("random", R"({"zzz": 1})").find("takes sampler (random, sobol)"),
            std::string::npos);
  EXPECT_NE(Refusal("grid", R"({"sampler": "sobol"})").find("no settings"), std::string::npos);
}

TEST(MakeScheduler, SettingsOfAnotherTypeOrNoJsonAreRefused) {
  Refusal("random", R"({"sampler": 3})");
  Refusal("random", R"({"sampler": [["sobol"]]})");
  Refusal("random", "[]");
  Refusal("random", "sampler: sobol");
  Refusal("random", "{\"sampler\": 1e999}");
  Refusal("random", "{\"sampler\": " + std::string(100000, '[') + std::string(100000, ']') + "}");
  Refusal("random", "\xFF\xFE");
}

TEST(MakeScheduler, EmptySettingsAreTheDefaults) {
  EXPECT_TRUE(MakeScheduler(SpecOf({{Int("x", 0, 3)}}, "random", "")).ok());
  EXPECT_TRUE(MakeScheduler(SpecOf({{Int("x", 0, 3)}}, "grid", "{}")).ok());
  EXPECT_TRUE(MakeScheduler(SpecOf({}, "random")).ok());
}

}  // namespace
}  // namespace jizi::tuner
