#include "tuner-service/cli/yaml_tree.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/utf8.h"
#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

Status YamlError(const std::string& name, int line, const std::string& what,
                 const std::string& mend) {
  return Error(StatusCode::kInvalidArgument,
               name + ":" + std::to_string(line) + ": " + what + "; " + mend,
               {"BAD_SWEEP_FILE", name, ""});
}

std::string TagName(const std::string& tag) {
  static constexpr char kCore[] = "tag:yaml.org,2002:";
  if (tag.rfind(kCore, 0) == 0) return tag.substr(std::strlen(kCore));
  return tag == "!" || tag == "?" ? "" : tag;
}

// The first line with a tab among the blanks before its text; 0 if there is none.
int LineWithTab(const std::string& text) {
  int line = 1;
  bool blank = true;
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      blank = true;
    } else if (blank && c == '\t') {
      return line;
    } else if (c != ' ') {
      blank = false;
    }
  }
  return 0;
}

class Converter {
 public:
  explicit Converter(const std::string& name) : name_(name) {}

  StatusOr<YamlNode> Convert(const YAML::Node& from, int line, int depth) {
    if (depth > kMaxYamlDepth) {
      return YamlError(
          name_, line, "lists and groups are nested too deeply",
          "at most " + std::to_string(kMaxYamlDepth) + " levels, and no alias of itself");
    }
    if (++nodes_ > kMaxYamlNodes) {
      return YamlError(name_, line, "the file is too large once its aliases are followed",
                       "at most " + std::to_string(kMaxYamlNodes) + " values");
    }
    YamlNode node;
    // yaml-cpp puts an empty value at the next token, which is lines away: the key's line is what a
    // person looks for.
    node.line = from.IsNull() || from.Mark().line < 0 ? line : from.Mark().line + 1;
    node.tag = TagName(from.Tag());
    switch (from.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return node;
      case YAML::NodeType::Scalar:
        node.kind = YamlKind::kScalar;
        node.text = from.Scalar();
        node.quoted = from.Tag() == "!";
        return node;
      case YAML::NodeType::Sequence:
        node.kind = YamlKind::kList;
        for (const auto& item : from)
          node.items.push_back(TRY(Convert(item, node.line, depth + 1)));
        return node;
      case YAML::NodeType::Map:
        node.kind = YamlKind::kMap;
        for (const auto& entry : from) {
          if (Status status = AddEntry(entry.first, entry.second, depth, node); !status.ok()) {
            return status;
          }
        }
        return Merged(std::move(node));
    }
    return node;
  }

 private:
  Status AddEntry(const YAML::Node& key, const YAML::Node& value, int depth, YamlNode& node) {
    YamlNode name = TRY(Convert(key, node.line, depth + 1));
    if (name.kind != YamlKind::kScalar) {
      return YamlError(name_, name.line, "a key is " + KindName(name), "keys are words");
    }
    if (const YamlNode* there = node.Find(name.text); there != nullptr && name.text != "<<") {
      return YamlError(
          name_, name.line, "`" + Shown(name.text) + "` stands here for the second time",
          "remove one of the two (the other is at line " + std::to_string(there->line) + ")");
    }
    const int line = name.line;
    node.entries.push_back({std::move(name), TRY(Convert(value, line, depth + 1))});
    return absl::OkStatus();
  }

  // YAML's merge key: `<<: *base` brings the keys that are not there yet.
  StatusOr<YamlNode> Merged(YamlNode node) {
    YamlNode merged = node;
    merged.entries.clear();
    std::vector<YamlNode> bases;
    for (auto& [key, value] : node.entries) {
      if (key.text != "<<" || key.quoted) {
        merged.entries.push_back({std::move(key), std::move(value)});
      } else if (value.kind == YamlKind::kList) {
        for (YamlNode& base : value.items) bases.push_back(std::move(base));
      } else {
        bases.push_back(std::move(value));
      }
    }
    for (YamlNode& base : bases) {
      if (base.kind != YamlKind::kMap) {
        return YamlError(name_, base.line, "`<<` wants a group of keys, this is " + KindName(base),
                         "give it an alias of one");
      }
      for (auto& [key, value] : base.entries) {
        if (merged.Find(key.text) == nullptr)
          merged.entries.push_back({std::move(key), std::move(value)});
      }
    }
    return merged;
  }

  const std::string& name_;
  size_t nodes_ = 0;
};

