#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace jizi {
namespace {

Status Refused() {
  return Error(StatusCode::kNotFound, "no trial 7", {"TRIAL_UNKNOWN", "trial", "list the trials"});
}

TEST(Status, AnErrorCarriesCodeSubjectAndMend) {
  const Status status = Refused();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(std::string(status.message()), "no trial 7");
  EXPECT_EQ(DetailOf(status), (ErrorDetail{"TRIAL_UNKNOWN", "trial", "list the trials"}));
}

TEST(Status, AStatusWithoutDetailHasEmptyMembers) {
  EXPECT_EQ(DetailOf(absl::InternalError("x")), ErrorDetail{});
  EXPECT_EQ(DetailOf(Status()), ErrorDetail{});
}

TEST(Status, ForPeopleIsMessageAndMend) {
  EXPECT_EQ(ForPeople(Refused()), "no trial 7; list the trials");
  EXPECT_EQ(ForPeople(absl::InternalError("x")), "x");
}

Status Forward(const Status& status, bool& went_on) {
  TRY(status);
  went_on = true;
  return {};
}

TEST(Try, LeavesWithTheErrorDetailIncludedAndGoesOnWithOk) {
  bool went_on = false;
  EXPECT_EQ(DetailOf(Forward(Refused(), went_on)).code, "TRIAL_UNKNOWN");
  EXPECT_FALSE(went_on);
  EXPECT_TRUE(Forward(Status(), went_on).ok());
  EXPECT_TRUE(went_on);
}

StatusOr<std::unique_ptr<int>> Made(bool good) {
  if (!good) return Refused();
  return std::make_unique<int>(3);
}

StatusOr<int> Read(bool good) {
  const std::unique_ptr<int> made = TRY(Made(good));
  return *made + 1;
}

TEST(Try, IsTheValueAlsoOfATypeThatOnlyMoves) {
  EXPECT_EQ(*Read(true), 4);
  EXPECT_EQ(Read(false).status().code(), StatusCode::kNotFound);
}

TEST(Check, ABrokenInvariantAbortsAndSaysWhere) {
  CHECK(1 + 1 == 2);
  EXPECT_DEATH(CHECK(1 + 1 == 3), "status_test.cc:[0-9]+: broken invariant: 1 \\+ 1 == 3");
}

}  // namespace
}  // namespace jizi
