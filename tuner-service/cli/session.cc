#include "tuner-service/cli/session.h"

#include <utility>

#include "tuner-service/cli/closing.h"
#include "tuner-service/cli/connect.h"
#include "tuner-service/cli/requests.h"
#include "tuner-service/cli/show.h"
#include "tuner-service/cli/study_maker.h"
#include "tuner-service/cli/terminal.h"
#include "tuner-service/cli/text.h"
#include "tuner-service/cli/view.h"
#include "tuner-service/cli/watcher.h"
#include "tuner-service/workers/worker.h"

namespace jizi::tuner {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::milliseconds kTick{100};  // Signals are seen within it.
constexpr std::chrono::milliseconds kRedraw{250};
constexpr std::chrono::milliseconds kLastChanges{
    2000};  // For the stream to bring what is durable already.

class Session {
 public:
  Session(const Sweep& sweep, const SessionOptions& options, Client& client, NoteBox& notes,
          Signals& signals)
      : sweep_(sweep),
        options_(options),
        client_(client),
        notes_(notes),
        signals_(signals),
        view_(terminal_.interactive() ? LiveView::Lines::kEnds : LiveView::Lines::kProgress,
              terminal_.colours()) {}

  StatusOr<ExitCode> Run(Supervisor& supervisor) {
    WorkerOptions worker_options;
    worker_options.service = options_.service;
    worker_options.study = sweep_.study.name;
    worker_options.launch = sweep_.launch;
    worker_options.slots = options_.slots;
    worker_options.folder = options_.trials_folder;
    worker_options.lease_s = sweep_.lease.count();
    worker_options.prefix = options_.worker_prefix;
    worker_options.note = [this](const std::string& note) { notes_.Add(note); };
    StudyWatcher watcher(client_, sweep_.study.name);
    std::unique_ptr<Worker> worker = TRY(Worker::Start(std::move(worker_options), supervisor));
    const auto begin = steady_clock::now();
    auto drawn = begin - kRedraw;
    while (!worker->WaitFor(kTick)) {
      while (const auto signal = signals_.Wait(std::chrono::milliseconds(0)))
        HandleSignal(*signal, *worker);
      if (options_.timeout && !stopping_ && steady_clock::now() - begin > *options_.timeout) {
        Say("the time of --timeout is over: stopping");
        stopping_ = true;
        worker->Stop(Worker::StopMode::kGently);
      }
      if (steady_clock::now() - drawn < kRedraw) continue;
      drawn = steady_clock::now();
      Update(watcher);
    }
    const Status ended = worker->Wait();
    worker.reset();
    CatchUp(watcher);
    terminal_.EraseFrame();
    if (!ended.ok() && !signal_) return WithWayOn(ended);
    return Summary();
  }

 private:
  // What ended the worker and not the study: it goes on where it is, once that is mended.
  Status WithWayOn(const Status& ended) const {
    ErrorDetail detail = DetailOf(ended);
    if (detail.code == "HOST_FAULT") {
      detail.mend += ", then: " + options_.how_to_go_on;
    } else if (detail.code == "SUPERVISOR_GONE" || detail.code == "SUPERVISOR_SILENT") {
      detail.mend = "to go on: " + options_.how_to_go_on;
    }
    return detail.code.empty() ? ended : Error(ended.code(), std::string(ended.message()), detail);
  }

  void HandleSignal(int signal, Worker& worker) {
    if (signal_ && signal == SIGINT) {
      Say("killing the trials");
      worker.Stop(Worker::StopMode::kKill);
    } else if (!signal_) {
      signal_ = signal;
      Say("stopping: trials get SIGTERM and " + ShowDuration(sweep_.launch.grace) +
          " to save; unfinished ones are queued again (Ctrl-C once more kills)");
      if (!stopping_) worker.Stop(Worker::StopMode::kGently);
      stopping_ = true;
    }
  }

