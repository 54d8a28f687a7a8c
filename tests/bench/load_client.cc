#include "tests/bench/load_client.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "tests/bench/load_channel.h"
#include "tests/bench/load_loop.h"

namespace jizi::bench {

using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kCallDeadline{30'000};

}  // namespace

Channel::Channel(std::unique_ptr<Client> client, Load load, std::string study, std::string worker)
    : client_(std::move(client)),
      load_(load),
      study_(std::move(study)),
      worker_(std::move(worker)) {
  if (load_ == Load::kEcho) {
    phase_ = 1;
    lease_.set_study(study_);
    lease_.set_trial(1);
    lease_.set_attempt(1);
    lease_.set_token(std::string(16, 't'));
  }
}

void Channel::Issue(std::function<void()> ended) {
  ended_ = std::move(ended);
  context_ = std::make_unique<grpc::ClientContext>();
  client_->Prepare(*context_, kCallDeadline);
  if (phase_ == 0) {
    Suggest();
  } else if (phase_ <= kReportsPerTrial) {
    Report();
  } else {
    Complete();
  }
}

void Channel::Suggest() {
  suggest_.set_study(study_);
  suggest_.set_worker(worker_);
  suggest_.set_sequence(++worker_sequence_);
  suggest_.set_count(1);
  client_->stub().async()->Suggest(context_.get(), &suggest_, &suggested_,
                                   [this](const grpc::Status& status) { Ended(status); });
}

void Channel::Report() {
  report_.Clear();
  *report_.mutable_lease() = lease_;
  report_.set_sequence(phase_);
  v1::Measurement& measurement = *report_.add_measurements();
  measurement.set_step(phase_);
  (*measurement.mutable_metrics())["val_accuracy"] = 0.1 * phase_;
  (*measurement.mutable_metrics())["loss"] = 1.0 / phase_;
  client_->stub().async()->Report(context_.get(), &report_, &reported_,
                                  [this](const grpc::Status& status) { Ended(status); });
}

void Channel::Complete() {
  *complete_.mutable_lease() = lease_;
  complete_.set_sequence(kReportsPerTrial + 1);
  complete_.mutable_finished();
  client_->stub().async()->Complete(context_.get(), &complete_, &completed_,
                                    [this](const grpc::Status& status) { Ended(status); });
}

void Channel::Ended(const grpc::Status& status) {
  if (const Status checked = Client::Check(*context_, status); !checked.ok()) {
    std::fprintf(stderr, "service_load: %s\n", ForPeople(checked).c_str());
    failed_ = true;
  } else {
    Advance();
  }
  const auto ended = std::move(ended_);  // It may issue the next call.
  ended();
}

void Channel::Advance() {
  if (load_ == Load::kEcho) return;
  if (phase_ == 0) {
    if (suggested_.trials().assignments_size() != 1) {
      std::fprintf(stderr, "service_load: no trial: %s\n", suggested_.ShortDebugString().c_str());
      failed_ = true;
      return;
    }
    lease_ = suggested_.trials().assignments(0).lease();
  }
  if (++phase_ > kReportsPerTrial + 1) {
    phase_ = 0;
    ++trials_;
  }
}

void Channel::Count(SteadyClock::time_point from) {
  latencies_us_.push_back(static_cast<uint32_t>(
      std::chrono::duration_cast<microseconds>(SteadyClock::now() - from).count()));
}

double ProcessCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::string ToLine(const LoadResult& result) {
  char line[256];
  std::snprintf(line, sizeof(line), "calls=%lld trials=%lld failed=%lld s=%f cpu=%f p50=%f p99=%f",
                static_cast<long long>(result.calls), static_cast<long long>(result.trials),
                static_cast<long long>(result.failed), result.seconds,
                result.client_cpu_us_per_call, result.p50_us, result.p99_us);
  return line;
}

std::optional<LoadResult> FromLine(const std::string& line) {
  LoadResult result;
  long long calls = 0;
  long long trials = 0;
  long long failed = 0;
  const int read =
      std::sscanf(line.c_str(), "calls=%lld trials=%lld failed=%lld s=%lf cpu=%lf p50=%lf p99=%lf",
                  &calls, &trials, &failed, &result.seconds, &result.client_cpu_us_per_call,
                  &result.p50_us, &result.p99_us);
  if (read != 7) return std::nullopt;
  result.calls = calls;
  result.trials = trials;
  result.failed = failed;
  return result;
}

LoadResult RunLoad(const LoadPlan& plan, void (*begin)(), void (*end)()) {
  std::vector<std::unique_ptr<Channel>> channels;
  LoadResult result;
  for (int i = 0; i < plan.channels; ++i) {
    auto client = Client::Connect({plan.address, plan.token_file, ""});
    if (!client.ok()) {
      std::fprintf(stderr, "service_load: %s\n", ForPeople(client.status()).c_str());
      result.failed = 1;
      return result;
    }
    channels.push_back(std::make_unique<Channel>(*std::move(client), plan.load,
                                                 plan.study + std::to_string(i % plan.studies),
                                                 "w" + std::to_string(i)));
  }
  Window window;
  std::unique_ptr<Loop> loop = plan.calls_per_second
                                   ? OpenLoop(channels, window, *plan.calls_per_second)
                                   : ClosedLoop(channels, window);
  window.SleepFor(plan.warm_up);
  const double cpu_before = ProcessCpuSeconds();
  begin();
  const auto from = window.Begin();
  window.SleepFor(plan.measured);
  result.seconds = std::chrono::duration<double>(window.End() - from).count();
  end();
  const double cpu = ProcessCpuSeconds() - cpu_before;
  loop->Stop();

  std::vector<uint32_t> latencies;
  for (const auto& channel : channels) {
    result.failed += channel->failed() ? 1 : 0;
    result.trials += channel->trials();
    latencies.insert(latencies.end(), channel->latencies_us().begin(),
                     channel->latencies_us().end());
  }
  result.calls = static_cast<int64_t>(latencies.size());
  if (latencies.empty()) return result;
  result.client_cpu_us_per_call = 1e6 * cpu / static_cast<double>(latencies.size());
  const auto quantile = [&](double q) {
    const auto at =
        latencies.begin() + static_cast<ptrdiff_t>(q * static_cast<double>(latencies.size() - 1));
    std::nth_element(latencies.begin(), at, latencies.end());
    return static_cast<double>(*at);
  };
  result.p50_us = quantile(0.5);
  result.p99_us = quantile(0.99);
  return result;
}

}  // namespace jizi::bench
