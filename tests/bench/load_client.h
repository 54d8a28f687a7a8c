#pragma once
// load_client.h - the clients of service_load, in a process of their own: C channels, each with
// one call at a time. Closed loop: the next call when the last one is answered. Open loop: at
// intended times, evenly spread over the channels; a latency counts from the intended time, so
// that a server that falls behind cannot hide it. A trial is Suggest, kReportsPerTrial times
// Report, Complete, each its own acknowledged call; the echo is Report alone.
// Threads: gRPC's callback threads, and one that issues an open loop's calls.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace jizi::bench {

inline constexpr int kReportsPerTrial = 5;
inline constexpr int kCallsPerTrial = kReportsPerTrial + 2;

enum class Load { kTrials, kEcho };

struct LoadPlan {
  Load load = Load::kTrials;
  std::string address;
  std::string token_file;
  std::string study;  // A prefix: channel i works on study<i % studies>.
  int studies = 1;
  int channels = 1;
  std::chrono::milliseconds warm_up{1000};
  std::chrono::milliseconds measured{8000};
  std::optional<double> calls_per_second;  // Of an open loop.
};

struct LoadResult {
  int64_t calls = 0;  // In the measured time.
  int64_t trials = 0;
  int64_t failed = 0;  // Ever; the first error is printed to stderr.
  double seconds = 0;
  double client_cpu_us_per_call = 0;
  double p50_us = 0;
  double p99_us = 0;
};

// What a child process prints: lines "begin" and "end" for the measured time, and then the result.
std::string ToLine(const LoadResult& result);
std::optional<LoadResult> FromLine(const std::string& line);

// Runs in the child; `begin` and `end` are called once each.
LoadResult RunLoad(const LoadPlan& plan, void (*begin)(), void (*end)());

// Seconds of processor time that this process has used.
double ProcessCpuSeconds();

}  // namespace jizi::bench
