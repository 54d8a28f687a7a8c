// command_query.cc - studies, trials, show, best, watch, export: what only reads.

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tuner-service/cli/closing.h"
#include "tuner-service/cli/commands.h"
#include "tuner-service/cli/requests.h"
#include "tuner-service/cli/run_files.h"
#include "tuner-service/cli/show.h"
#include "tuner-service/cli/signals.h"
#include "tuner-service/cli/terminal.h"
#include "tuner-service/cli/text.h"
#include "tuner-service/cli/watcher.h"
#include "tuner-service/workers/trial_folder.h"

namespace jizi::tuner {
namespace {

StatusOr<ServiceConnection> ConnectToRead(const QueryOptions& options,
                                          Purpose purpose = Purpose::kRead) {
  const Target target = TRY(Resolved(options.target, options.study));
  ServiceConnection connection = TRY(Connect(target, purpose));
  if (!connection.note.empty()) PrintError("jizi: " + connection.note);
  return connection;
}

template <typename Message>
Status WriteJsonLines(const std::vector<Message>& messages) {
  std::string text;
  for (const Message& message : messages) text += Json(message) + "\n";
  return Write(text);
}

Status Studies(const QueryOptions& options) {
  const ServiceConnection connection = TRY(ConnectToRead(options));
  const auto studies = TRY(AllStudies(*connection.client));
  if (options.json) return WriteJsonLines(studies);
  return WriteText(studies.empty() ? "no studies\n"
                                   : StudiesTable(studies, Terminal().TableWidth()));
}

StatusOr<v1::TrialState> StateOf(const std::string& name) {
  std::vector<std::string> names;
  for (int i = v1::TrialState_MIN + 1; i <= v1::TrialState_MAX; ++i) {
    names.push_back(StateName(static_cast<v1::TrialState>(i)));
    if (names.back() == name) return static_cast<v1::TrialState>(i);
  }
  return Error(StatusCode::kInvalidArgument, "there is no state `" + Shown(name) + "`",
               {"BAD_STATE", name, MendForName(name, names)});
}

Status Trials(const QueryOptions& options, const TrialsOptions& wanted) {
  v1::ListTrialsRequest request;
  request.set_study(options.study);
  for (const std::string& state : wanted.states) request.add_states(TRY(StateOf(state)));
  const ServiceConnection connection = TRY(ConnectToRead(options));
  const v1::Study study = TRY(GetStudy(*connection.client, options.study));
  if (!wanted.sort.empty()) {
    request.set_sort_metric(wanted.sort);
    // The best first: by the metric's goal where the study names it, else the largest.
    bool maximize = true;
    for (int i = study.spec().metrics_size() - 1; i >= 0; --i) {
      const v1::MetricSpec& metric = study.spec().metrics(i);
      if (metric.name() == wanted.sort || (i == 0 && wanted.sort == "objective")) {
        maximize = metric.goal() == v1::GOAL_MAXIMIZE;
      }
    }
    request.set_descending(maximize);
  }
  const auto trials = TRY(AllTrials(*connection.client, request, wanted.top));
  if (options.json) return WriteJsonLines(trials);
  return WriteText(trials.empty()
                       ? "no trials\n"
                       : TrialsTable(study.spec(), trials, WallNow(), Terminal().TableWidth()));
}

Status Show(const QueryOptions& options, int64_t id) {
  const ServiceConnection connection = TRY(ConnectToRead(options));
  const v1::Study study = TRY(GetStudy(*connection.client, options.study));
  const v1::Trial trial = TRY(WholeTrial(*connection.client, options.study, id));
  if (options.json) return Write(Json(trial) + "\n");
  TRY(WriteText(TrialInFull(study.spec(), trial, WallNow(), Terminal().TableWidth())));
  // Where it ran on this machine; a server does not know its workers' folders.
  const Target target = TRY(Resolved(options.target, options.study));
  if (target.database.empty()) return absl::OkStatus();
  const std::string folder =
      TrialFolder(StudyFolder(TrialsRootOf(target.database), options.study), id);
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return absl::OkStatus();
  return WriteText("\nits files are in " + folder + "\n");
}

StatusOr<ExitCode> Best(const QueryOptions& options) {
  const ServiceConnection connection = TRY(ConnectToRead(options));
  const v1::Study study = TRY(GetStudy(*connection.client, options.study));
  if (!study.has_best_trial()) {
    PrintError("jizi: no trial of " + Shown(options.study) + " has a result yet");
    return kExitNoResult;
  }
  // Without its curve, which `show` and `export` have.
  const v1::Trial trial = TRY(TrialAlone(*connection.client, options.study, study.best_trial()));
  TRY(options.json ? Write(Json(trial) + "\n") : WriteText(BestTrial(study, trial)));
  return kExitOk;
}

// What came out, as `run` says it at its end.
Status WriteOutcome(const QueryOptions& options, Client& client) {
  const v1::Study study = TRY(GetStudy(client, options.study));
  v1::Trial best;
  if (study.has_best_trial()) best = TRY(TrialAlone(client, options.study, study.best_trial()));
  return Write(OutcomeText(study, study.has_best_trial() ? &best : nullptr, nullptr, ""));
}

bool IsOver(const v1::Study& study) {
  const bool closed =
      study.state() == v1::STUDY_STATE_FINISHED || study.state() == v1::STUDY_STATE_STOPPED;
  return closed && study.counts().running() == 0;
}

StatusOr<ExitCode> Watch(const QueryOptions& options) {
  Signals signals;
  const ServiceConnection connection = TRY(ConnectToRead(options, Purpose::kFollow));
  TRY(GetStudy(*connection.client, options.study));
  StudyWatcher watcher(*connection.client, options.study);
  Terminal terminal;
  LiveView view(terminal.interactive() ? LiveView::Lines::kEnds : LiveView::Lines::kProgress,
                terminal.colours());
  bool whole = false;  // The first snapshot may come in parts.
  while (true) {
    std::vector<std::string> lines;
    const Status ended = watcher.ended();
    for (const auto& change : watcher.Take()) {
      if (options.json) TRY(Write(Json(change) + "\n"));
      const auto more = view.Fold(change, WallNow(), terminal.TableWidth());
      lines.insert(lines.end(), more.begin(), more.end());
      whole = !change.more();
    }
    if (!options.json) terminal.Draw(lines, view.Frame(WallNow(), terminal.Size()));
    TRY(terminal.written());
    if (!ended.ok()) return ended;
    // Without its owner a file does not change.
    const bool still = connection.local != nullptr;
    if (whole && (IsOver(view.study()) || still)) {
      terminal.EraseFrame();
      if (!options.json) TRY(WriteOutcome(options, *connection.client));
      return kExitOk;
    }
    if (const auto signal = signals.Wait(std::chrono::milliseconds(250))) {
      return *signal == SIGINT ? kExitInterrupted : kExitTerminated;
    }
  }
}

Status Export(const QueryOptions& options, ExportFormat format) {
  const ServiceConnection connection = TRY(ConnectToRead(options));
  const v1::Study study = TRY(GetStudy(*connection.client, options.study));
  v1::ListTrialsRequest request;
  request.set_study(options.study);
  const auto trials = TRY(AllTrials(*connection.client, request, 0));
  if (format == ExportFormat::kCsv) return Write(TrialsCsv(study.spec(), trials));
  // One array, a trial a line, written as it goes: a study may be large.
  TRY(Write("["));
  for (size_t i = 0; i < trials.size(); ++i) {
    const v1::Trial whole = TRY(WholeTrial(*connection.client, options.study, trials[i].id()));
    TRY(Write((i == 0 ? "\n" : ",\n") + Json(whole)));
  }
  return Write("\n]\n");
}

}  // namespace

ExitCode CommandStudies(const QueryOptions& options) {
  return Done(Studies(options));
}
ExitCode CommandTrials(const QueryOptions& options, const TrialsOptions& trials) {
  return Done(Trials(options, trials));
}
ExitCode CommandShow(const QueryOptions& options, int64_t trial) {
  return Done(Show(options, trial));
}
ExitCode CommandBest(const QueryOptions& options) {
  return Done(Best(options));
}
ExitCode CommandWatch(const QueryOptions& options) {
  return Done(Watch(options));
}
ExitCode CommandExport(const QueryOptions& options, ExportFormat format) {
  return Done(Export(options, format));
}

}  // namespace jizi::tuner
