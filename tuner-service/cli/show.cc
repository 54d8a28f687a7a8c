#include "tuner-service/cli/show.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <set>
#include <sstream>

#include "proto/client.h"
#include "tuner-service/cli/table.h"
#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

// TRIAL_STATE_RUNNING -> running
std::string LastWord(const std::string& name, const std::string& prefix) {
  std::string word = name.substr(std::min(prefix.size(), name.size()));
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

std::string Duration(const v1::Trial& trial, WallTime now) {
  return trial.attempts_size() == 0 ? "" : ShowDuration(TimeRun(trial, now));
}

std::string Steps(const v1::Trial& trial) {
  if (!trial.has_last_measurement()) return "";
  std::string steps = std::to_string(trial.last_measurement().step());
  if (trial.has_total_steps()) steps += "/" + std::to_string(trial.total_steps());
  return steps;
}

std::string MetricsText(const v1::Measurement& measurement) {
  std::vector<std::pair<std::string, double>> sorted(measurement.metrics().begin(),
                                                     measurement.metrics().end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> parts;
  for (const auto& [name, value] : sorted)
    parts.push_back(Fit(name, 100) + "=" + ShowNumber(value));
  return Joined(parts, "  ");
}

// A line for what a list of `all` leaves out.
std::string MoreLine(int64_t all, int shown, const char* what) {
  if (all <= shown) return "";
  return "... " + std::to_string(all - shown) + " more " + what +
         " before these: --json, or jizi export --format json\n";
}

std::string MeasurementRows(const v1::Trial& trial, size_t width) {
  constexpr size_t kMostColumns = 8;  // Beyond it one column holds them all.
  const int first = std::max(0, trial.measurements_size() - kLastRows);
  std::set<std::string> names;
  for (int i = first; i < trial.measurements_size(); ++i) {
    for (const auto& [name, value] : trial.measurements(i).metrics()) names.insert(name);
  }
  const bool apart = names.size() <= kMostColumns;
  std::vector<Column> columns = {{"step", true}};
  if (!apart) columns.push_back({"metrics"});
  for (const std::string& name : names) {
    if (apart) columns.push_back({name, true});
  }
  std::vector<Row> rows;
  for (int i = first; i < trial.measurements_size(); ++i) {
    const v1::Measurement& measurement = trial.measurements(i);
    Row row = {std::to_string(measurement.step())};
    if (!apart) row.push_back(MetricsText(measurement));
    for (const std::string& name : names) {
      if (!apart) break;
      const auto found = measurement.metrics().find(name);
      row.push_back(found == measurement.metrics().end() ? "" : ShowNumber(found->second));
    }
    rows.push_back(std::move(row));
  }
  return RenderTable(columns, rows, width);
}

std::string AttemptEndName(v1::AttemptEnd end) {
  if (end == v1::ATTEMPT_END_UNSPECIFIED) return "running";
  return LastWord(v1::AttemptEnd_Name(end), "ATTEMPT_END_");
}

void AddLine(std::string& text, const std::string& name, const std::string& value) {
  if (!value.empty()) text += Padded(name, 12) + value + "\n";
}

std::string AllParams(const v1::StudySpec& spec, const v1::Trial& trial) {
  std::string text;
  size_t longest = 0;
  for (const auto& parameter : spec.parameters()) {
    if (trial.params().contains(parameter.name()))
      longest = std::max(longest, Width(parameter.name()));
  }
  for (const auto& parameter : spec.parameters()) {
    const auto found = trial.params().find(parameter.name());
    if (found == trial.params().end()) continue;
    text += "  " + Padded(parameter.name(), longest) + "  " +
            Fit(ShowValue(found->second), 10'000) + "\n";
  }
  return text;
}

}  // namespace

std::string StateName(v1::TrialState state) {
  return LastWord(v1::TrialState_Name(state), "TRIAL_STATE_");
}
std::string StateName(v1::StudyState state) {
  return LastWord(v1::StudyState_Name(state), "STUDY_STATE_");
}

bool IsEnded(v1::TrialState state) {
  return state == v1::TRIAL_STATE_COMPLETED || state == v1::TRIAL_STATE_STOPPED ||
         state == v1::TRIAL_STATE_INFEASIBLE || state == v1::TRIAL_STATE_FAILED;
}

std::string TrialsHave(int64_t count) {
  return std::to_string(count) + (count == 1 ? " trial has" : " trials have");
}

std::chrono::duration<double> TimeRun(const v1::Trial& trial, WallTime now) {
  Seconds run(0);
  for (const v1::Attempt& attempt : trial.attempts()) {
    if (attempt.end() == v1::ATTEMPT_END_LOST) continue;
    const bool over = attempt.has_ended() && attempt.ended().seconds() != 0;
    if (!over && trial.state() != v1::TRIAL_STATE_RUNNING) continue;
    run += std::max(Seconds(0),
                    Seconds((over ? TimeOf(attempt.ended()) : now) - TimeOf(attempt.started())));
  }
  return run;
}

std::string ObjectiveNumber(const v1::StudySpec& spec, const v1::Trial& trial) {
  if (trial.has_objective()) return ShowNumber(trial.objective());
  if (spec.metrics_size() == 0 || !trial.has_last_measurement()) return "";
  const auto& metrics = trial.last_measurement().metrics();
  const auto found = metrics.find(spec.metrics(0).name());
  return found == metrics.end() ? "" : ShowNumber(found->second);
}

int64_t EndedTrials(const v1::TrialCounts& counts) {
  return counts.completed() + counts.stopped() + counts.infeasible() + counts.failed();
}
int64_t AllTrials(const v1::TrialCounts& counts) {
  return EndedTrials(counts) + counts.queued() + counts.running() + counts.paused();
}

WallTime WallNow() {
  return std::chrono::time_point_cast<WallTime::duration>(std::chrono::system_clock::now());
}

WallTime TimeOf(const google::protobuf::Timestamp& time) {
  return WallTime(std::chrono::seconds(time.seconds()) +
                  std::chrono::microseconds(time.nanos() / 1000));
}

std::string ShowTime(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0) return "";
  const std::time_t seconds = time.seconds();
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "";
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

std::string ShowValue(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kFloatValue:
      return ShowNumber(value.float_value());
    case v1::Value::kBoolValue:
      return value.bool_value() ? "True" : "False";
    case v1::Value::kStringValue:
      return value.string_value();
    default:
      return ToJsonText(value);
  }
}

std::string ReasonLine(const std::string& why) {
  std::string first;
  std::string last;
  std::istringstream lines(why);
  for (std::string line; std::getline(lines, line);) {
    // Nor what only points at a place in the line above.
    if (line.find_first_not_of(" \t\r^~") == std::string::npos) continue;
    (first.empty() ? first : last) = line;
  }
  // Our own workers put it into the first line already.
  const bool told = last.empty() || first.find(last.substr(0, 40)) != std::string::npos;
  return Fit(first, 160) + (told ? "" : ": " + Fit(last, 160));
}

std::vector<std::string> ParamItems(const v1::StudySpec& spec, const v1::Trial& trial) {
  std::vector<std::string> parts;
  for (const auto& parameter : spec.parameters()) {
    const auto found = trial.params().find(parameter.name());
    if (found == trial.params().end() || parameter.has_constant()) continue;
    // What others named may hold escape sequences.
    parts.push_back(Fit(parameter.name() + "=" + ShowValue(found->second), 10'000));
  }
  return parts;
}

std::string ShowParams(const v1::StudySpec& spec, const v1::Trial& trial) {
  return Fit(Joined(ParamItems(spec, trial), " "), 10'000);
}

std::string ShowObjective(const v1::StudySpec& spec, const v1::Trial& trial) {
  const std::string number = ObjectiveNumber(spec, trial);
  return number.empty() || spec.metrics_size() == 0
             ? ""
             : Fit(spec.metrics(0).name(), 100) + " " + number;
}

std::string StudiesTable(const std::vector<v1::Study>& studies, size_t width) {
  std::vector<Row> rows;
  for (const v1::Study& study : studies) {
    const v1::TrialCounts& counts = study.counts();
    const bool best = study.has_best_objective();
    rows.push_back({study.spec().name(), StateName(study.state()),
                    std::to_string(AllTrials(counts)), std::to_string(EndedTrials(counts)),
                    std::to_string(counts.running()),
                    study.spec().metrics_size() > 0 ? study.spec().metrics(0).name() : "",
                    best ? ShowNumber(study.best_objective()) : "", study.spec().method(),
                    ShowTime(study.created())});
  }
  return RenderTable({{"study"},
                      {"state"},
                      {"trials", true},
                      {"ended", true},
                      {"running", true},
                      {"metric"},
                      {"best", true},
                      {"method"},
                      {"created (UTC)"}},
                     rows, width);
}

std::string TrialsTable(const v1::StudySpec& spec, const std::vector<v1::Trial>& trials,
                        WallTime now, size_t width) {
  const std::string metric = spec.metrics_size() > 0 ? spec.metrics(0).name() : "objective";
  std::vector<Column> columns = {
      {"trial", true}, {"state"}, {metric, true}, {"step", true}, {"time", true}};
  std::vector<std::string> names;
  for (const auto& parameter : spec.parameters()) {
    if (!parameter.has_constant()) names.push_back(parameter.name());
  }
  // Beyond this many columns nobody can read a table: one column holds them all.
  constexpr size_t kMostColumns = 8;
  const bool apart = names.size() <= kMostColumns;
  for (const std::string& name : names) {
    if (apart) columns.push_back({name, true});
  }
  if (!apart) columns.push_back({"parameters"});
  columns.push_back({"why"});
  std::vector<Row> rows;
  for (const v1::Trial& trial : trials) {
    Row row = {std::to_string(trial.id()), StateName(trial.state()), ObjectiveNumber(spec, trial),
               Steps(trial), Duration(trial, now)};
    for (const std::string& name : names) {
      if (!apart) break;
      const auto found = trial.params().find(name);
      row.push_back(found == trial.params().end() ? "" : ShowValue(found->second));
    }
    if (!apart) row.push_back(ShowParams(spec, trial));
    row.push_back(trial.state() == v1::TRIAL_STATE_COMPLETED ? "" : ReasonLine(trial.end_why()));
    rows.push_back(std::move(row));
  }
  const bool has_why =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.back().empty(); });
  if (!has_why) {
    columns.pop_back();
    for (Row& row : rows) row.pop_back();
  }
  return RenderTable(columns, rows, width);
}

std::string TrialInFull(const v1::StudySpec& spec, const v1::Trial& trial, WallTime now,
                        size_t width) {
  std::string text;
  AddLine(text, "trial", std::to_string(trial.id()) + " of " + Fit(spec.name(), 256));
  AddLine(text, "state", StateName(trial.state()));
  AddLine(text, "result", ShowObjective(spec, trial));
  AddLine(text, "steps", Steps(trial));
  AddLine(text, "proposed", Fit(trial.why(), 500));
  AddLine(text, "created", ShowTime(trial.created()));
  AddLine(text, "started", ShowTime(trial.started()));
  AddLine(text, "ended", ShowTime(trial.ended()));
  AddLine(text, "ran", Duration(trial, now));
  for (const auto& [name, value] :
       std::map<std::string, std::string>(trial.tags().begin(), trial.tags().end())) {
    AddLine(text, "tag", Fit(name + "=" + value, 500));
  }
  for (const auto& [name, value] :
       std::map<std::string, std::string>(trial.attributes().begin(), trial.attributes().end())) {
    AddLine(text, "attribute", Fit(name + "=" + value, 500));
  }
  text += "\nparameters\n" + AllParams(spec, trial);
  if (trial.attempts_size() > 0) {
    std::vector<Row> rows;
    for (const v1::Attempt& attempt : trial.attempts()) {
      rows.push_back({std::to_string(attempt.number()), AttemptEndName(attempt.end()),
                      std::to_string(attempt.start_step()), ShowTime(attempt.started()),
                      ShowTime(attempt.ended()), attempt.worker()});
    }
    text += "\n" + RenderTable({{"attempt", true},
                                {"end"},
                                {"from step", true},
                                {"started (UTC)"},
                                {"ended (UTC)"},
                                {"worker"}},
                               rows, width);
  }
  if (trial.measurements_size() > 0) {
    text += "\n" + MoreLine(trial.measurements_size(), kLastRows, "measurements") +
            MeasurementRows(trial, width);
  }
  if (trial.checkpoints_size() > 0) {
    std::vector<Row> rows;
    for (int i = std::max(0, trial.checkpoints_size() - kLastRows); i < trial.checkpoints_size();
         ++i) {
      const v1::Checkpoint& checkpoint = trial.checkpoints(i);
      rows.push_back({std::to_string(checkpoint.step()), std::to_string(checkpoint.bytes()),
                      checkpoint.path()});
    }
    const int64_t all = std::max<int64_t>(trial.checkpoint_count(), trial.checkpoints_size());
    text += "\n" + MoreLine(all, static_cast<int>(rows.size()), "checkpoints") +
            RenderTable({{"checkpoint", true}, {"bytes", true}, {"path"}}, rows, width);
  }
  if (!trial.end_why().empty()) {
    // The last lines of stderr: as they are, but for what could move the cursor.
    text += "\nwhy it ended\n";
    std::string line;
    for (const char c : trial.end_why() + "\n") {
      if (c != '\n') {
        line += c;
        continue;
      }
      text += "  " + Fit(line, 1000) + "\n";
      line.clear();
    }
  }
  return text;
}

std::string BestTrial(const v1::Study& study, const v1::Trial& trial) {
  const v1::StudySpec& spec = study.spec();
  std::string text = "best trial  " + std::to_string(trial.id());
  if (const std::string objective = ShowObjective(spec, trial); !objective.empty())
    text += "  " + objective;
  if (const std::string ran = Duration(trial, TimeOf(trial.ended())); !ran.empty())
    text += "  in " + ran;
  return text + "\n" + AllParams(spec, trial);
}

std::string TrialsCsv(const v1::StudySpec& spec, const std::vector<v1::Trial>& trials) {
  std::set<std::string> metrics;
  for (const v1::Trial& trial : trials) {
    for (const auto& [name, value] : trial.last_measurement().metrics()) metrics.insert(name);
  }
  Row titles = {"trial", "state", "objective", "last_step", "attempts"};
  for (const auto& parameter : spec.parameters()) titles.push_back("param." + parameter.name());
  for (const std::string& metric : metrics) titles.push_back("metric." + metric);
  for (const char* name : {"created", "started", "ended", "end_why"}) titles.emplace_back(name);
  std::string csv = CsvLine(titles);
  const auto number = [](double value) {
    v1::Value exact;  // All digits, for other programs.
    exact.set_float_value(value);
    return std::isfinite(value) ? ToJsonText(exact) : ShowNumber(value);
  };
  for (const v1::Trial& trial : trials) {
    Row row = {std::to_string(trial.id()), StateName(trial.state()),
               trial.has_objective() ? number(trial.objective()) : "",
               trial.has_last_measurement() ? std::to_string(trial.last_measurement().step()) : "",
               std::to_string(trial.attempts_size())};
    for (const auto& parameter : spec.parameters()) {
      const auto found = trial.params().find(parameter.name());
      if (found == trial.params().end()) {
        row.emplace_back();
      } else {
        const bool text = found->second.kind_case() == v1::Value::kStringValue;
        row.push_back(text ? found->second.string_value() : ToJsonText(found->second));
      }
    }
    for (const std::string& metric : metrics) {
      const auto found = trial.last_measurement().metrics().find(metric);
      row.push_back(found == trial.last_measurement().metrics().end() ? "" : number(found->second));
    }
    for (const auto& time : {trial.created(), trial.started(), trial.ended()})
      row.push_back(ShowTime(time));
    row.push_back(trial.end_why());
    csv += CsvLine(row);
  }
  return csv;
}

std::string Json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  // Not MessageToJsonString: its order of a map's keys changes from run to run.
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    CHECK(message.SerializeToCodedStream(&coded));
  }
  static auto* const resolver = google::protobuf::util::NewTypeResolverForDescriptorPool(
      "type.googleapis.com", google::protobuf::DescriptorPool::generated_pool());
  std::string json;
  const auto status = google::protobuf::util::BinaryToJsonString(
      resolver, "type.googleapis.com/" + message.GetDescriptor()->full_name(), bytes, &json,
      options);
  CHECK(status.ok());  // Fails only for Any and field masks, which no message of ours has.
  return json;
}

}  // namespace jizi::tuner
