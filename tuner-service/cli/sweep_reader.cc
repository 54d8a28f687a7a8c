#include "tuner-service/cli/sweep_reader.h"

#include <algorithm>
#include <cmath>

#include "tuner-service/cli/text.h"

namespace jizi::tuner {

void Faults::Add(int line, const std::string& what, const std::string& mend) {
  faults_.emplace(line, what + (mend.empty() ? "" : "; " + mend));
}

void Faults::Add(int line, const std::string& where, const Status& status) {
  const std::string text = ForPeople(status);
  faults_.emplace(line, where.empty() ? text : where + ": " + text);
}

Status Faults::ToStatus() const {
  std::vector<std::string> lines;
  for (const auto& [line, text] : faults_) {
    lines.push_back(file_ + ":" + std::to_string(line) + ": " + text);
  }
  return Error(StatusCode::kInvalidArgument, Joined(lines, "\n"), {"BAD_SWEEP_FILE", file_, ""});
}

std::optional<double> SweepReader::Number(const YamlNode& node, const std::string& what) {
  if (node.kind == YamlKind::kScalar) {
    const auto scalar = ScalarOf(node);
    if (!scalar.ok()) {
      faults.Add(node.line, what, scalar.status());
      return std::nullopt;
    }
    if (const auto* value = std::get_if<int64_t>(&*scalar)) return static_cast<double>(*value);
    if (const auto* value = std::get_if<double>(&*scalar)) return *value;
  }
  faults.Add(node.line, what + " is " + KindName(node) + ", a number is needed",
             node.quoted ? "write it without quotes" : "write a number, such as 0.1 or 1e-5");
  return std::nullopt;
}

std::optional<int64_t> SweepReader::Integer(const YamlNode& node, const std::string& what,
                                            int64_t min, int64_t max) {
  const std::string mend = min == 0 || min == 1
                               ? "write a whole number from " + std::to_string(min) + " on"
                               : "write a whole number";
  std::optional<int64_t> integer;
  if (node.kind == YamlKind::kScalar) {
    const auto scalar = ScalarOf(node);
    if (!scalar.ok()) {
      faults.Add(node.line, what, scalar.status());
      return std::nullopt;
    }
    if (const auto* value = std::get_if<int64_t>(&*scalar)) integer = *value;
    if (const auto* value = std::get_if<double>(&*scalar);
        value != nullptr && *value == std::floor(*value) && std::abs(*value) < 9e15) {
      integer = static_cast<int64_t>(*value);  // 1e3 and 5.0 are whole numbers too.
    }
  }
  if (!integer) {
    faults.Add(node.line, what + " is " + KindName(node) + ", a whole number is needed", mend);
    return std::nullopt;
  }
  if (*integer < min || *integer > max) {
    faults.Add(node.line, what + " is " + std::to_string(*integer),
               "it may be " + std::to_string(min) + " to " + std::to_string(max));
    return std::nullopt;
  }
  return integer;
}

std::optional<bool> SweepReader::Bool(const YamlNode& node, const std::string& what) {
  const auto scalar = ScalarOf(node);
  if (node.kind == YamlKind::kScalar && scalar.ok()) {
    if (const auto* value = std::get_if<bool>(&*scalar)) return *value;
  }
  faults.Add(node.line, what + " is " + KindName(node), "write true or false");
  return std::nullopt;
}

std::optional<std::string> SweepReader::Text(const YamlNode& node, const std::string& what) {
  if (node.kind != YamlKind::kScalar || node.text.empty()) {
    faults.Add(node.line,
               what + " is " + (node.kind == YamlKind::kScalar ? "empty" : KindName(node)),
               "write one piece of text");
    return std::nullopt;
  }
  if (node.text.find('\0') != std::string::npos) {
    faults.Add(node.line, what + " holds a zero byte", "take it out");
    return std::nullopt;
  }
  return node.text;
}

std::optional<std::chrono::duration<double>> SweepReader::Duration(const YamlNode& node,
                                                                   const std::string& what) {
  const auto text = Text(node, what);
  if (!text) return std::nullopt;
  const auto duration = ParseDuration(*text);
  if (!duration.ok()) {
    faults.Add(node.line, what, duration.status());
    return std::nullopt;
  }
  return *duration;
}

std::optional<ParamValue> SweepReader::Value(const YamlNode& node, const std::string& what) {
  auto value = ParamValueOf(node);
  if (!value.ok()) {
    faults.Add(node.line, what, value.status());
    return std::nullopt;
  }
  return *std::move(value);
}

bool SweepReader::IsGroup(const YamlNode& node, const std::string& what,
                          const std::string& example) {
  if (node.kind == YamlKind::kMap) return true;
  faults.Add(node.line, what + " is " + KindName(node) + ", a group of keys is needed",
             "for example " + example);
  return false;
}

void SweepReader::OnlyKeys(const YamlNode& group, const std::string& where,
                           const std::vector<std::string>& names) {
  for (const auto& [key, value] : group.entries) {
    if (std::find(names.begin(), names.end(), key.text) != names.end()) continue;
    faults.Add(key.line, where + ": `" + Shown(key.text) + "` is not a key here",
               MendForName(key.text, names));
  }
}

}  // namespace jizi::tuner
