// Eight threads at once, with repeats, watchers and a store that is full now and then: every
// call is answered once, nothing is lost or doubled, and replay equals state. JIZI_TEST_SEED
// repeats a run's choices (not its interleaving).

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/engine/engine_testing.h"

namespace jizi::tuner {
namespace {

// Printed, for a trace would not reach the worker threads' failures.
uint32_t Seed() {
  const char* given = std::getenv("JIZI_TEST_SEED");
  const uint32_t seed = given != nullptr ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10))
                                         : std::random_device()();
  std::printf("JIZI_TEST_SEED=%u\n", seed);
  std::fflush(stdout);
  return seed;
}

constexpr int kThreads = 8;
constexpr int kTrialsEach = 15;
constexpr int kReports = 3;

// A worker as the helper is one: each call is repeated until it is answered otherwise than by
// Unavailable, sometimes once more for good measure.
class Worker {
 public:
  Worker(Engine& engine, std::string study, std::string name, uint32_t seed)
      : engine_(engine), study_(std::move(study)), name_(std::move(name)), random_(seed) {}

  void Run() {
    for (int i = 0; i < kTrialsEach; ++i) {
      const Assigned held = OnlyTrial(Call(SuggestOf(name_, ++sequence_)));
      ASSERT_NE(held.trial->id, 0);
      for (int step = 0; step < kReports; ++step) {
        ASSERT_TRUE(Call(ReportOf(held, step + 1, step, 0.1 * step)).ok());
      }
      ASSERT_TRUE(Call(CompleteOf(held, kReports + 1)).ok());
    }
  }

 private:
  StatusOr<Reply> Call(const Command& command) {
    const bool twice = random_() % 4 == 0;
    StatusOr<Reply> reply = absl::UnknownError("not asked yet");
    for (int attempt = 0; attempt < 1000; ++attempt) {
      const auto first = Send(engine_, study_, command);
      if (twice) {
        const auto repeat = Send(engine_, study_, command);
        repeat.Get().IgnoreError();
        EXPECT_EQ(repeat.answers(), 1);
      }
      reply = first.Get();
      EXPECT_EQ(first.answers(), 1);
      if (reply.status().code() != StatusCode::kUnavailable) return reply;
    }
    return reply;
  }

  Engine& engine_;
  const std::string study_;
  const std::string name_;
  std::mt19937 random_;
  int64_t sequence_ = 0;
};

void Hammer(const std::shared_ptr<StoreScript>& script, uint32_t seed) {
  auto started =
      Engine::Start(ScriptedStore(script), {.commit_retry = std::chrono::milliseconds(0)});
  ASSERT_TRUE(started.ok());
  Engine& engine = **started;
  for (const char* study : {"a", "b"}) {
    ASSERT_TRUE(Eventually([&] {
      const auto created = Create(engine, SpecOf(study), study);
      return created.ok();
    }));
  }
  std::atomic<bool> done{false};
  std::thread watcher([&] {
    while (!done) {
      auto last = std::make_shared<int64_t>(0);
      const auto subscription = engine.Watch("a", [last](const StudyChange& change) {
        EXPECT_GT(change.view.log_position, *last);
        *last = change.view.log_position;
      });
      EXPECT_TRUE(subscription.ok());
      const Awaited<std::vector<StudyView>> list;
      engine.List(list.done());
      list.Get().IgnoreError();
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&engine, t, seed] {
      Worker(engine, t % 2 == 0 ? "a" : "b", "w" + std::to_string(t),
             seed + static_cast<uint32_t>(t))
          .Run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  watcher.join();
  for (const char* study : {"a", "b"}) {
    const auto view = Read(engine, study);
    ASSERT_TRUE(view.ok()) << view.status();
    const size_t expected = static_cast<size_t>(kThreads / 2 * kTrialsEach);
    EXPECT_EQ(view->study.trials.size(), expected);
    EXPECT_EQ(view->study.counts[TrialState::kCompleted], static_cast<int64_t>(expected));
    for (const Cow<Trial>& trial : view->study.trials) {
      EXPECT_EQ(trial->measurements.size(), static_cast<size_t>(kReports));
      EXPECT_EQ(trial->attempts.size(), 1u);
    }
    const auto stored = script->inner->Load(view->id);
    ASSERT_TRUE(stored.ok());
    EXPECT_EQ(stored->log_position, view->log_position);
    EXPECT_EQ(stored->study.trials, view->study.trials);
  }
  engine.Shutdown(std::chrono::seconds(10));
}

TEST(EngineHammerTest, EightThreadsLoseAndDoubleNothing) {
  const uint32_t seed = Seed();
  Hammer(std::make_shared<StoreScript>(), seed);
}

TEST(EngineHammerTest, EightThreadsOnAStoreThatIsFullNowAndThen) {
  const uint32_t seed = Seed();
  const auto script = std::make_shared<StoreScript>();
  auto random = std::make_shared<std::mt19937>(seed);
  script->OnAppend([random](int, auto) { return (*random)() % 10 == 0 ? Full() : Status(); });
  Hammer(script, seed);
}

}  // namespace
}  // namespace jizi::tuner