  // JSON has stdout to itself.
  void Say(const std::string& line) {
    if (options_.json) {
      PrintError(line);
    } else {
      terminal_.Draw({line}, view_.Frame(WallNow(), terminal_.Size()));
    }
  }

  void Update(StudyWatcher& watcher) {
    std::vector<std::string> lines = notes_.Take();
    for (std::string& line : lines) line = Fit(line, 1000);
    if (options_.json) {
      for (const std::string& line : lines) PrintError(line);
      lines.clear();
    }
    for (const auto& change : watcher.Take()) {
      if (options_.json) Print(Json(change) + "\n");
      const auto more = view_.Fold(change, WallNow(), terminal_.TableWidth());
      lines.insert(lines.end(), more.begin(), more.end());
      position_ = change.log_position();
    }
    if (watcher.away() != away_) {
      away_ = !away_;
      lines.emplace_back(away_ ? "the service does not answer; trials go on, and it is asked again"
                               : "the service is back");
    }
    if (!options_.json) terminal_.Draw(lines, view_.Frame(WallNow(), terminal_.Size()));
  }

  // The last ends are durable before the worker hears of them, but may still be on their way here.
  void CatchUp(StudyWatcher& watcher) {
    const auto study = GetStudy(client_, sweep_.study.name);
    const auto deadline = steady_clock::now() + kLastChanges;
    do {
      Update(watcher);
    } while (study.ok() && position_ < study->log_position() && steady_clock::now() < deadline &&
             watcher.ended().ok() && !signals_.Wait(std::chrono::milliseconds(20)));
  }

  StatusOr<v1::Trial> LastFailed() {
    v1::ListTrialsRequest request;
    request.set_study(sweep_.study.name);
    request.add_states(v1::TRIAL_STATE_FAILED);
    request.set_descending(true);
    auto trials = TRY(AllTrials(client_, request, 1));
    return trials.empty() ? v1::Trial() : std::move(trials.front());
  }

  StatusOr<ExitCode> Summary() {
    const v1::Study study = TRY(GetStudy(client_, sweep_.study.name));
    const bool measured = study.has_best_trial();
    v1::Trial best;
    if (measured) {
      best = TRY(WholeTrial(client_, sweep_.study.name, study.best_trial()));
      if (options_.json) Print(Json(best) + "\n");
    }
    v1::Trial failed;
    if (AllFailed(study)) failed = TRY(LastFailed());
    const std::string text =
        Closing(study, measured ? &best : nullptr, AllFailed(study) ? &failed : nullptr,
                {options_.database, options_.target_words, options_.how_to_go_on});
    options_.json ? PrintError(text) : Print(text);
    if (signal_) return *signal_ == SIGINT ? kExitInterrupted : kExitTerminated;
    const bool result = study.spec().metrics_size() > 0 ? measured : study.counts().completed() > 0;
    return result ? kExitOk : kExitNoResult;
  }

  const Sweep& sweep_;
  const SessionOptions& options_;
  Client& client_;
  NoteBox& notes_;
  Signals& signals_;
  Terminal terminal_;
  LiveView view_;
  std::optional<int> signal_;  // The first one.
  bool stopping_ = false;
  bool away_ = false;
  int64_t position_ = 0;
};

}  // namespace

StatusOr<ExitCode> RunSession(const Sweep& sweep, const SessionOptions& options, NoteBox& notes,
                              Supervisor& supervisor, Signals& signals) {
  // Before there is a study: a refused start leaves none behind.
  TRY(CheckSlots(sweep.launch, options.slots));
  const std::unique_ptr<Client> client = TRY(Client::Connect(options.service));
  const Making making = options.join     ? Making::kJoin
                        : options.resume ? Making::kResume
                                         : Making::kNew;
  TRY(MakeStudy(*client, sweep, making, [&](const std::string& note) { notes.Add(note); }));
  return Session(sweep, options, *client, notes, signals).Run(supervisor);
}

}  // namespace jizi::tuner
