// A worker whose supervisor is killed: a program of its own, for a program has one supervisor,
// forked before any thread, and here it dies.

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/workers/service_testing.h"

namespace jizi::tuner {
namespace {

TEST_F(WorkerTest, Contract17AKilledSupervisorGivesTheTrialsBack) {
  CreateStudy(5);
  auto worker = Start(Options("echo jizi accuracy=0.1; sleep 1000", 2), *kAll->supervisor);
  ASSERT_TRUE(Eventually([&] {
    int reported = 0;
    for (const v1::Trial& trial : Trials()) reported += trial.measurement_count() > 0 ? 1 : 0;
    return reported == 2;
  }));
  kill(atoi(ReadAll(kAll->lock()).c_str()), SIGKILL);
  ASSERT_TRUE(worker->WaitFor(60s));
  EXPECT_EQ(DetailOf(worker->Wait()).code, "SUPERVISOR_GONE") << worker->Wait();
  for (const v1::Trial& trial : Trials()) {
    EXPECT_EQ(trial.state(), v1::TRIAL_STATE_QUEUED) << trial.id() << trial.end_why();
  }
  // And one that starts nothing at all.
  worker = Start(Options("true"), *kAll->supervisor);
  ASSERT_TRUE(worker->WaitFor(60s));
  EXPECT_EQ(worker->Wait().code(), StatusCode::kUnavailable);
  EXPECT_EQ(Count(v1::TRIAL_STATE_FAILED), 0);
}

}  // namespace
}  // namespace jizi::tuner
