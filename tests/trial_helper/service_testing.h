#pragma once
// service_testing.h - the helper in this process against a real service.

#include <gtest/gtest.h>

#include "tests/trial_helper/local_service.h"
#include "trial-helper/jizi_trial_helper.h"

namespace jizi {

using testing::Eventually;
using testing::LocalService;

class TrialHelper : public ::testing::Test {
 protected:
  void TearDown() override { testing::LeaveEnvironment(); }
  LocalService service_;
};

inline HelperOptions Patient() {
  HelperOptions options;
  options.report_wait_s = 30;  // Of a slow machine: the answer is waited for.
  options.next_trial_wait_s = 30;
  return options;
}

inline HelperOptions Hasty() {
  HelperOptions options = Patient();
  options.report_wait_s = 0.05;
  return options;
}

}  // namespace jizi
