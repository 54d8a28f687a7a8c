// service_load.cc - how many calls and trials the service takes, how long they wait, and what
// bounds them.
//   service_load [--tiny] [--seconds S] [--unix] [--no-big] [--big-only]
// The server runs in this process, the clients (tests/bench/load_client.h) in a child, started
// anew for each figure. In the same run: a bare gRPC echo of the same messages over the same
// kind of channel, and the disk's fsync. One key=value line a figure; exit status 1 if any call
// failed or any trial was lost.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/big_study.h"
#include "tests/bench/echo_server.h"
#include "tests/bench/load_client.h"
#include "tests/bench/machine.h"
#include "tests/bench/timed_store.h"
#include "tuner-service/engine/engine.h"
#include "tuner-service/rpc/server.h"
#include "tuner-service/store/store.h"

extern char** environ;

namespace jizi::bench {
namespace {

using tuner::Engine;
using tuner::Server;

struct Settings {
  bool tiny = false;
  bool unix_socket = false;
  bool load = true;
  bool big = true;
  double seconds = 8;
};

struct Measured {
  LoadResult load;
  double server_cpu_us_per_call = 0;
};

// One child with this plan, while this process serves it.
std::optional<Measured> RunChild(const LoadPlan& plan) {
  std::vector<std::string> words = {"/proc/self/exe",
                                    "--client",
                                    plan.load == Load::kEcho ? "echo" : "trials",
                                    plan.address,
                                    plan.token_file,
                                    plan.study,
                                    std::to_string(plan.studies),
                                    std::to_string(plan.channels),
                                    std::to_string(plan.warm_up.count()),
                                    std::to_string(plan.measured.count()),
                                    std::to_string(plan.calls_per_second.value_or(0))};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int spawned = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::optional<LoadResult> result;
  double cpu_at_begin = 0;
  double cpu_at_end = 0;
  if (spawned == 0) {
    FILE* lines = fdopen(ends[0], "r");
    char line[512];
    while (std::fgets(line, sizeof(line), lines) != nullptr) {
      if (std::strncmp(line, "begin", 5) == 0) cpu_at_begin = ProcessCpuSeconds();
      if (std::strncmp(line, "end", 3) == 0) cpu_at_end = ProcessCpuSeconds();
      if (const auto parsed = FromLine(line)) result = parsed;
    }
    std::fclose(lines);
    int status = 0;
    waitpid(child, &status, 0);
  }
  if (!result || result->failed > 0 || result->calls == 0) return std::nullopt;
  return Measured{*result, 1e6 * (cpu_at_end - cpu_at_begin) / static_cast<double>(result->calls)};
}

int ClientMain(char** argv) {
  LoadPlan plan;
  plan.load = std::strcmp(argv[2], "echo") == 0 ? Load::kEcho : Load::kTrials;
  plan.address = argv[3];
  plan.token_file = argv[4];
  plan.study = argv[5];
  plan.studies = std::atoi(argv[6]);
  plan.channels = std::atoi(argv[7]);
  plan.warm_up = std::chrono::milliseconds(std::atoi(argv[8]));
  plan.measured = std::chrono::milliseconds(std::atoi(argv[9]));
  if (const double rate = std::atof(argv[10]); rate > 0) plan.calls_per_second = rate;
  const LoadResult result = RunLoad(
      plan,
      [] {
        std::puts("begin");
        std::fflush(stdout);
      },
      [] {
        std::puts("end");
        std::fflush(stdout);
      });
  std::puts(ToLine(result).c_str());
  return 0;
}

class Bench {
 public:
  explicit Bench(const Settings& settings) : settings_(settings) {}

  bool Run() {
    PrintFsync("before");
    if (settings_.load && !RunLoads()) return false;
    return !settings_.big || RunBig();
  }

 private:
  bool RunLoads() {
    const std::string file = folder_ / "load.db";
    tuner::SqliteOptions options;
    options.path = file;
    auto store = tuner::OpenSqliteStore(options);
    if (!store.ok()) return Say(store.status());
    auto timed = TimedStore::Around(*std::move(store));
    store_ = timed.get();
    auto engine = Engine::Start(std::move(timed), {});
    if (!engine.ok()) return Say(engine.status());
    engine_ = *std::move(engine);
    std::ofstream(folder_ / "token") << "service-load-token\n";
    tuner::ServerOptions listen;
    listen.listen = settings_.unix_socket ? "unix:" + (folder_ / "socket") : "127.0.0.1:0";
    listen.token = "service-load-token";
    auto server = Server::Start(*engine_, listen);
    if (!server.ok()) return Say(server.status());
    const auto echo =
        EchoServer::Start(settings_.unix_socket ? "unix:" + (folder_ / "echo") : "127.0.0.1:0");
    if (echo == nullptr) return false;
    address_ = (*server)->address();
    echo_address_ = echo->address();
    const bool good = ClosedLoops() && OpenLoops();
    PrintFsync("after");
    (*server)->Shutdown(std::chrono::milliseconds(2000));
    engine_->Shutdown(std::chrono::milliseconds(2000));
    if (!good) return false;
    const double trials = static_cast<double>(trials_);
    std::printf("disk_bytes_per_trial=%.0f trials=%lld\n",
                static_cast<double>(DatabaseBytes(file)) / trials, static_cast<long long>(trials_));
    return true;
  }

