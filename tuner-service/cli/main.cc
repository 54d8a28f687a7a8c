// main.cc - the command line of `jizi`: what it takes, its help, and which command gets it. CLI11
// is called here and in command_line*.cc, completion.cc alone.

#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>

#include "base/utf8.h"
#include "tuner-service/cli/command_line.h"
#include "tuner-service/cli/completion.h"
#include "tuner-service/cli/terminal.h"
#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

constexpr char kFooter[] = R"(Examples:
  jizi check sweep.yaml                       judge a sweep file
  jizi run sweep.yaml --workers 2             run it here; results go to sweep.db
  jizi run sweep.yaml --resume                go on after Ctrl-C, a crash, or with a raised run_cap
  jizi best sweep                             the best trial so far, also while it runs
  jizi trials sweep --sort val_accuracy --top 5
  jizi serve --db team.db --listen 0.0.0.0:8470 --tls-cert c.pem --tls-key k.pem
                                              a server; then on any host that has the token and the certificate:
  JIZI_TOKEN_FILE=team.db.token JIZI_CA_FILE=c.pem jizi worker --server HOST:8470 sweep.yaml

STUDY is the study's name: `name:` in the sweep file, else the file's stem. Without --db and --server, STUDY.db in this folder is used,
else the only *.db there (`run` names the database after the sweep file).

Exit codes: 0 done; 1 ended without a result; 2 wrong command line, sweep file or value; 3 no service, or the file's owner is silent;
4 refused (exists, does not exist, or its state forbids it); 5 the database is damaged, locked, full or lost;
6 the output could not be written; 7 `report`: stop, `suggest`: no more trials; 8 `suggest`: none now; 130 Ctrl-C; 143 SIGTERM.)";

void AddRunOptions(CLI::App& command, Line& line) {
  command.add_option("SWEEP", line.run.sweep_file, "The sweep file (YAML)")->required();
  command
      .add_option("--workers", line.run.workers,
                  "Trials at a time (else `jizi: {workers: N}`, else 1)")
      ->check(WholeNumber(1, 1000));
  command.add_flag("--json", line.run.json,
                   "Changes and the best trial as JSON, one object a line");
}

void AddRun(CLI::App& app, Line& line) {
  CLI::App* run =
      app.add_subcommand("run", "Run a sweep: every trial, a live view, then the best one");
  AddRunOptions(*run, line);
  auto* database = run->add_option("--db", line.run.target.database,
                                   "Database file (else <sweep>.db in this folder)");
  AddServer(*run, line.run.target);
  run->get_option("--server")->excludes(database);
  run->add_option("--seed", line.run.seed, "Of the scheduler (else `jizi: {seed: S}`, else 0)")
      ->check(WholeNumber(0));
  run->add_option("--max-trials", line.run.max_trials, "Instead of run_cap")->check(WholeNumber(1));
  run->add_option("--timeout", line.timeout,
                  "Stop gently after this time (90s, 15m, 2h); --resume goes on");
  run->add_flag("--resume", line.run.resume, "Create the study or continue it");
  run->footer(
      "Examples:\n  jizi run sweep.yaml --workers 4\n  jizi run sweep.yaml --max-trials 40 "
      "--resume\n  jizi run sweep.yaml --server "
      "10.0.0.5:8470 --token-file team.db.token\nCtrl-C once stops gently (unfinished trials are "
      "queued again), twice kills.");
  CLI::App* worker =
      app.add_subcommand("worker", "Run trials of a server's study; creates the study or joins it");
  AddRunOptions(*worker, line);
  AddServer(*worker, line.run.target);
  worker->get_option("--server")->required();
  worker->footer(
      "Example:\n  JIZI_TOKEN_FILE=team.db.token jizi worker --server 10.0.0.5:8470 sweep.yaml "
      "--workers 8\n"
      "A worker starts the command of its own sweep file and nothing else.");
}

void AddServe(CLI::App& app, Line& line) {
  CLI::App* serve =
      app.add_subcommand("serve", "Serve a database to workers on this and other hosts");
  serve->add_option("--db", line.serve.database, "Database file")->capture_default_str();
  serve->add_option("--listen", line.serve.listen, "HOST:PORT (port 0 picks one) or unix:/path")
      ->capture_default_str();
  serve->add_option("--tls-cert", line.serve.certificate_file, "PEM certificate; with --tls-key");
  serve->add_option("--tls-key", line.serve.key_file, "PEM private key");
  serve->add_flag("--insecure", line.serve.insecure,
                  "Allow other hosts without TLS: the token travels in the clear");
  serve->add_option("--log", line.serve.log_file,
                    "Append a line for each call to this file (else failures go to stderr)");
  serve->footer(
      "Examples:\n  jizi serve --db team.db --log team.log\n  jizi serve --db team.db --listen "
      "0.0.0.0:8470 "
      "--tls-cert c.pem --tls-key k.pem\n"
      "Over TCP every call needs the token of FILE.token, which is made on the first start.");
}