constexpr size_t kLongestNumber =
    64;  // Longer is text; it also keeps std::regex from recursing far.

// Compiled once: a pattern takes longer to compile than to match.
struct Patterns {
  std::regex hexadecimal{"0x[0-9a-fA-F]+"};
  std::regex binary{"0b[01]+"};
  std::regex octal{"0[0-7]+"};
  std::regex decimal{"0|[1-9][0-9]*"};
  std::regex infinity{"[-+]?\\.(inf|Inf|INF)"};
  std::regex nan{"\\.(nan|NaN|NAN)"};
  std::regex real{"[-+]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][-+]?[0-9]+)?"};
};
const Patterns& Known() {
  static const Patterns patterns;
  return patterns;
}

bool Matches(const std::string& text, const std::regex& pattern) {
  return std::regex_match(text, pattern);
}

// A cheap look first: most values are words.
bool MayBeNumber(const std::string& text) {
  const bool begins =
      !text.empty() && std::string("+-.0123456789").find(text[0]) != std::string::npos;
  return begins && text.size() <= kLongestNumber;
}

std::string WithoutUnderscores(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c != '_') plain += c;
  }
  return plain;
}

std::optional<bool> BoolOf(const std::string& text) {
  for (const char* word : {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}) {
    if (text == word) return true;
  }
  for (const char* word : {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}) {
    if (text == word) return false;
  }
  return std::nullopt;
}

std::optional<int64_t> IntOf(const std::string& written) {
  if (!MayBeNumber(written)) return std::nullopt;
  std::string text = WithoutUnderscores(written);
  const bool negative = text[0] == '-';
  if (negative || text[0] == '+') text.erase(0, 1);
  int base = 10;
  if (Matches(text, Known().hexadecimal)) {
    base = 16;
    text.erase(0, 2);
  } else if (Matches(text, Known().binary)) {
    base = 2;
    text.erase(0, 2);
  } else if (Matches(text, Known().octal)) {
    base = 8;
  } else if (!Matches(text, Known().decimal)) {
    return std::nullopt;
  }
  int64_t value = 0;
  if (negative) text.insert(0, "-");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Infinities and NaN as YAML writes them too: the caller refuses what is not finite.
std::optional<double> DoubleOf(const std::string& written) {
  if (!MayBeNumber(written)) return std::nullopt;
  std::string text = WithoutUnderscores(written);
  if (Matches(text, Known().infinity)) return text[0] == '-' ? -HUGE_VAL : HUGE_VAL;
  if (Matches(text, Known().nan)) return std::nan("");
  if (!Matches(text, Known().real)) return std::nullopt;
  if (text[0] == '+') text.erase(0, 1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    const bool tiny = text.find("e-") != std::string::npos || text.find("E-") != std::string::npos;
    return tiny ? 0.0 : (text[0] == '-' ? -HUGE_VAL : HUGE_VAL);
  }
  return value;
}

Status ValueError(const std::string& what, const std::string& mend) {
  return Error(StatusCode::kInvalidArgument, what, {"BAD_VALUE", "", mend});
}

StatusOr<YamlScalar> Finite(double value, const std::string& text) {
  if (!std::isfinite(value))
    return ValueError("`" + Shown(text) + "` is not finite", "give a finite number");
  return YamlScalar(value);
}

StatusOr<YamlScalar> TaggedScalar(const YamlNode& node) {
  const auto misfit = [&] {
    return ValueError("`" + Shown(node.text) + "` does not fit its tag !!" + node.tag,
                      "change one of them");
  };
  if (node.tag == "str") return YamlScalar(node.text);
  if (node.tag == "float") {
    const auto value = DoubleOf(node.text);
    if (value) return Finite(*value, node.text);
    return misfit();
  }
  if (node.tag == "int") {
    const auto value = IntOf(node.text);
    if (value) return YamlScalar(*value);
    return misfit();
  }
  if (node.tag == "bool") {
    const auto value = BoolOf(node.text);
    if (value) return YamlScalar(*value);
    return misfit();
  }
  if (node.tag == "null") return YamlScalar(std::monostate());
  return ValueError("the tag `" + Shown(node.tag) + "` is not known",
                    "!!float, !!int, !!bool, !!str and !!null are");
}

StatusOr<nlohmann::json> JsonOf(const YamlNode& node) {
  nlohmann::json json;
  switch (node.kind) {
    case YamlKind::kNull:
      return json;
    case YamlKind::kList:
      json = nlohmann::json::array();
      for (const YamlNode& item : node.items) json.push_back(TRY(JsonOf(item)));
      return json;
    case YamlKind::kMap:
      json = nlohmann::json::object();
      for (const auto& [key, value] : node.entries) json[key.text] = TRY(JsonOf(value));
      return json;
    case YamlKind::kScalar:
      break;
  }
  const YamlScalar scalar = TRY(ScalarOf(node));
  if (const auto* value = std::get_if<bool>(&scalar)) json = *value;
  if (const auto* value = std::get_if<int64_t>(&scalar)) json = *value;
  if (const auto* value = std::get_if<double>(&scalar)) json = *value;
  if (const auto* value = std::get_if<std::string>(&scalar)) json = *value;
  return json;
}

}  // namespace

