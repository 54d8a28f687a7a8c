#pragma once
// load_channel.h - one channel of the load: which call comes next, and how long each took.
// Threads: one call at a time; Issue may be called from within the last call's end.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/client.h"
#include "tests/bench/load_client.h"

namespace jizi::bench {

using SteadyClock = std::chrono::steady_clock;

class Channel {
 public:
  Channel(std::unique_ptr<Client> client, Load load, std::string study, std::string worker);

  // Starts the next call; `ended` is called when it is answered. Calls of a failed channel are not
  // issued again.
  void Issue(std::function<void()> ended);

  // Counts the call that has just ended; its time runs from `from`.
  void Count(SteadyClock::time_point from);

  bool failed() const { return failed_; }
  const std::vector<uint32_t>& latencies_us() const { return latencies_us_; }
  int64_t trials() const { return trials_; }

 private:
  void Suggest();
  void Report();
  void Complete();
  void Ended(const grpc::Status& status);
  void Advance();

  const std::unique_ptr<Client> client_;
  const Load load_;
  const std::string study_;
  const std::string worker_;
  std::function<void()> ended_;
  std::unique_ptr<grpc::ClientContext> context_;
  v1::SuggestRequest suggest_;
  v1::SuggestResponse suggested_;
  v1::ReportRequest report_;
  v1::ReportResponse reported_;
  v1::CompleteRequest complete_;
  v1::CompleteResponse completed_;
  v1::Lease lease_;
  int phase_ = 0;  // 0: Suggest; 1 to kReportsPerTrial: Report; then Complete.
  int64_t worker_sequence_ = 0;
  int64_t trials_ = 0;
  bool failed_ = false;
  std::vector<uint32_t> latencies_us_;
};

}  // namespace jizi::bench