void AddQueries(CLI::App& app, Line& line) {
  AddQuery(app, line, "studies", "List studies", "  jizi studies --db team.db", About::kAll);
  CLI::App* trials = AddQuery(app, line, "trials", "List a study's trials",
                              "  jizi trials sweep --sort val_accuracy --top 5 --state completed");
  trials->add_option("--sort", line.trials.sort,
                     "By a metric's last value, the best first (\"objective\": the study's)");
  trials->add_option("--top", line.trials.top, "Only the first K")->check(WholeNumber(1));
  trials
      ->add_option("--state", line.trials.states,
                   "Only these: queued, running, paused, completed, stopped, infeasible, failed")
      ->delimiter(',');
  CLI::App* show = AddQuery(app, line, "show", "Everything about one trial",
                            "  jizi show sweep 7\n  jizi show sweep 7 --json");
  show->add_option("TRIAL", line.trial, "The trial's number")->required()->check(WholeNumber(1));
  AddQuery(app, line, "best", "The best trial and its parameters",
           "  jizi best sweep\n  jizi best sweep --json");
  AddQuery(app, line, "watch", "Follow a study until it ends",
           "  jizi watch sweep\n  jizi watch sweep --server 10.0.0.5:8470 --token-file t.token");
  CLI::App* exported = AddQuery(app, line, "export", "All trials, for other programs",
                                "  jizi export sweep --format csv > trials.csv");
  exported
      ->add_option("--format", line.format,
                   "csv (a row a trial) or json (an array, with every measurement)")
      ->check(CLI::IsMember({"csv", "json"}))
      ->capture_default_str();
}

void AddChanges(CLI::App& app, Line& line) {
  CLI::App* enqueue = AddQuery(app, line, "enqueue",
                               "Add a trial with parameters of your choice; it runs before others",
                               "  jizi enqueue sweep lr=0.1 batch_size=512 optimizer=sgd");
  enqueue->add_option("NAME=VALUE", line.assignments, "Every parameter but constants")->required();
  CLI::App* retry = AddQuery(app, line, "retry", "Queue failed trials again",
                             "  jizi retry sweep        every failed one\n  jizi retry sweep 3 5");
  retry->add_option("TRIAL", line.retry, "Which (else all that failed)")->check(WholeNumber(1));
  AddQuery(app, line, "pause", "Hand out no new trials; running ones go on", "  jizi pause sweep");
  AddQuery(app, line, "resume", "Hand out trials again", "  jizi resume sweep");
  AddQuery(app, line, "stop", "Tell running trials to stop, and start no more",
           "  jizi stop sweep --db team.db");
  AddQuery(app, line, "delete", "Delete a study from its database",
           "  jizi delete sweep --db team.db");
}

