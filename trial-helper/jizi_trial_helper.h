#pragma once
// jizi_trial_helper.h - instruments a training program: parameters in, measurements out, directives back.
//
//   jizi::JiziTrialHelper helper = jizi::JiziTrialHelper::FromEnvironment();
//   while (auto trial = helper.NextTrial()) {             // the same process takes trial after trial
//     const double lr = trial->Get<double>("lr", 0.1);    // 0.1 when run by hand without Jizi
//     for (int64_t epoch = 0; epoch < epochs; ++epoch) {
//       ...
//       if (trial->Report(epoch, {{"val_accuracy", accuracy}, {"loss", loss}}).should_stop()) break;
//     }
//   }
//
// Started by `jizi run` or `jizi worker` it talks to the service; run by hand it does the same work once, and says so once.
// A training run never dies because the service is away: reports are kept (in memory, then in the file JIZI_OUTBOX), sent again
// with backoff, and nothing counts twice. What kill -9 of the program can lose is what was not yet in the outbox.
// Fails: std::invalid_argument for a parameter of another type than asked for, and for WORLD_SIZE > 1 without a Broadcast.
// Threads: one trial at a time; Report, Checkpoint from one thread at a time. A background thread sends, renews the lease and
// adds throughput, memory and CPU once a minute.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace jizi {

using Metrics = std::vector<std::pair<std::string, double>>;

// What the service answered to a report. Asking waits for the answer, at most report_wait, then goes on (contract 21).
class ReportResult {
 public:
  bool should_stop() const;   // Stop or Pause: save a checkpoint if you like, leave the loop. Also after SIGTERM.
  bool should_pause() const;  // A checkpoint is expected; the trial goes on from it later.
  // Changed parameters, name and JSON value. Get() of the trial returns the new values from here on.
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
  ~Trial();  // Completes the trial: as finished, unless Fail or Infeasible was called or an exception is on its way out.
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // double, float, int, int64_t, bool, std::string. An int parameter may be read as double; nothing else is converted.
  template <typename T>
  T Get(const std::string& name, T by_hand) const;
  bool Has(const std::string& name) const;
  std::string ParamsJson() const;

  int64_t id() const;             // 0 when run by hand.
  std::string Directory() const;  // The trial's folder; the current one when run by hand.

  // The checkpoint to start from (absolute path) and its step; empty and 0 when starting fresh.
  std::string WarmStart() const;
  int64_t StartStep() const;

  void PlanSteps(int64_t total_steps);  // For progress and ETA.

  // Steps must not fall. Metrics may be NaN. Returns at once with one rank.
  ReportResult Report(int64_t step, const Metrics& metrics);
  // For the batch-size estimator: squared gradient norms of a small and a big batch.
  ReportResult Report(int64_t step, const Metrics& metrics, double small_norm_squared, double big_norm_squared, double small_batch,
                      double big_batch);

  // The writer fills a temporary file at the path it is given; that is synced, renamed to checkpoints/<name>, digested and registered.
  // False (and a line on stderr) if it could not be written: the trial goes on with the older checkpoint.
  bool Checkpoint(int64_t step, const std::function<void(const std::string& path)>& writer);
  // A file that the program wrote already, beneath Directory().
  bool Checkpoint(int64_t step, const std::string& path);

  void Fail(const std::string& why);
  void Infeasible(const std::string& why);

 private:
  friend class JiziTrialHelper;
  struct State;
  explicit Trial(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct HelperOptions {
  // Several ranks: rank 0 alone talks. Called collectively: rank 0's bytes become everyone's.
  std::function<void(std::string& bytes)> broadcast;
  std::vector<std::string> changeable;  // Parameters that this program can change while running.
  bool can_roll_back = false;
  double report_wait_s = 1.0;
  double flush_wait_s = 60.0;
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