const YamlNode* YamlNode::Find(const std::string& key) const {
  for (const auto& [name, value] : entries) {
    if (name.text == key) return &value;
  }
  return nullptr;
}

StatusOr<YamlNode> ReadYaml(const std::string& text, const std::string& name) {
  if (text.size() > kMaxYamlBytes) {
    return YamlError(name, 1, "the file has " + std::to_string(text.size()) + " bytes",
                     "a sweep file has at most " + std::to_string(kMaxYamlBytes));
  }
  if (const size_t bad = FirstBadUtf8(text); bad != std::string::npos) {
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(bad), '\n');
    return YamlError(name, static_cast<int>(line), "this is not UTF-8", "save the file as UTF-8");
  }
  static constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";
  const bool marked = text.rfind(kByteOrderMark, 0) == 0;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(marked ? text.substr(3) : text);
    if (documents.size() > 1) {
      return YamlError(name, std::max(1, documents[1].Mark().line + 1),
                       "a second document begins here", "put each sweep into a file of its own");
    }
    if (documents.empty()) return YamlNode();
    return Converter(name).Convert(documents.front(), 1, 0);
  } catch (const YAML::Exception& error) {
    if (const int tab = LineWithTab(text); tab > 0) {
      return YamlError(name, tab, "this line is indented with a tab",
                       "YAML takes spaces alone: put them in its place");
    }
    return YamlError(name, std::max(1, error.mark.line + 1), "this is not YAML: " + error.msg,
                     "mend the line, or the one before it");
  }
}

StatusOr<YamlScalar> ScalarOf(const YamlNode& node) {
  if (node.kind == YamlKind::kNull) return YamlScalar(std::monostate());
  if (!node.tag.empty()) return TaggedScalar(node);
  if (node.quoted) return YamlScalar(node.text);
  if (const auto value = BoolOf(node.text)) return YamlScalar(*value);
  if (const auto value = IntOf(node.text)) return YamlScalar(*value);
  if (const auto value = DoubleOf(node.text)) return Finite(*value, node.text);
  return YamlScalar(node.text);
}

StatusOr<ParamValue> ParamValueOf(const YamlNode& node) {
  if (node.kind != YamlKind::kScalar) {
    return ParamValue(JsonText{TRY(JsonOf(node)).dump()});
  }
  const YamlScalar scalar = TRY(ScalarOf(node));
  if (const auto* value = std::get_if<bool>(&scalar)) return ParamValue(*value);
  if (const auto* value = std::get_if<int64_t>(&scalar)) return ParamValue(*value);
  if (const auto* value = std::get_if<double>(&scalar)) return ParamValue(*value);
  if (const auto* value = std::get_if<std::string>(&scalar)) {
    if (value->find('\0') != std::string::npos) {
      return ValueError("a value holds a zero byte", "no program can be given one; take it out");
    }
    return ParamValue(*value);
  }
  return ParamValue(JsonText{"null"});
}

std::string KindName(const YamlNode& node) {
  if (node.kind == YamlKind::kNull) return "empty";
  if (node.kind == YamlKind::kList) return "a list";
  if (node.kind == YamlKind::kMap) return "a group of keys";
  const auto scalar = ScalarOf(node);
  if (!scalar.ok()) return "`" + Shown(node.text) + "`";
  if (std::holds_alternative<bool>(*scalar)) return "true or false";
  if (std::holds_alternative<std::string>(*scalar)) return "the text \"" + Shown(node.text) + "\"";
  return "the number " + Shown(node.text);
}

}  // namespace jizi::tuner