// Made from this tree of commands, so that they say what --help says.
void AddGenerated(CLI::App& app, Line& line) {
  CLI::App* completion =
      app.add_subcommand("completion", "Print what makes a shell complete these commands");
  completion->add_option("SHELL", line.shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  completion->footer(
      "Examples:\n  source <(jizi completion bash)                  in ~/.bashrc\n  jizi "
      "completion "
      "zsh > ~/.zfunc/_jizi            with fpath+=~/.zfunc before compinit");
  app.add_subcommand("man", "Print the manual page")
      ->footer("Examples:\n  jizi man | man -l -\n  jizi man > /usr/local/share/man/man1/jizi.1");
}

ExitCode Dispatch(const std::string& name, Line& line) {
  if (name == "run") return CommandRun(line.run);
  if (name == "worker") return CommandWorker(line.run);
  if (name == "serve") return CommandServe(line.serve);
  if (name == "check") return CommandCheck(line.check);
  if (name == "studies") return CommandStudies(line.query);
  if (name == "trials") return CommandTrials(line.query, line.trials);
  if (name == "show") return CommandShow(line.query, line.trial);
  if (name == "best") return CommandBest(line.query);
  if (name == "watch") return CommandWatch(line.query);
  if (name == "export")
    return CommandExport(line.query,
                         line.format == "csv" ? ExportFormat::kCsv : ExportFormat::kJson);
  if (name == "enqueue") return CommandEnqueue(line.query, line.assignments);
  if (name == "retry") return CommandRetry(line.query, line.retry);
  if (name == "pause") return CommandSetState(line.query, StudyAction::kPause);
  if (name == "resume") return CommandSetState(line.query, StudyAction::kResume);
  if (name == "stop") return CommandSetState(line.query, StudyAction::kStop);
  if (name == "ask-tell") return CommandAskTell(line.ask_tell);
  if (name == "create") return CommandCreate(line.query, line.create);
  if (name == "suggest") return CommandSuggest(line.query, line.suggest);
  if (name == "report") return CommandReport(line.query, line.script);
  if (name == "complete") return CommandComplete(line.query, line.script, line.complete);
  if (name == "release") return CommandRelease(line.query, line.script);
  CHECK(name == "delete");
  return CommandDelete(line.query);
}

// CLI11 names the argument that it does not know; the nearest command is for us to find.
std::string MendForCommandLine(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  const std::string first = argc > 1 ? argv[1] : "";
  if (first.empty() || std::find(names.begin(), names.end(), first) != names.end()) {
    return "see jizi " + (first.empty() ? "" : first + " ") + "--help";
  }
  return MendForName(first, names) + " (jizi --help)";
}

// The service takes no text but UTF-8, and gRPC's own refusal of any other would not name it.
Status CheckArguments(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const size_t bad = FirstBadUtf8(argv[i]);
    if (bad == std::string::npos) continue;
    return Error(StatusCode::kInvalidArgument,
                 "argument " + std::to_string(i) + " (" + Shown(argv[i]) +
                     ") is no UTF-8 from its byte " + std::to_string(bad + 1) + " on",
                 {"BAD_ARGUMENT", Shown(argv[i]),
                  "use a terminal with a UTF-8 locale, and rename files whose names are not"});
  }
  return absl::OkStatus();
}

// Empty where the option was not given.
std::optional<Seconds> DurationOf(const std::string& option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto duration = ParseDuration(text);
  if (!duration.ok()) throw CLI::ValidationError(option, ForPeople(duration.status()));
  return *duration;
}

int Main(int argc, char** argv) {
  if (const Status checked = CheckArguments(argc, argv); !checked.ok()) {
    PrintError("jizi: " + ForPeople(checked));
    return kExitUsage;
  }
  CLI::App app(
      "Jizi tunes large-batch training jobs: a sweep file in, the best hyper-parameters out.",
      "jizi");
  app.set_version_flag("--version", "jizi " JIZI_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);
  app.get_formatter()->column_width(34);
  Line line;
  AddRun(app, line);
  CLI::App* check =
      app.add_subcommand("check", "Judge a sweep file; print its space and three sample trials");
  check->add_option("SWEEP", line.check.sweep_file, "The sweep file (YAML)")->required();
  check->footer("Examples:\n  jizi check sweep.yaml\n  jizi check sweep.yaml --json");
  check->add_flag("--json", line.check.json,
                  "The resolved study, then the samples, one JSON object a line");
  AddServe(app, line);
  AddQueries(app, line);
  AddChanges(app, line);
  AddScripts(app, line);
  AddAskTell(app, line);
  AddGenerated(app, line);
  try {
    app.parse(argc, argv);
    if (const auto timeout = DurationOf("--timeout", line.timeout)) line.run.timeout = *timeout;
    if (const auto lease = DurationOf("--lease", line.lease)) line.suggest.lease = *lease;
    if (line.wait == "0" || line.wait == "0s") {
      line.suggest.wait = Seconds(0);
    } else if (const auto wait = DurationOf("--wait", line.wait)) {
      line.suggest.wait = *wait;
    }
  } catch (const CLI::Success& help) {
    app.exit(help);
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    PrintError("jizi: " + std::string(error.what()) + "; " + MendForCommandLine(app, argc, argv));
    return kExitUsage;
  }
  const std::string name = app.get_subcommands().front()->get_name();
  if (name == "completion") return Done(Write(CompletionScript(app, line.shell)));
  if (name == "man") return Done(Write(ManPage(app, JIZI_VERSION)));
  return Dispatch(name, line);
}

}  // namespace

// With stdout closed (`jizi run s.yaml >&-`) the first file that is opened would become it, and
// would get every line that is printed.
static void OpenStandardFiles() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd) return;
  }
}

}  // namespace jizi::tuner

int main(int argc, char** argv) {
  jizi::tuner::OpenStandardFiles();
  return jizi::tuner::Main(argc, argv);
}
