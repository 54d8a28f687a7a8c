// The five queries of tuner-service/store/README.md, as they stand there.

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/store/history.h"
#include "tuner-service/store/store.h"

namespace jizi::tuner {
namespace {

using testing::Rows;

// The n-th block of SQL in the README, from 0.
std::string Query(size_t n) {
  const char* source = std::getenv("JIZI_SOURCE_DIR");
  const std::string text = testing::ReadFile(std::string(source == nullptr ? "." : source) +
                                             "/tuner-service/store/README.md");
  size_t begin = 0;
  for (size_t i = 0; i <= n; ++i) {
    begin = text.find("```sql\n", begin);
    EXPECT_NE(begin, std::string::npos) << "the README has no query " << n;
    if (begin == std::string::npos) return "";
    begin += 7;
  }
  return text.substr(begin, text.find("```", begin) - begin);
}

class QueriesTest : public ::testing::Test {
 protected:
  QueriesTest() {
    const std::unique_ptr<Store> store = testing::OpenOrFail(path_);
    EXPECT_TRUE(store->Append(testing::RichHistory(1, "mnist")).ok());
    EXPECT_TRUE(store->Append(testing::PlainHistory(2, "other", 3, 2)).ok());
  }
  testing::TemporaryFolder folder_;
  const std::string path_ = folder_.File("studies.db");
};

TEST_F(QueriesTest, BestTrial) {
  const std::vector<std::string> rows = Rows(path_, Query(0));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].substr(0, 9), "1|0.0625|");
}

TEST_F(QueriesTest, CurveOfATrial) {
  EXPECT_EQ(Rows(path_, Query(1)),
            (std::vector<std::string>{"1|0.25", "2|1.0e-300", "3|0.75", "4|0.0625"}));
}

TEST_F(QueriesTest, TrialsWithTheirParameters) {
  const std::vector<std::string> rows = Rows(path_, Query(2));
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[4].substr(rows[4].size() - 11), "{\"x\":0.875}");
}

TEST_F(QueriesTest, Failures) {
  const std::vector<std::string> rows = Rows(path_, Query(3));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_NE(rows[0].find("last line of stderr"), std::string::npos);
}

TEST_F(QueriesTest, Progress) {
  const std::vector<std::string> rows = Rows(path_, Query(4));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].substr(0, 6), "mnist|");
  EXPECT_EQ(rows[1].substr(0, 12), "other|3|0|0|");
}

}  // namespace
}  // namespace jizi::tuner
