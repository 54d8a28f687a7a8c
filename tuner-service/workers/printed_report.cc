#include "tuner-service/workers/printed_report.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

namespace jizi::tuner {
namespace {

constexpr size_t kPrefixBytes = 5;  // "jizi "
constexpr size_t kMaxMetrics = 1000;

Status Wrong(const std::string& what) {
  return Error(StatusCode::kInvalidArgument, "a printed report was left out: " + what,
               {"PRINTED_REPORT", "stdout", "print lines such as: jizi step=3 val_accuracy=0.91"});
}

// The wire carries nothing else. Dropping what is wrong and marking it differ in length.
bool IsUtf8(const std::string& text) {
  using Handler = nlohmann::json::error_handler_t;
  const nlohmann::json value(text);
  return value.dump(-1, ' ', false, Handler::ignore) ==
         value.dump(-1, ' ', false, Handler::replace);
}

Status Put(PrintedReport& report, const std::string& name, double value) {
  if (name == "step" || name == "total_steps") {
    if (!(value >= 0) || value > 9e15 || value != std::floor(value)) {
      return Wrong(name + " must be a whole number from 0 on");
    }
    (name == "step" ? report.step : report.total_steps) = static_cast<int64_t>(value);
    return {};
  }
  if (name.empty() || !IsUtf8(name)) return Wrong("a metric's name is empty or no UTF-8");
  if (report.measurement.metrics().size() >= kMaxMetrics) return Wrong("more than 1,000 metrics");
  (*report.measurement.mutable_metrics())[name] = value;
  return {};
}

StatusOr<double> Number(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const double value = strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return Wrong(name + " is '" + text + "', which is no number");
  return value;
}

StatusOr<PrintedReport> ParsePairs(const std::string& text) {
  PrintedReport report;
  size_t at = 0;
  while (at < text.size()) {
    const size_t begin = text.find_first_not_of(" \t", at);
    if (begin == std::string::npos) break;
    at = std::min(text.find_first_of(" \t", begin), text.size());
    const std::string pair = text.substr(begin, at - begin);
    const size_t equals = pair.find('=');
    if (equals == std::string::npos) return Wrong("'" + pair + "' is not name=value");
    const std::string name = pair.substr(0, equals);
    const double value = TRY(Number(name, pair.substr(equals + 1)));
    TRY(Put(report, name, value));
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

StatusOr<PrintedReport> ParseObject(const std::string& text) {
  nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (object.is_discarded()) {
    object = nlohmann::json::parse(QuoteBareNumbers(text), nullptr, false);
  }
  if (!object.is_object()) return Wrong("what follows `jizi` is no JSON object");
  PrintedReport report;
  for (const auto& [name, value] : object.items()) {
    if (value.is_number()) {
      TRY(Put(report, name, value.get<double>()));
    } else if (value == "NaN" || value == "Infinity" || value == "-Infinity") {
      TRY(Put(report, name, strtod(value.get<std::string>().c_str(), nullptr)));
    } else {
      return Wrong(name + " is no number");
    }
  }
  return report;
}

}  // namespace

StatusOr<PrintedReport> ParsePrintedReport(const std::string& line) {
  const std::string text = line.size() > kPrefixBytes ? line.substr(kPrefixBytes) : "";
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return Wrong("the line is empty");
  StatusOr<PrintedReport> report = text[first] == '{' ? ParseObject(text) : ParsePairs(text);
  if (!report.ok()) return report;
  if (report->measurement.metrics().empty() && !report->total_steps) {
    return Wrong("the line names no metric");
  }
  if (report->step) report->measurement.set_step(*report->step);
  return report;
}

}  // namespace jizi::tuner
