#include "schedulers/settings.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "schedulers/model/text.h"

namespace jizi::tuner {
namespace {

Status Bad(const std::string& subject, const std::string& what, std::string mend) {
  return Error(StatusCode::kInvalidArgument, what, {"INVALID_SETTING", subject, std::move(mend)});
}

std::string Join(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : ", ") + word;
  return joined;
}

// What the method takes, for a person.
std::string Explain(const std::string& method, const std::vector<Setting>& known) {
  if (known.empty()) return "leave it out: method " + method + " has no settings";
  std::string text = "method " + method + " takes";
  for (const Setting& setting : known) {
    text += " " + setting.name + " (" +
            (setting.number ? setting.choices.front() : Join(setting.choices)) +
            "): " + setting.help + ";";
  }
  text.pop_back();
  return text;
}

// Lists and objects are not printed: they may be nested as deep as the text is long.
std::string Shown(const nlohmann::json& value) {
  if (value.is_string()) return Quoted(value.get<std::string>());
  return value.is_primitive() ? value.dump() : "a list or an object";
}

StatusOr<std::string> ParseNumber(const Setting& setting, const nlohmann::json& value) {
  const double number = value.is_number() ? value.get<double>() : std::nan("");
  if (number >= setting.number->min && number <= setting.number->max &&
      (!setting.number->whole || number == std::floor(number))) {
    return nlohmann::json(number).dump();
  }
  std::ostringstream range;
  range << (setting.number->whole ? "a whole number" : "a number") << " from "
        << setting.number->min << " to " << setting.number->max;
  return Bad(setting.name, "setting " + setting.name + " is " + Shown(value),
             "it takes " + range.str() + ": " + setting.help);
}

}  // namespace

StatusOr<std::map<std::string, std::string>> ParseSettings(const std::string& json,
                                                           const std::string& method,
                                                           const std::vector<Setting>& known) {
  // The parser reports faults as a value here, so nothing is thrown.
  const auto parsed = nlohmann::json::parse(json.empty() ? "{}" : json, nullptr, false);
  if (!parsed.is_object()) {
    return Bad("settings", "the settings of method " + method + " are no JSON object",
               "write {\"name\": value}, or {} for the defaults");
  }
  std::map<std::string, std::string> chosen;
  std::vector<std::string> names;
  for (const Setting& setting : known) {
    chosen[setting.name] = setting.choices.front();
    names.push_back(setting.name);
  }
  for (const auto& [key, value] : parsed.items()) {
    const auto setting = std::find_if(known.begin(), known.end(),
                                      [&name = key](const Setting& s) { return s.name == name; });
    if (setting == known.end()) {
      const auto nearest = Nearest(key, names);
      return Bad(key, "method " + method + " has no setting " + Quoted(key),
                 nearest ? "did you mean " + Quoted(*nearest) + "?" : Explain(method, known));
    }
    if (setting->number) {
      chosen[key] = TRY(ParseNumber(*setting, value));
      continue;
    }
    const std::string word = value.is_string() ? value.get<std::string>() : "";
    if (std::find(setting->choices.begin(), setting->choices.end(), word) ==
        setting->choices.end()) {
      const auto nearest = Nearest(word, setting->choices);
      return Bad(key, "setting " + key + " is " + Shown(value),
                 (nearest ? "did you mean " + Quoted(*nearest) + "? " : "") + "it takes one of " +
                     Join(setting->choices) + ": " + setting->help);
    }
    chosen[key] = word;
  }
  return chosen;
}

}  // namespace jizi::tuner
