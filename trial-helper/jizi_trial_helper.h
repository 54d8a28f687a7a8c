#pragma once
// jizi_trial_helper.h - instruments a training program: parameters in, measurements out, directives
// back.
//
//   jizi::JiziTrialHelper helper = jizi::JiziTrialHelper::FromEnvironment();
//   while (auto trial = helper.NextTrial()) {           // the same process takes trial after trial
//     const double lr = trial->Get<double>("lr", 0.1);  // 0.1 when run by hand without Jizi
//     for (int64_t epoch = 0; epoch < epochs; ++epoch) {
//       ...
//       if (trial->Report(epoch, {{"val_accuracy", accuracy}, {"loss", loss}}).should_stop())
//       break;
//     }
//   }
//
// Started by `jizi run` or `jizi worker` it talks to the service; run by hand it does the same work
// once, and says so once. A training run never dies because the service is away: reports are kept
// (in memory, then in the file JIZI_OUTBOX), sent again with backoff, and nothing counts twice.
// What kill -9 of the program can lose is what was not yet in the outbox.
// Fails: std::invalid_argument for a parameter of another type than asked for, for WORLD_SIZE > 1
// without a broadcast, and for an environment that makes no sense; std::logic_error for NextTrial
// while a trial lives. What else goes wrong is said on stderr, and the training goes on.
// Threads: one trial at a time; Report, Checkpoint and what they return from one thread at a time.
// A background thread sends and renews the lease. A process that forks (data loaders) uses the
// helper in the parent alone; in the child its objects do nothing.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace jizi {

using Metrics = std::vector<std::pair<std::string, double>>;

// What the service answered to a report. Asking waits for the answer, at most report_wait, then
// goes on: an answer that comes later shows in the result of the next report.
class ReportResult {
 public:
  // Stop, Pause, SIGTERM or a lost lease: save a checkpoint if you like, and leave the loop.
  bool should_stop() const;
  bool should_pause() const;  // A checkpoint is expected; the trial goes on from it later.
  // Changed parameters, name and JSON value. Get() of the trial returns the new ones from here on.
  std::vector<std::pair<std::string, std::string>> changes() const;
  int64_t roll_back_to() const;  // -1: go on. Else continue from this earlier step.
  std::string why() const;

 private:
  friend class Trial;
  struct Answer;
  explicit ReportResult(std::shared_ptr<Answer> answer);
  std::shared_ptr<Answer> answer_;
};

class Trial {
 public:
  // Sends what waits (at most flush_wait_s) and completes the trial: as finished, unless Fail or
  // Infeasible was called. It completes nothing, and leaves the end to the worker, when an
  // exception is on its way out or the loop was left because of SIGTERM.
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // double, float, int, int64_t, bool, std::string. An int parameter may be read as double or
  // float; nothing else is converted. by_hand: where the trial has no such parameter.
  template <typename T>
  T Get(const std::string& name, T by_hand) const;
  std::string Get(const std::string& name, const char* by_hand) const;
  bool Has(const std::string& name) const;
  std::string ParamsJson() const;

  int64_t id() const;             // 0 when run by hand.
  std::string Directory() const;  // The trial's folder; the current one when run by hand.

  // The checkpoint to start from (absolute path) and its step; empty and 0 when starting fresh.
  // What was measured up to that step counts; go on with the step after it.
  std::string WarmStart() const;
  int64_t StartStep() const;

  void PlanSteps(int64_t total_steps);  // For progress and ETA.

  // Steps are >= 0 and must not fall: a report that goes back is not sent, and that is said.
  // Metrics may be NaN. A name that is not 1 to 256 bytes of UTF-8 without control characters, what
  // is more than 1000 metrics, and a batch size that is not above 0 are left out, and that is said
  // once; the rest is sent. Returns at once with one rank; with several it waits up to
  // report_wait_s.
  ReportResult Report(int64_t step, const Metrics& metrics);
  // For the batch-size estimator: squared gradient norms of a small and a big batch.
  ReportResult Report(int64_t step, const Metrics& metrics, double small_norm_squared,
                      double big_norm_squared, double small_batch, double big_batch);

  // The writer fills a temporary file at the path it is given (and throws if it cannot); that is
  // synced, renamed to a file in checkpoints/, digested and registered. False, and a line on
  // stderr, if it could not be written: the trial goes on with the older checkpoint.
  // With several ranks rank 0 writes, and every rank gets its result.
  bool Checkpoint(int64_t step, const std::function<void(const std::string& path)>& writer);
  // A file that the program wrote already, beneath Directory(), reached without links. The program
  // leaves it as it is from then on.
  bool Checkpoint(int64_t step, const std::string& path);

  // Where the service does not hear of it within flush_wait_s, the program's exit code tells the
  // worker: 75 in place of 0.
  void Fail(const std::string& why);        // May be tried again.
  void Infeasible(const std::string& why);  // These parameters never work.

 private:
  friend class JiziTrialHelper;
  friend class ReportResult;
  struct State;
  explicit Trial(std::unique_ptr<State> state);
  ReportResult ReportWith(int64_t step, const Metrics& metrics, const double* gradient);
  template <typename Make>
  bool Register(int64_t step, const Make& make);
  std::unique_ptr<State> state_;
};

struct HelperOptions {
  // Several ranks: rank 0 alone talks. Called collectively: rank 0's bytes become everyone's.
  std::function<void(std::string& bytes)> broadcast;
  std::vector<std::string> changeable;  // Parameters that this program can change while running.
  bool can_pause = false;               // It saves checkpoints and starts from WarmStart().
  bool can_roll_back = false;           // It obeys roll_back_to().
  double report_wait_s = 1.0;
  double flush_wait_s = 60.0;
  // How long NextTrial asks for a trial while none is ready; then the worker asks on.
  double next_trial_wait_s = 60.0;
  // Throughput, memory and CPU time travel with a report that often, as metrics jizi/...; 0: never.
  double resources_every_s = 60.0;
  // SIGTERM makes should_stop() true, where a service started this program and it has no handler of
  // its own by the time of FromEnvironment. The worker kills after its grace time (10 s).
  bool notice_sigterm = true;
};

class JiziTrialHelper {
 public:
  static JiziTrialHelper FromEnvironment(HelperOptions options = {});
  ~JiziTrialHelper();
  JiziTrialHelper(JiziTrialHelper&&) noexcept;

  // The next trial, or null when there is none for this process. The former one must be gone.
  std::unique_ptr<Trial> NextTrial();

 private:
  struct Impl;
  explicit JiziTrialHelper(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace jizi
