// command_line_scripts.cc - the commands for workers that are scripts, and for programs that ask
// and tell.

#include "tuner-service/cli/command_line.h"

namespace jizi::tuner {
namespace {

void AddLease(CLI::App& command, Line& line) {
  command.add_option("TRIAL", line.script.id, "The trial's number")
      ->required()
      ->check(WholeNumber(1));
  command
      .add_option("--lease-token", line.script.lease, "As `suggest` printed it (else JIZI_LEASE)")
      ->envname("JIZI_LEASE");
}

void AddMeasured(CLI::App& command, Line& line) {
  command.add_option("METRIC=NUMBER", line.script.metrics,
                     "Such as val_accuracy=0.91; also nan, inf");
  command
      .add_option("--step", line.script.step,
                  "Finished steps, epochs or examples (else one more than last time)")
      ->check(WholeNumber(0));
}

}  // namespace

// A worker that is a shell script.
void AddScripts(CLI::App& app, Line& line) {
  CLI::App* create =
      AddQuery(app, line, "create", "Create a study and run nothing yet",
               "  jizi create sweep.yaml            in sweep.db, for `suggest`\n"
               "  jizi create sweep.yaml --server 10.0.0.5:8470 --token-file t.token",
               About::kAll);
  create->add_option("SWEEP", line.create.sweep_file, "The sweep file (YAML)")->required();
  create
      ->add_option("--seed", line.create.seed, "Of the scheduler (else `jizi: {seed: S}`, else 0)")
      ->check(WholeNumber(0));
  create->add_flag("--resume", line.create.resume,
                   "Create it or take what is there, with new budgets");
  CLI::App* suggest = AddQuery(
      app, line, "suggest", "Take trials, for a script that runs them itself",
      "  while line=$(jizi suggest sweep); do\n    eval \"$line\"            # JIZI_TRIAL, "
      "JIZI_LEASE, "
      "..., and the parameters as flags in \"$@\"\n    ./train.sh \"$@\" &&\n      jizi complete "
      "sweep "
      "$JIZI_TRIAL val_accuracy=\"$(cat accuracy)\" ||\n      jizi complete sweep $JIZI_TRIAL "
      "--failed "
      "\"exit code $?\"\n  done\n  jizi suggest sweep -n 4 --json      {\"trial\", \"lease\", "
      "\"params\", ...} a "
      "line\nExit codes: 0 trials; 7 there will be no more; 8 none within --wait. Without --db and "
      "--server JIZI_ENDPOINT is used, if set.\nA trial whose lease runs out goes to another "
      "worker; on a "
      "file that no `run` or `serve` owns nobody looks, so `jizi release` it.");
  suggest->get_option("--json")->description(
      "One JSON object a trial, with plain values, in place of a line for eval");
  suggest->add_option("-n,--count", line.suggest.count, "So many at most")
      ->check(WholeNumber(1, 1000))
      ->capture_default_str();
  suggest->add_option("--lease", line.lease,
                      "How long a trial may be silent: 90s, 15m, 2h (1h unless said)");
  suggest->add_option(
      "--wait", line.wait,
      "How long to wait while others' trials may still come back (1h; 0: not at all)");
  suggest->add_option("--worker", line.suggest.worker,
                      "A name that stays (else one of its own each time); one call at a time");
  CLI::App* report = AddQuery(
      app, line, "report", "Report metrics of a trial that `suggest` gave; says whether to stop",
      "  jizi report sweep $JIZI_TRIAL --step 3 val_accuracy=0.91 || break\nExit codes: 0 go on; 7 "
      "stop (or pause): end, then `jizi complete`; 4 the lease is lost: end. A report renews the "
      "lease.");
  report->get_option("--json")->description("The directive as JSON, as `ask-tell` gives it");
  AddLease(*report, line);
  AddMeasured(*report, line);
  report->get_option("METRIC=NUMBER")->required();
  CLI::App* complete = AddQuery(app, line, "complete", "End a trial that `suggest` gave",
                                "  jizi complete sweep $JIZI_TRIAL val_accuracy=0.93\n  jizi "
                                "complete sweep $JIZI_TRIAL --failed "
                                "\"out of memory\"");
  AddLease(*complete, line);
  AddMeasured(*complete, line);
  auto* failed = complete->add_option("--failed", line.complete.failed, "It failed, and why");
  complete
      ->add_option("--infeasible", line.complete.infeasible,
                   "Its parameters cannot work, and why: it is not tried again")
      ->excludes(failed);
  CLI::App* release = AddQuery(app, line, "release", "Give a trial back, for another worker",
                               "  jizi release sweep $JIZI_TRIAL");
  AddLease(*release, line);
}

void AddAskTell(CLI::App& app, Line& line) {
  CLI::App* command = app.add_subcommand(
      "ask-tell", "Serve a study to a program in any language: JSON lines on stdin and stdout");
  command->add_option("SWEEP", line.ask_tell.sweep_file, "The sweep file (YAML); needs no program")
      ->required();
  command->add_option(
      "--db", line.ask_tell.database,
      "Keep it in this database, and continue the study there (else in memory alone)");
  command
      ->add_option("--seed", line.ask_tell.seed,
                   "Of the scheduler (else `jizi: {seed: S}`, else 0)")
      ->check(WholeNumber(0));
  command->footer(
      R"(One request a line, one answer a line:
  {"ask": 2}                        {"trials":[{"id":1,"params":{"lr":0.01}},{"id":2,...}]}
                                    {"trials":[],"wait":why}: tell some first
                                    {"finished":why}: there will be no more
  {"report": {"id": 1, "step": 3, "metrics": {"loss": 0.5}}}
                                    {"directive":"continue"}, or "stop" or "pause" with "why"
  {"tell": {"id": 1, "metrics": {"loss": 0.4}}}
  {"tell": {"id": 2, "failed": "out of memory"}}, or "infeasible"
                                    {"ok":true}
Any error is {"error":{"code","message","mend"}}, and the session goes on. At the end of stdin it ends;
what was asked for and not told is queued again. docs/ask-tell.md says it all.)");
}

}  // namespace jizi::tuner
