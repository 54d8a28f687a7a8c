#include "tuner-service/workers/printed_report.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "proto/client.h"

namespace jizi::tuner {
namespace {

constexpr size_t kPrefixBytes = 5;  // "jizi "
constexpr size_t kShownBytes = 80;  // Of a word that is wrong.

Status Wrong(const std::string& what) {
  return Error(StatusCode::kInvalidArgument, what,
               {"PRINTED_REPORT", "stdout", "print lines such as: jizi step=3 val_accuracy=0.91"});
}

// The first one's reason, and how many.
void LeaveOut(PrintedReport& report, const Status& wrong) {
  if (report.left_out++ == 0) report.wrong = wrong;
}

PrintedReport Nothing(const std::string& what) {
  PrintedReport report;
  LeaveOut(report, Wrong(what));
  return report;
}

std::string Shown(const std::string& word) {
  return "'" + Utf8Text(word, kShownBytes) + "'";
}

bool IsPlace(const std::string& name) {
  return name == "step" || name == "total_steps";
}

Status Put(PrintedReport& report, const std::string& name, double value) {
  if (IsPlace(name)) {
    if (!(value >= 0) || value > 9e15 || value != std::floor(value)) {
      return Wrong(name + " must be a whole number from 0 on");
    }
    (name == "step" ? report.step : report.total_steps) = static_cast<int64_t>(value);
    return {};
  }
  if (const std::string wrong = WrongMetricName(name); !wrong.empty()) return Wrong(wrong);
  auto& metrics = *report.measurement.mutable_metrics();
  if (metrics.size() >= kMaxMetrics && !metrics.contains(name)) {
    return Wrong("more than 1,000 metrics in one line");
  }
  metrics[name] = value;
  return {};
}

// False: the line has no place, and none of it can be used.
bool Take(PrintedReport& report, const std::string& name, const StatusOr<double>& value) {
  const Status put = value.ok() ? Put(report, name, *value) : value.status();
  if (put.ok()) return true;
  if (name == "step") {
    report = {};
    LeaveOut(report, put);
    return false;
  }
  LeaveOut(report, put);
  return true;
}

StatusOr<double> Number(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const double value = strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size()) {
    return Wrong(Shown(name) + " is " + Shown(text) + ", which is no number");
  }
  return value;
}

PrintedReport ParsePairs(const std::string& text) {
  PrintedReport report;
  size_t at = 0;
  while (at < text.size()) {
    const size_t begin = text.find_first_not_of(" \t", at);
    if (begin == std::string::npos) break;
    at = std::min(text.find_first_of(" \t", begin), text.size());
    const std::string pair = text.substr(begin, at - begin);
    const size_t equals = pair.find('=');
    if (equals == std::string::npos) {
      LeaveOut(report, Wrong(Shown(pair) + " is not name=value"));
      continue;
    }
    const std::string name = pair.substr(0, equals);
    if (!Take(report, name, Number(name, pair.substr(equals + 1)))) break;
  }
  return report;
}

// Python prints NaN and Infinity bare, which is no JSON: they are put in quotes.
std::string QuoteBareNumbers(const std::string& text) {
  std::string quoted;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      quoted += text[i++];
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      bool found = false;
      for (const char* word : {"NaN", "Infinity", "-Infinity"}) {
        if (text.compare(i, strlen(word), word) != 0) continue;
        quoted += "\"" + std::string(word) + "\"";
        i += strlen(word) - 1;
        found = true;
        break;
      }
      if (found) continue;
    }
    quoted += text[i];
  }
  return quoted;
}

PrintedReport ParseObject(const std::string& text) {
  nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (object.is_discarded()) {
    object = nlohmann::json::parse(QuoteBareNumbers(text), nullptr, false);
  }
  if (!object.is_object()) return Nothing("what follows `jizi` is no JSON object");
  PrintedReport report;
  for (const auto& [name, value] : object.items()) {
    StatusOr<double> number = Wrong(Shown(name) + " is no number");
    if (value.is_number()) {
      number = value.get<double>();
    } else if (value == "NaN" || value == "Infinity" || value == "-Infinity") {
      number = strtod(value.get<std::string>().c_str(), nullptr);
    }
    if (!Take(report, name, number)) break;
  }
  return report;
}

}  // namespace

PrintedReport ParsePrintedReport(const std::string& line) {
  const std::string text = line.size() > kPrefixBytes ? line.substr(kPrefixBytes) : "";
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return Nothing("the line is empty");
  PrintedReport report = text[first] == '{' ? ParseObject(text) : ParsePairs(text);
  const bool empty = report.measurement.metrics().empty();
  if (empty && !report.total_steps && report.left_out == 0) {
    return Nothing("the line names no metric");
  }
  if (report.step) report.measurement.set_step(*report.step);
  return report;
}

}  // namespace jizi::tuner
