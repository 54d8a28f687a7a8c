// command_ask_tell.cc - `jizi ask-tell`: store, engine and service in this process, JSON lines on
// stdin and stdout.

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "schedulers/scheduler.h"
#include "tuner-service/cli/ask_tell.h"
#include "tuner-service/cli/commands.h"
#include "tuner-service/cli/owner.h"
#include "tuner-service/cli/signals.h"
#include "tuner-service/cli/study_maker.h"
#include "tuner-service/cli/take_over.h"
#include "tuner-service/cli/terminal.h"
#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

using std::chrono::steady_clock;
constexpr char kWorker[] = "ask-tell";
constexpr int kLookForSignals_ms = 100;
constexpr std::chrono::hours kRenewEvery{1};

// Lines of stdin; one that is too long is dropped whole.
class LineReader {
 public:
  enum class Got { kLine, kTooLong, kNothing, kEnd };

  // Waits for at most `wait_ms`.
  StatusOr<Got> Next(int wait_ms, std::string& line) {
    if (const auto taken = Take(line)) return *taken;
    if (ended_) return Got::kEnd;
    pollfd in = {STDIN_FILENO, POLLIN, 0};
    if (poll(&in, 1, wait_ms) <= 0) return Got::kNothing;
    char buffer[65536];
    const ssize_t bytes = read(STDIN_FILENO, buffer, sizeof buffer);
    if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) return Got::kNothing;
    if (bytes < 0) {
      return Error(StatusCode::kInvalidArgument,
                   std::string("cannot read stdin: ") + std::strerror(errno),
                   {"INPUT_LOST", "stdin", "give it a pipe or a file of JSON lines"});
    }
    if (bytes == 0) {
      ended_ = true;
      if (!buffer_.empty()) buffer_ += '\n';  // The last line may lack it.
    }
    buffer_.append(buffer, static_cast<size_t>(bytes));
    return Take(line).value_or(ended_ ? Got::kEnd : Got::kNothing);
  }

 private:
  std::optional<Got> Take(std::string& line) {
    const size_t end = buffer_.find('\n', searched_);
    if (end == std::string::npos) {
      if (buffer_.size() > kMaxAskTellLine) {
        too_long_ = true;
        buffer_.clear();
      }
      searched_ = buffer_.size();
      return std::nullopt;
    }
    line = buffer_.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    buffer_.erase(0, end + 1);
    searched_ = 0;
    const bool too_long = std::exchange(too_long_, false) || line.size() > kMaxAskTellLine;
    return too_long ? Got::kTooLong : Got::kLine;
  }

  std::string buffer_;
  size_t searched_ = 0;
  bool too_long_ = false;
  bool ended_ = false;
};

bool IsBlank(const std::string& line) {
  return line.find_first_not_of(" \t") == std::string::npos;
}

StatusOr<ExitCode> Converse(AskTell& session, Signals& signals) {
  LineReader reader;
  std::string line;
  auto renew_at = steady_clock::now() + kRenewEvery;
  while (true) {
    if (const auto signal = signals.Wait(std::chrono::milliseconds(0))) {
      return *signal == SIGINT ? kExitInterrupted : kExitTerminated;
    }
    if (steady_clock::now() >= renew_at) {
      renew_at = steady_clock::now() + kRenewEvery;
      if (const Status renewed = session.Renew(); !renewed.ok()) {
        PrintError("jizi: " + ForPeople(renewed));  // The next line about it says so again.
      }
    }
    switch (TRY(reader.Next(kLookForSignals_ms, line))) {
      case LineReader::Got::kEnd:
        return kExitOk;
      case LineReader::Got::kNothing:
        break;
      case LineReader::Got::kLine:
        if (!IsBlank(line)) TRY(Write(session.Answer(line) + "\n"));
        break;
      case LineReader::Got::kTooLong:
        TRY(Write(
            AskTell::ErrorLine(Error(StatusCode::kInvalidArgument, "the line is longer than 16 MiB",
                                     {"LINE_TOO_LONG", "line", "ask and tell in smaller parts"})) +
            "\n"));
        break;
    }
  }
}

StatusOr<ExitCode> Run(const AskTellOptions& options) {
  Signals signals;  // First: blocked in every thread that follows.
  signal(SIGPIPE, SIG_IGN);
  Sweep sweep = TRY(ReadSweepFile(options.sweep_file));
  if (options.seed) sweep.study.seed = *options.seed;
  TRY(MakeScheduler(sweep.study));  // A method that is not here: names those that are.
  for (const SweepNote& note : sweep.notes) {
    PrintError(options.sweep_file + ":" + std::to_string(note.line) + ": note: " + note.text);
  }
  LocalService::Options service_options;
  service_options.on_error = [](const Status& status) { PrintError("jizi: " + ForPeople(status)); };
  service_options.on_store = [](const std::string& note) { PrintError("jizi: " + note); };
  std::optional<int> signalled;
  const auto stop = [&] {
    if (!signalled) signalled = signals.Wait(std::chrono::milliseconds(0));
    return signalled.has_value();
  };
  OwnedService owned;
  if (options.database.empty()) {
    owned.service = TRY(LocalService::StartInMemory(service_options));
  } else {
    const Target target = TRY(Resolved({options.database, "", "", ""}, ""));
    auto taken = OwnFile(target.database, service_options, stop);
    if (signalled) return *signalled == SIGINT ? kExitInterrupted : kExitTerminated;
    owned = TRY(std::move(taken));
    TRY(owned.lock->Announce(owned.service->address()));
  }
  const auto client = TRY(Client::Connect({owned.service->address(), "", ""}));
  TRY(MakeStudy(*client, sweep, Making::kResume,
                [](const std::string& note) { PrintError(note); }));
  const std::string metric = sweep.study.metrics.empty() ? "" : sweep.study.metrics.front().name;
  AskTell session(*client, sweep.study.name, metric, kWorker);
  const int left = TRY(session.Begin());
  if (left > 0) {
    PrintError("jizi: the session before did not end properly: " + std::to_string(left) +
               " trials are queued again");
  }
  const auto code = Converse(session, signals);
  const auto released = session.End();  // However it ended.
  TRY(code);
  TRY(released);
  return *code;
}

}  // namespace

ExitCode CommandAskTell(const AskTellOptions& options) {
  umask(077);  // Databases are nobody else's.
  return Done(Run(options));
}

}  // namespace jizi::tuner
