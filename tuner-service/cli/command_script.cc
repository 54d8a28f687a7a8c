// command_script.cc - create, suggest, report, complete, release: a study served by a shell script,
// one process a call (docs/contracts.md, 9, 16). Nothing is held between two calls but the lease.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/utf8.h"
#include "schedulers/scheduler.h"
#include "tuner-service/cli/commands.h"
#include "tuner-service/cli/requests.h"
#include "tuner-service/cli/script_calls.h"
#include "tuner-service/cli/show.h"
#include "tuner-service/cli/study_maker.h"
#include "tuner-service/cli/terminal.h"
#include "tuner-service/cli/text.h"
#include "tuner-service/rpc/limits.h"
#include "tuner-service/workers/random_hex.h"

namespace jizi::tuner {
namespace {

using std::chrono::steady_clock;
using Stub = v1::TuneService::Stub;
constexpr int kTriesForTurn = 20;  // Calls of one trial at the same time take turns.

// A program that a worker started finds its service without being told.
Target ScriptTarget(Target target) {
  const char* endpoint = std::getenv("JIZI_ENDPOINT");
  if (target.database.empty() && target.server.empty() && endpoint != nullptr) {
    target.server = endpoint;
  }
  return target;
}

StatusOr<ServiceConnection> ConnectScript(const QueryOptions& options) {
  return Connect(TRY(Resolved(ScriptTarget(options.target), options.study)), Purpose::kChange);
}

StatusOr<std::string> WorkerName(const std::string& given) {
  if (!given.empty()) {
    if (given.size() <= kMaxNameBytes && FirstBadUtf8(given) == std::string::npos) return given;
    return Error(StatusCode::kInvalidArgument, "the worker's name is too long, or no UTF-8",
                 {"BAD_WORKER", "worker", "give at most 256 bytes of text"});
  }
  char host[64] = "host";
  gethostname(host, sizeof host - 1);
  return "script/" + Utf8Text(host, sizeof host) + "/" + RandomHex(8);
}

// One line for `eval`: the lease in variables, the parameters as flags in "$@".
StatusOr<std::string> ShellLine(const std::string& study, const v1::Assignment& assignment) {
  Launch launch;
  launch.command = {"set", "--", "${args}"};
  std::string line = "export JIZI_STUDY=" + ForShell(study) +
                     " JIZI_TRIAL=" + std::to_string(assignment.trial().id()) +
                     " JIZI_ATTEMPT=" + std::to_string(assignment.lease().attempt()) +
                     " JIZI_LEASE=" + HexOf(assignment.lease().token()) +
                     " JIZI_PARAMS=" + ForShell(PlainJson(assignment.trial().params())) + ";";
  for (const std::string& word : TRY(ExpandCommand(launch, assignment.trial().params(), ""))) {
    line += " " + ForShell(word);
  }
  return line + "\n";
}

std::string AssignmentJson(const std::string& study, const v1::Assignment& assignment) {
  nlohmann::json json = {
      {"study", study},
      {"trial", assignment.trial().id()},
      {"attempt", assignment.lease().attempt()},
      {"lease", HexOf(assignment.lease().token())},
      {"lease_s", assignment.lease_s()},
      {"params", nlohmann::json::parse(PlainJson(assignment.trial().params()))},
  };
  if (assignment.has_warm_start()) {
    json["warm_start"] = {{"trial", assignment.warm_start().trial()},
                          {"step", assignment.warm_start().checkpoint().step()},
                          {"path", assignment.warm_start().checkpoint().path()}};
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

StatusOr<ExitCode> Suggest(const QueryOptions& options, const SuggestOptions& wanted) {
  if (wanted.lease.count() < kMinLease_s || wanted.lease.count() > kMaxLease_s) {
    return Error(StatusCode::kInvalidArgument, "--lease is " + ShowDuration(wanted.lease),
                 {"BAD_LEASE", "lease", "it may be 1s to 7d"});
  }
  v1::SuggestRequest request;
  request.set_study(options.study);
  request.set_worker(TRY(WorkerName(wanted.worker)));
  request.set_count(wanted.count);
  request.set_lease_s(wanted.lease.count());
  const auto deadline =
      steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(wanted.wait);
  std::string said;
  while (true) {
    double pause_s = 0;
    {  // A file that nobody owns is given back while we wait: others must be able to complete.
      const ServiceConnection connection = TRY(ConnectScript(options));
      v1::AttachRequest attach;
      attach.mutable_lease()->set_study(options.study);
      attach.set_worker(request.worker());
      request.set_sequence(
          TRY(CallPatiently(*connection.client, &Stub::Attach, attach)).next_worker_sequence());
      const auto response = TRY(CallPatiently(*connection.client, &Stub::Suggest, request));
      if (response.has_trials()) {
        std::string text;
        for (const v1::Assignment& assignment : response.trials().assignments()) {
          text += options.json ? AssignmentJson(options.study, assignment)
                               : TRY(ShellLine(options.study, assignment));
        }
        TRY(Write(text));
        return kExitOk;
      }
      if (response.has_finished()) {
        PrintError("jizi: " + Shown(options.study) +
                   " hands out no more trials: " + Fit(response.finished().why(), 300));
        return kExitEnd;
      }
      if (steady_clock::now() >= deadline) {
        PrintError("jizi: nothing to hand out now: " + Fit(response.wait().why(), 300));
        return kExitNothingYet;
      }
      if (said.empty()) PrintError("jizi: waiting: " + Fit(response.wait().why(), 300));
      said = response.wait().why();
      pause_s = std::clamp(response.wait().retry_after_s(), 0.05, 5.0);
    }
    const auto left = std::chrono::duration<double>(deadline - steady_clock::now());
    std::this_thread::sleep_for(std::min(left, std::chrono::duration<double>(pause_s)));
  }
}

// Runs `call` with the trial's next number; again when another call of the trial took it.
// kEndedToo: also on a trial that has ended, for the service to say how (a repeated `complete`).
enum class Of { kHeld, kEndedToo };
template <typename Call>
auto InTurn(Client& client, const QueryOptions& options, const ScriptTrial& trial, Of which,
            Call call) -> decltype(call(std::declval<HeldTrial&>())) {
  const std::string token = TRY(TokenFromHex(trial.lease));
  for (int tries = 1;; ++tries) {
    const v1::Lease lease = TRY(LeaseOf(client, options.study, trial.id, token));
    auto held = AttachTrial(client, lease);
    if (!held.ok()) {
      const std::string code = DetailOf(held.status()).code;
      const bool over = code == "TRIAL_ENDED" || code == "LEASE_LOST";
      if (which == Of::kHeld || !over) return held.status();
      held = HeldTrial{lease, 1, -1};
    }
    auto result = call(*held);
    const std::string code = result.ok() ? "" : DetailOf(internal::StatusOf(result)).code;
    const bool taken = code == "STALE_SEQUENCE" || code == "SEQUENCE_REUSED";
    if (!taken || tries == kTriesForTurn) return result;
  }
}

Status CheckStep(const ScriptTrial& trial) {
  if (!trial.step || *trial.step >= 0) return absl::OkStatus();
  return Error(StatusCode::kInvalidArgument, "--step is " + std::to_string(*trial.step),
               {"BAD_STEP", "step", "count finished steps from 1"});
}

StatusOr<ExitCode> Report(const QueryOptions& options, const ScriptTrial& trial) {
  const Metrics metrics = TRY(ParseMetrics(trial.metrics));
  TRY(CheckStep(trial));
  const ServiceConnection connection = TRY(ConnectScript(options));
  const v1::Directive directive =
      TRY(InTurn(*connection.client, options, trial, Of::kHeld, [&](HeldTrial& held) {
        const int64_t step = trial.step.value_or(NextStep(held));
        return SendReport(*connection.client, held, MeasurementOf(metrics, step));
      }));
  const char* word = directive.has_stop() ? "stop" : directive.has_pause() ? "pause" : "continue";
  TRY(options.json
          ? Write(DirectiveJson(directive) + "\n")
          : WriteText(word + (directive.why().empty() ? "" : ": " + directive.why()) + "\n"));
  return IsToEnd(directive) ? kExitEnd : kExitOk;
}

Status Complete(const QueryOptions& options, const ScriptTrial& trial, Ending ending) {
  const Metrics metrics = TRY(ParseMetrics(trial.metrics));
  TRY(CheckStep(trial));
  const ServiceConnection connection = TRY(ConnectScript(options));
  const v1::Trial ended =
      TRY(InTurn(*connection.client, options, trial, Of::kEndedToo, [&](HeldTrial& held) {
        if (!metrics.empty()) {
          ending.final_measurement = MeasurementOf(metrics, trial.step.value_or(NextStep(held)));
        }
        return SendComplete(*connection.client, held, ending);
      }));
  if (options.json) return Write(Json(ended) + "\n");
  std::string text = "trial " + std::to_string(ended.id()) + " is " + StateName(ended.state());
  if (ended.has_objective()) text += ", objective " + ShowNumber(ended.objective());
  if (!ended.end_why().empty()) text += ": " + ReasonLine(ended.end_why());
  return WriteText(text + "\n");
}

Status Release(const QueryOptions& options, const ScriptTrial& trial) {
  const ServiceConnection connection = TRY(ConnectScript(options));
  TRY(InTurn(*connection.client, options, trial, Of::kHeld, [&](HeldTrial& held) {
    return SendRelease(*connection.client, held, "given back by `jizi release`");
  }));
  return options.json ? Write("{}\n")
                      : WriteText("trial " + std::to_string(trial.id) + " is queued again\n");
}

Status Create(const QueryOptions& options, const CreateOptions& wanted) {
  Sweep sweep = TRY(ReadSweepFile(wanted.sweep_file));
  if (wanted.seed) sweep.study.seed = *wanted.seed;
  TRY(MakeScheduler(sweep.study));  // A method that is not here: names those that are.
  Target target = options.target;
  if (target.server.empty() && target.database.empty()) {
    target.database = std::filesystem::path(wanted.sweep_file).stem().string() + ".db";
  }
  target = TRY(Resolved(target, sweep.study.name));
  const ServiceConnection connection = TRY(Connect(target, Purpose::kCreate));
  const v1::Study study =
      TRY(MakeStudy(*connection.client, sweep, wanted.resume ? Making::kResume : Making::kNew,
                    [](const std::string& note) { PrintError(note); }));
  if (options.json) return Write(Json(study) + "\n");
  return WriteText("study " + Shown(study.spec().name()) + " is " + StateName(study.state()) +
                   (target.server.empty() ? " in " + target.database : " on " + target.server) +
                   "\n");
}

}  // namespace

ExitCode CommandCreate(const QueryOptions& options, const CreateOptions& wanted) {
  umask(077);  // Databases are nobody else's.
  return Done(Create(options, wanted));
}
ExitCode CommandSuggest(const QueryOptions& options, const SuggestOptions& wanted) {
  return Done(Suggest(options, wanted));
}
ExitCode CommandReport(const QueryOptions& options, const ScriptTrial& trial) {
  return Done(Report(options, trial));
}
ExitCode CommandComplete(const QueryOptions& options, const ScriptTrial& trial,
                         const CompleteOptions& wanted) {
  Ending ending;
  if (wanted.failed) ending = {TrialEnd::kFailed, *wanted.failed, std::nullopt};
  if (wanted.infeasible) ending = {TrialEnd::kInfeasible, *wanted.infeasible, std::nullopt};
  return Done(Complete(options, trial, std::move(ending)));
}
ExitCode CommandRelease(const QueryOptions& options, const ScriptTrial& trial) {
  return Done(Release(options, trial));
}

}  // namespace jizi::tuner
