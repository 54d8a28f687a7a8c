#include "tuner-service/cli/values.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tuner-service/cli/text.h"

namespace jizi::tuner {
namespace {

Status BadValue(const std::string& name, const std::string& what, const std::string& mend) {
  return Error(StatusCode::kInvalidArgument, what, {"BAD_PARAMETER", name, mend});
}

std::vector<std::string> NamesOf(const Space& space) {
  std::vector<std::string> names;
  for (const ParameterSpec& spec : space.parameters) names.push_back(spec.name);
  return names;
}

const ParameterSpec* FindSpec(const Space& space, const std::string& name) {
  for (const ParameterSpec& spec : space.parameters) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

std::optional<ParamValue> FromJson(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return std::nullopt;
  if (json.is_boolean()) return ParamValue(json.get<bool>());
  if (json.is_number_integer()) {
    const bool too_large = json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX;
    if (too_large) return std::nullopt;
    return ParamValue(json.get<int64_t>());
  }
  if (json.is_number_float()) {
    if (!std::isfinite(json.get<double>())) return std::nullopt;
    return ParamValue(json.get<double>());
  }
  if (json.is_string()) return ParamValue(json.get<std::string>());
  return ParamValue(JsonText{json.dump()});
}

bool Allows(const ParameterSpec& spec, const ParamValue& value) {
  ParameterSpec alone = spec;
  alone.when.clear();
  const Space space{{alone}};
  return Check(space, Coerce(space, {{spec.name, value}})).ok();
}

}  // namespace

StatusOr<Params> CompletePoint(const Space& space, const Params& given) {
  Params point = Coerce(space, given);
  Params before;
  for (const ParameterSpec& spec : space.parameters) {
    if (!IsActive(spec, before)) continue;
    const auto* constant = std::get_if<ConstantDomain>(&spec.domain);
    if (constant != nullptr) point.emplace(spec.name, constant->value);
    if (const auto there = point.find(spec.name); there != point.end()) before.insert(*there);
  }
  TRY(Check(space, point));
  return point;
}

StatusOr<Params> ParseAssignments(const Space& space, const std::vector<std::string>& assignments) {
  Params given;
  for (const std::string& assignment : assignments) {
    const size_t equals = assignment.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return BadValue(assignment, "`" + Shown(assignment) + "` is no NAME=VALUE",
                      "write for example lr=0.1");
    }
    const std::string name = assignment.substr(0, equals);
    const std::string text = assignment.substr(equals + 1);
    if (given.contains(name)) {
      return BadValue(name, "the parameter " + Shown(name) + " is given twice", "leave one out");
    }
    const ParameterSpec* spec = FindSpec(space, name);
    if (spec == nullptr) {
      return BadValue(name, "there is no parameter `" + Shown(name) + "`",
                      MendForName(name, NamesOf(space)));
    }
    std::optional<ParamValue> value;
    if (text == "True" || text == "False")
      value = ParamValue(text == "True");  // As programs get them.
    if (!value) value = FromJson(text);
    const bool fits = value && Allows(*spec, *value);
    // `name=3` for a choice of the texts "3" and "x": what is no other value of it may still be
    // text.
    given[name] = fits || (value && !Allows(*spec, ParamValue(text))) ? *value : ParamValue(text);
  }
  return CompletePoint(space, given);
}

}  // namespace jizi::tuner
