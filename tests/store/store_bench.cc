// store_bench TRIALS REPORTS: how fast a study is appended, in groups of 1, 64 and 1,000 records,
// and loaded again.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "tests/store/history.h"
#include "tuner-service/store/store.h"

namespace {

using jizi::tuner::LogRecord;
using jizi::tuner::StudyId;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  const int trials = argc > 1 ? std::atoi(argv[1]) : 10'000;
  const int reports = argc > 2 ? std::atoi(argv[2]) : 100;
  const jizi::tuner::testing::TemporaryFolder folder;
  const std::string path = folder.File("studies.db");
  const auto history = jizi::tuner::testing::PlainHistory(1, "bench", trials, reports);
  const auto small = jizi::tuner::testing::PlainHistory(2, "single", 20, 5);
  const auto middle = jizi::tuner::testing::PlainHistory(3, "middle", 200, 5);
  {
    const auto store = jizi::tuner::testing::OpenOrFail(path);
    const auto append = [&store](std::span<const LogRecord> records, size_t group) {
      const auto start = std::chrono::steady_clock::now();
      for (size_t at = 0; at < records.size(); at += group) {
        const auto part = records.subspan(at, std::min(group, records.size() - at));
        if (!store->Append(part).ok() || !store->AfterAnswers().ok()) std::exit(1);
      }
      std::printf("append records=%zu group=%zu records_per_s=%.0f\n", records.size(), group,
                  static_cast<double>(records.size()) / SecondsSince(start));
    };
    append(small, 1);
    append(middle, 64);
    append(history, 1000);
  }
  const std::clock_t cpu = std::clock();
  const auto start = std::chrono::steady_clock::now();
  const auto store = jizi::tuner::testing::OpenOrFail(path);
  const double opened_s = SecondsSince(start);
  const auto loaded = store->Load(1);
  if (!loaded.ok()) return 1;
  std::printf(
      "load trials=%zu reports=%d open_s=%.3f load_s=%.3f load_cpu_s=%.3f bytes_per_record=%.0f\n",
      loaded->study.trials.size(), reports, opened_s, SecondsSince(start),
      static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC,
      static_cast<double>(std::filesystem::file_size(path)) /
          static_cast<double>(history.size() + small.size() + middle.size()));
  return loaded->study.trials.size() == static_cast<size_t>(trials) ? 0 : 1;
}
