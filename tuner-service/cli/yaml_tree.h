#pragma once
// yaml_tree.h - YAML text as a plain tree that keeps what a judge of the file needs: lines, quotes
// and tags. Only yaml_tree.cc calls yaml-cpp, and catches what it throws. Fails: InvalidArgument
// with file and line for text that is no YAML, is no UTF-8, holds more than one document, or is
// over a limit. Threads: values.   Cost: linear in the tree after aliases are followed, which is
// bounded by kMaxYamlNodes.

#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "schedulers/model/params.h"

namespace jizi::tuner {

inline constexpr size_t kMaxYamlBytes =
    4u << 20;  // A sweep file with 1,000 parameters is under 100 KiB.
inline constexpr size_t kMaxYamlNodes = 200'000;  // Aliases of aliases grow exponentially.
inline constexpr int kMaxYamlDepth = 64;

enum class YamlKind { kNull, kScalar, kList, kMap };

struct YamlEntry;

struct YamlNode {
  YamlKind kind = YamlKind::kNull;
  int line = 1;         // From 1.
  std::string text;     // Of a scalar, as written (without quotes).
  bool quoted = false;  // Or a block scalar: never read as a number.
  std::string tag;      // "float" for !!float; empty if not tagged.
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;  // Keys are scalars; merge keys (<<) are resolved.

  const YamlNode* Find(const std::string& key) const;
};

struct YamlEntry {
  YamlNode key;
  YamlNode value;
};

// A leading byte-order mark and Windows line ends are taken as they come.
StatusOr<YamlNode> ReadYaml(const std::string& text, const std::string& name);

// A scalar with its type, by the rules of YAML 1.1 as Python reads it, but for 1e-5, which is a
// number here and text there. monostate: null. Fails: InvalidArgument for a tag that the text does
// not fit and for numbers that are not finite.
using YamlScalar = std::variant<std::monostate, bool, int64_t, double, std::string>;
StatusOr<YamlScalar> ScalarOf(const YamlNode& node);

// Any node as a parameter's value: lists, dictionaries and null become JSON text.
StatusOr<ParamValue> ParamValueOf(const YamlNode& node);

// What a person calls it: "text", "a number", "a list".
std::string KindName(const YamlNode& node);

}  // namespace jizi::tuner
