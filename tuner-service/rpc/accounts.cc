#include "tuner-service/rpc/accounts.h"

#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <exception>

#include "tuner-service/rpc/line_bound.h"

namespace jizi::tuner {
namespace {

constexpr size_t kLogQueue = 8192;  // Lines.

constexpr std::array<const char*, kMethods> kMethodNames = {
    "CreateStudy", "GetStudy",      "ListStudies", "DeleteStudy",        "SetStudyState",
    "Suggest",     "Attach",        "Report",      "RegisterCheckpoint", "Renew",
    "Release",     "Complete",      "GetTrial",    "ListTrials",         "EnqueueTrial",
    "RetryTrials", "SetAttributes", "WatchStudy"};

const char* NameOf(Method method) {
  return kMethodNames[static_cast<size_t>(method)];
}

// In quotes, on one line, whatever it holds; long texts are cut.
std::string Quoted(const std::string& text) {
  constexpr size_t kLongest = 200;
  std::string quoted = "\"";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      constexpr char kHex[] = "0123456789abcdef";
      quoted += "\\x";
      quoted += kHex[byte >> 4U];
      quoted += kHex[byte & 0xFU];
    } else {
      quoted += c;
    }
  }
  return quoted + (text.size() > kLongest ? "...\"" : "\"");
}

class LoggingAccounts final : public Accounts {
 public:
  explicit LoggingAccounts(CallLog level) : Accounts(level) {}
  LoggingAccounts(CallLog level, const spdlog::sink_ptr& sink)
      : Accounts(level),
        pool_(std::make_shared<spdlog::details::thread_pool>(kLogQueue, 1)),
        logger_(std::make_shared<spdlog::async_logger>(
            "rpc", sink, pool_, spdlog::async_overflow_policy::overrun_oldest)) {
    logger_->set_pattern("time=%Y-%m-%dT%H:%M:%S.%f%z level=%l %v");
    logger_->flush_on(spdlog::level::warn);
  }

  void Note(Method method, const CallEnd& end) override {
    Count(method, end);
    if (logger_ == nullptr) return;
    const bool failure = IsFailure(end.status);
    if (!failure && !logs_calls()) return;
    int64_t left_out = 0;
    if (!logs_calls()) {
      const auto taken = failures_.Take(std::chrono::steady_clock::now());
      if (!taken) return;
      left_out = *taken;
    }
    const std::string code = absl::StatusCodeToString(end.status.code());
    const auto level = failure ? spdlog::level::warn : spdlog::level::info;
    if (end.status.ok()) {
      logger_->log(level, "call={} study={} code=OK us={} peer={}", NameOf(method),
                   Quoted(end.study), end.took.count(), Quoted(end.peer));
    } else {
      const std::string more = left_out == 0 ? "" : " left_out=" + std::to_string(left_out);
      logger_->log(level, "call={} study={} code={} detail={} us={} peer={} message={}{}",
                   NameOf(method), Quoted(end.study), code, Quoted(DetailOf(end.status).code),
                   end.took.count(), Quoted(end.peer), Quoted(std::string(end.status.message())),
                   more);
    }
  }

  void NoteCounters() override {
    if (logger_ == nullptr || !logs_calls()) return;
    for (size_t i = 0; i < kMethods; ++i) {
      const MethodCount counted = count(static_cast<Method>(i));
      if (counted.calls == 0) continue;
      logger_->info("counters={} calls={} refused={} failed={} mean_us={}", kMethodNames[i],
                    counted.calls, counted.refused, counted.failed,
                    counted.total.count() / counted.calls);
    }
    logger_->flush();
  }

 private:
  std::shared_ptr<spdlog::details::thread_pool> pool_;
  LineBound failures_;
  std::shared_ptr<spdlog::async_logger> logger_;  // Null where nothing is logged.
};

}  // namespace

bool IsFailure(const Status& status) {
  if (DetailOf(status).code == "SHUTTING_DOWN") return false;  // We were told to.
  switch (status.code()) {
    case StatusCode::kInternal:
    case StatusCode::kUnavailable:
    case StatusCode::kDataLoss:
    case StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

StatusOr<std::shared_ptr<Accounts>> Accounts::Open(CallLog level, const std::string& file) {
  if (level == CallLog::kOff)
    return std::shared_ptr<Accounts>(std::make_shared<LoggingAccounts>(level));
  try {
    spdlog::sink_ptr sink;
    if (file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
    }
    return std::shared_ptr<Accounts>(std::make_shared<LoggingAccounts>(level, sink));
  } catch (const std::exception& error) {
    return Error(StatusCode::kInvalidArgument,
                 "cannot write the log to " + file + ": " + error.what(),
                 {"LOG_FILE", file, "give a file in a folder that you can write to"});
  }
}

MethodCount Accounts::count(Method method) const {
  const Counters& counters = counters_[static_cast<size_t>(method)];
  return {counters.calls.load(std::memory_order_relaxed),
          counters.refused.load(std::memory_order_relaxed),
          counters.failed.load(std::memory_order_relaxed),
          std::chrono::microseconds(counters.total_us.load(std::memory_order_relaxed))};
}

void Accounts::Count(Method method, const CallEnd& end) {
  Counters& counters = counters_[static_cast<size_t>(method)];
  counters.calls.fetch_add(1, std::memory_order_relaxed);
  counters.total_us.fetch_add(end.took.count(), std::memory_order_relaxed);
  if (!end.status.ok()) {
    (IsFailure(end.status) ? counters.failed : counters.refused)
        .fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace jizi::tuner
