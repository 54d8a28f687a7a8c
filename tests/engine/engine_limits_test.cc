// Bounds of what waits and of what a worker's look costs, and methods that this build lacks.

#include <gtest/gtest.h>

#include "tests/engine/engine_testing.h"

namespace jizi::tuner {
namespace {

class EngineLimits : public testing::Test {
 protected:
  void Start(EngineOptions options = {}) {
    engine_.reset();  // Before the next one has the store.
    auto engine = Engine::Start(ScriptedStore(script_), std::move(options), clock_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  FakeClock clock_;
  std::shared_ptr<StoreScript> script_ = std::make_shared<StoreScript>();
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineLimits, CallsThatWaitHoldSoManyBytesAndNoMore) {
  Start({.queue_bytes = 1 << 20});
  ASSERT_TRUE(Create(*engine_, SpecOf("s"), "r").ok());
  script_->gate.Shut();
  const int before = script_->gate.arrivals();
  std::vector<Awaited<Reply>> replies;
  // 64 KiB each: far more than the committer's lag (64 MiB) and a queue of 1 MiB hold.
  for (int i = 0; i < 2500; ++i) {
    replies.push_back(
        Send(*engine_, "s",
             SetAttributesCommand{
                 0, {{"a", std::string(65'000, static_cast<char>('a' + i % 26))}}, {}}));
    if (replies.back().answered()) break;  // Refused on the caller's thread.
  }
  ASSERT_TRUE(script_->gate.Arrived(before + 1));
  script_->gate.Open();
  const auto refused = replies.back().Get();
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailOf(refused.status()).code, "QUEUE_FULL");
  EXPECT_NE(refused.status().message().find("MiB"), std::string::npos) << refused.status();
  EXPECT_NE(DetailOf(refused.status()).mend, "");
  EXPECT_TRUE(replies.front().Get().ok());
}

TEST_F(EngineLimits, AWorkersTrialsAreFoundByItsLeases) {
  Start();
  ASSERT_TRUE(Create(*engine_, SpecOf("s"), "r").ok());
  const Assigned first = OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 1)));
  OnlyTrial(Suggest(*engine_, "s", SuggestOf("v", 1)));
  OnlyTrial(Suggest(*engine_, "s", SuggestOf("w", 2)));
  const auto held = [&](const std::string& worker) {
    const Awaited<WorkerView> view;
    engine_->ReadWorker("s", worker, view.done());
    return view.Get().value().held;
  };
  EXPECT_EQ(held("w"), (std::vector<TrialId>{1, 3}));
  ASSERT_TRUE(Execute(*engine_, "s", CompleteOf(first, 1)).ok());
  EXPECT_EQ(held("w"), (std::vector<TrialId>{3}));
  EXPECT_EQ(held("v"), (std::vector<TrialId>{2}));
  EXPECT_TRUE(held("nobody").empty());
  clock_.Advance(std::chrono::hours(1));  // Leases run out.
  EXPECT_TRUE(Eventually([&] { return held("w").empty(); }));
  const Awaited<WorkerView> unknown;
  engine_->ReadWorker("nowhere", "w", unknown.done());
  EXPECT_EQ(unknown.Get().status().code(), StatusCode::kNotFound);
}

TEST_F(EngineLimits, AStudyOfAMethodThatIsNotHereSaysSoAndCanBeRead) {
  Start();
  ASSERT_TRUE(Create(*engine_, SpecOf("s"), "r").ok());
  Start({.make_scheduler = [](const StudySpec&) -> StatusOr<std::unique_ptr<Scheduler>> {
    return Error(StatusCode::kUnimplemented, "there is no method \"random\"",
                 {"METHOD_UNKNOWN", "method", "use grid"});
  }});
  const auto refused = Suggest(*engine_, "s", SuggestOf("w", 1));
  EXPECT_EQ(DetailOf(refused.status()).code, "METHOD_UNKNOWN") << refused.status();
  EXPECT_EQ(refused.status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(DetailOf(refused.status()).mend.find("bug"), std::string::npos);
  EXPECT_NE(DetailOf(refused.status()).mend.find("release of jizi"), std::string::npos);
  EXPECT_TRUE(Read(*engine_, "s").ok());
}

}  // namespace
}  // namespace jizi::tuner