  bool ClosedLoops() {
    const std::vector<int> channels =
        settings_.tiny ? std::vector<int>{1, 4} : std::vector<int>{1, 16, 64};
    most_ = channels.back();
    for (const int c : channels) {
      const auto echo = Echo(c, std::nullopt);
      const auto served = Trials(c, 1, std::nullopt);
      if (!echo || !served) return false;
      Print("closed", c, 1, *served);
      PrintEcho("closed", c, *echo);
      std::printf("ratio_vs_echo_calls=%.3f p99_vs_echo=%.2f loop=closed clients=%d\n",
                  Rate(*served) / Rate(*echo), served->load.p99_us / echo->load.p99_us, c);
      rate_ = Rate(*served);
    }
    const auto many = Trials(most_, most_, std::nullopt);
    if (!many) return false;
    Print("closed", most_, most_, *many);
    return true;
  }

  bool OpenLoops() {
    const double rate = rate_ / 2;
    const auto echo = Echo(most_, rate);
    const auto served = Trials(most_, 1, rate);
    if (!echo || !served) return false;
    Print("open", most_, 1, *served);
    const auto many = Trials(most_, most_, rate);
    if (!many) return false;
    Print("open", most_, most_, *many);
    PrintEcho("open", most_, *echo);
    std::printf("p99_vs_echo=%.2f loop=open clients=%d calls_per_s=%.0f\n",
                served->load.p99_us / echo->load.p99_us, most_, rate);
    return true;
  }

  bool RunBig() {
    for (const int reports : settings_.tiny ? std::vector<int>{5} : std::vector<int>{5, 100}) {
      BigStudyPlan plan;
      plan.reports = reports;
      if (settings_.tiny) plan.trials = 200;
      if (settings_.tiny) plan.suggestions = 20;
      const auto figures =
          MeasureBigStudy(folder_ / ("big" + std::to_string(reports) + ".db"), plan);
      if (!figures.ok()) return Say(figures.status());
      std::printf(
          "big trials=%d reports=%d build_s=%.1f restart_s=%.2f page_ms=%.1f sorted_page_ms=%.1f "
          "suggest_p50_us=%.0f suggest_p50_us_at_%d=%.0f disk_bytes_per_trial=%.0f "
          "memory_bytes_per_trial=%.0f\n",
          plan.trials, plan.reports, figures->build_s, figures->restart_s, figures->page_ms,
          figures->sorted_page_ms, figures->suggest_p50_us, plan.small_trials,
          figures->small_suggest_p50_us, figures->bytes_per_trial, figures->memory_per_trial);
      std::fflush(stdout);
    }
    return true;
  }

  LoadPlan Plan(Load load, int channels, std::optional<double> rate) const {
    LoadPlan plan;
    plan.load = load;
    plan.address = load == Load::kEcho ? echo_address_ : address_;
    plan.token_file = folder_ / "token";
    plan.channels = channels;
    plan.calls_per_second = rate;
    plan.measured = std::chrono::milliseconds(static_cast<int>(settings_.seconds * 1000));
    plan.warm_up = std::min(plan.warm_up, plan.measured / 4);
    plan.study = "echo";
    return plan;
  }

  std::optional<Measured> Echo(int channels, std::optional<double> rate) const {
    return RunChild(Plan(Load::kEcho, channels, rate));
  }

  // On studies of its own; afterwards each trial that the clients know to be complete must be
  // there.
  std::optional<Measured> Trials(int channels, int studies, std::optional<double> rate) {
    LoadPlan plan = Plan(Load::kTrials, channels, rate);
    plan.study = "load" + std::to_string(++runs_) + "-";
    plan.studies = studies;
    for (int i = 0; i < studies; ++i) {
      if (!CreateStudy(plan.study + std::to_string(i))) return std::nullopt;
    }
    const int64_t memory = ResidentBytes();
    store_->Take();
    const auto measured = RunChild(plan);
    commits_ = store_->Take();
    if (!measured) return std::nullopt;
    int64_t completed = 0;
    for (int i = 0; i < studies; ++i) completed += Completed(plan.study + std::to_string(i));
    if (completed != measured->load.trials) {
      std::fprintf(stderr, "service_load: %lld trials were completed, %lld are there\n",
                   static_cast<long long>(measured->load.trials),
                   static_cast<long long>(completed));
      return std::nullopt;
    }
    trials_ += completed;
    memory_per_trial_ =
        static_cast<double>(ResidentBytes() - memory) / static_cast<double>(completed);
    return measured;
  }

  bool CreateStudy(const std::string& name) {
    std::promise<Status> created;
    engine_->Create(LoadSpec(name), name, false, [&](const StatusOr<Engine::Created>& done) {
      created.set_value(done.status());
    });
    const Status status = created.get_future().get();
    return status.ok() || Say(status);
  }

  int64_t Completed(const std::string& name) {
    std::promise<int64_t> counted;
    engine_->Read(name, [&](const StatusOr<tuner::StudyView>& view) {
      counted.set_value(view.ok() ? view->study.counts[tuner::TrialState::kCompleted] : -1);
    });
    return counted.get_future().get();
  }

  static double Rate(const Measured& measured) {
    return static_cast<double>(measured.load.calls) / measured.load.seconds;
  }

  void Print(const char* loop, int channels, int studies, const Measured& measured) const {
    std::printf(
        "loop=%s clients=%d studies=%d calls_per_s=%.0f trials_per_s=%.1f p50_us=%.0f p99_us=%.0f "
        "server_cpu_us_per_call=%.0f client_cpu_us_per_call=%.0f memory_bytes_per_trial=%.0f\n",
        loop, channels, studies, Rate(measured), Rate(measured) / kCallsPerTrial,
        measured.load.p50_us, measured.load.p99_us, measured.server_cpu_us_per_call,
        measured.load.client_cpu_us_per_call, memory_per_trial_);
    PrintCommits();
  }

  // The commits of the last run: with its warm-up, and with the tail that only they explain.
  void PrintCommits() const {
    std::printf("  commits=%zu records_per_commit=%.2f p50_us=%.0f p99_us=%.0f longest_us=%.0f\n",
                commits_.commits,
                static_cast<double>(commits_.records) /
                    static_cast<double>(std::max<size_t>(commits_.commits, 1)),
                commits_.p50_us, commits_.p99_us, commits_.longest_us);
    std::fflush(stdout);
  }

  void PrintFsync(const char* when) const {
    const FsyncTimes fsync = MeasureFsync(folder_ / "fsync", settings_.tiny ? 20 : 500);
    std::printf("fsync when=%s p50_us=%.0f p99_us=%.0f\n", when, fsync.p50_us, fsync.p99_us);
    std::fflush(stdout);
  }

  static void PrintEcho(const char* loop, int channels, const Measured& measured) {
    std::printf(
        "echo loop=%s clients=%d calls_per_s=%.0f p50_us=%.0f p99_us=%.0f "
        "server_cpu_us_per_call=%.0f client_cpu_us_per_call=%.0f\n",
        loop, channels, Rate(measured), measured.load.p50_us, measured.load.p99_us,
        measured.server_cpu_us_per_call, measured.load.client_cpu_us_per_call);
    std::fflush(stdout);
  }

  static bool Say(const Status& status) {
    std::fprintf(stderr, "service_load: %s\n", ForPeople(status).c_str());
    return false;
  }

  const Settings settings_;
  const Folder folder_;
  std::unique_ptr<Engine> engine_;
  TimedStore* store_ = nullptr;  // The engine's.
  CommitTimes commits_;
  std::string address_;
  std::string echo_address_;
  int runs_ = 0;
  int most_ = 0;
  double rate_ = 0;
  int64_t trials_ = 0;
  double memory_per_trial_ = 0;
};

int Main(int argc, char** argv) {
  if (argc == 11 && std::strcmp(argv[1], "--client") == 0) return ClientMain(argv);
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--tiny") {
      settings.tiny = true;
      settings.seconds = 0.4;
    } else if (word == "--unix") {
      settings.unix_socket = true;
    } else if (word == "--no-big") {
      settings.big = false;
    } else if (word == "--big-only") {
      settings.load = false;
    } else if (word == "--seconds" && i + 1 < argc) {
      settings.seconds = std::atof(argv[++i]);
    } else {
      std::fprintf(stderr,
                   "service_load [--tiny] [--seconds S] [--unix] [--no-big] [--big-only]\n");
      return 2;
    }
  }
  return Bench(settings).Run() ? 0 : 1;
}

}  // namespace
}  // namespace jizi::bench

int main(int argc, char** argv) {
  return jizi::bench::Main(argc, argv);
}
