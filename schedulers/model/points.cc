#include "schedulers/model/points.h"

#include <algorithm>
#include <numeric>

namespace jizi::tuner {
namespace {

int64_t Plus(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kManyPoints : sum;
}
int64_t Times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kManyPoints : product;
}

// Parameters that conditions tie together share a root.
std::vector<size_t> RootsOf(const Space& space, const std::map<std::string, size_t>& index) {
  std::vector<size_t> root(space.parameters.size());
  std::iota(root.begin(), root.end(), size_t{0});
  const auto find = [&root](size_t i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  };
  for (size_t i = 0; i < root.size(); ++i) {
    for (const Condition& condition : space.parameters[i].when) {
      const size_t a = find(i);
      const size_t b = find(index.at(condition.parent));
      root[std::max(a, b)] = std::min(a, b);  // The first of them names the group.
    }
  }
  for (size_t i = 0; i < root.size(); ++i) root[i] = find(i);
  return root;
}

// The number of a value, quickly: conditions may name thousands of a list.
class ValueNumbers {
 public:
  ValueNumbers(const Domain& domain, const DiscreteDomain* discrete) : discrete_(discrete) {
    const auto* list = std::get_if<CategoricalDomain>(&domain);
    if (list == nullptr) return;
    for (const ParamValue& value : list->values) {
      listed_.emplace(value, static_cast<int64_t>(listed_.size()));
    }
  }
  std::optional<int64_t> Of(const ParamValue& value) const {
    if (listed_.empty()) return discrete_->NumberOf(value);
    const auto found = listed_.find(value);
    return found == listed_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  const DiscreteDomain* discrete_;
  std::map<ParamValue, int64_t> listed_;
};

}  // namespace

std::optional<Points> Points::Of(const Space& space) {
  Points points;
  points.space_ = std::make_shared<const Space>(space);
  const auto& parameters = points.space_->parameters;
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < parameters.size(); ++i) index[parameters[i].name] = i;
  const std::vector<size_t> roots = RootsOf(space, index);

  std::map<size_t, size_t> group_of;     // By root, in the order of the first member.
  std::map<std::string, size_t> places;  // In its group, by name.
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto domain = DiscreteDomain::Of(parameters[i].domain);
    if (!domain) return std::nullopt;
    const auto [at, is_new] = group_of.try_emplace(roots[i], points.groups_.size());
    if (is_new) points.groups_.emplace_back();
    auto& members = points.groups_[at->second].members;
    places[parameters[i].name] = members.size();
    members.push_back({.parameter = &parameters[i], .domain = *domain});
  }
  points.count_ = 1;
  size_t budget = kMaxConditionStates;
  for (Group& group : points.groups_) {
    FindKinds(group, places);
    group.completions.resize(group.members.size());
    group.count = Count(group, 0, State(group.members.size(), -1), budget);
    if (budget == 0) return std::nullopt;
    points.count_ = Times(points.count_, group.count);
  }
  return points;
}

void Points::FindKinds(Group& group, const std::map<std::string, size_t>& places) {
  auto& members = group.members;
  // Of each parent: which (child, condition) each value that is asked for satisfies.
  std::vector<std::map<int64_t, std::vector<bool>>> satisfied(members.size());
  std::vector<size_t> asked(members.size());
  std::vector<ValueNumbers> numbers;
  for (const Member& member : members) {
    numbers.emplace_back(member.parameter->domain, &member.domain);
  }
  for (size_t child = 0; child < members.size(); ++child) {
    for (const Condition& condition : members[child].parameter->when) {
      const size_t parent = places.at(condition.parent);
      members[parent].last_child = std::max(members[parent].last_child, child);
      for (const ParamValue& value : condition.any_of) {
        const auto number = numbers[parent].Of(value);
        if (!number) continue;
        auto& marks = satisfied[parent][*number];
        marks.resize(asked[parent] + 1);
        marks[asked[parent]] = true;
      }
      members[child].requirements.push_back({.parent = parent, .allowed = {}});
      ++asked[parent];
    }
  }
  std::vector<std::vector<std::vector<bool>>> marks_of_kind(members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    Member& member = members[i];
    std::map<std::vector<bool>, int> kinds = {{std::vector<bool>(asked[i]), 0}};
    int64_t next = 0;
    const auto add = [&member](int64_t first, int64_t count, int kind) {
      if (count > 0) member.runs.push_back({first, count, kind});
    };
    for (auto& [number, marks] : satisfied[i]) {
      marks.resize(asked[i]);
      add(next, number - next, 0);
      add(number, 1, kinds.try_emplace(marks, static_cast<int>(kinds.size())).first->second);
      next = number + 1;
    }
    add(next, member.domain.count() - next, 0);
    member.kinds = static_cast<int>(kinds.size());
    member.values_of_kind.resize(kinds.size());
    for (const Run& run : member.runs) {
      member.values_of_kind[static_cast<size_t>(run.kind)] += run.count;
    }
    marks_of_kind[i].resize(kinds.size());
    for (const auto& [marks, kind] : kinds) marks_of_kind[i][static_cast<size_t>(kind)] = marks;
  }
  std::vector<size_t> next_of(members.size());  // The order of `asked` again.
  for (Member& child : members) {
    for (Requirement& requirement : child.requirements) {
      const size_t mark = next_of[requirement.parent]++;
      for (const auto& marks : marks_of_kind[requirement.parent]) {
        requirement.allowed.push_back(marks[mark]);
      }
    }
  }
}

bool Points::IsActive(const Member& member, const State& state) {
  return std::all_of(member.requirements.begin(), member.requirements.end(),
                     [&state](const Requirement& requirement) {
                       const int kind = state[requirement.parent];
                       return kind >= 0 && requirement.allowed[static_cast<size_t>(kind)];
                     });
}

Points::State Points::After(const Group& group, size_t place, State state, int kind) {
  state[place] = kind;
  // Kinds that nobody asks about any more are forgotten, so that histories that differ only there
  // are one state.
  for (size_t i = 0; i <= place; ++i) {
    if (group.members[i].last_child <= place) state[i] = -1;
  }
  return state;
}

int64_t Points::Count(Group& group, size_t place, const State& state, size_t& budget) {
  if (place == group.members.size()) return 1;
  auto& known = group.completions[place];
  if (const auto found = known.find(state); found != known.end()) return found->second;
  if (budget == 0) return 0;
  --budget;
  const Member& member = group.members[place];
  int64_t count = 0;
  if (!IsActive(member, state)) {
    count = Count(group, place + 1, After(group, place, state, -1), budget);
  } else {
    for (int kind = 0; kind < member.kinds; ++kind) {
      const int64_t values = member.values_of_kind[static_cast<size_t>(kind)];
      if (values == 0) continue;
      const int64_t rest = Count(group, place + 1, After(group, place, state, kind), budget);
      count = Plus(count, Times(values, rest));
    }
  }
  known[state] = count;
  return count;
}

int64_t Points::Completions(const Group& group, size_t place, const State& state) {
  return place == group.members.size() ? 1 : group.completions[place].at(state);
}

void Points::PointAt(const Group& group, int64_t number, Params& params) {
  State state(group.members.size(), -1);
  for (size_t place = 0; place < group.members.size(); ++place) {
    const Member& member = group.members[place];
    if (!IsActive(member, state)) {
      state = After(group, place, std::move(state), -1);
      continue;
    }
    for (const Run& run : member.runs) {
      State after = After(group, place, state, run.kind);
      const int64_t rest = Completions(group, place + 1, after);
      const int64_t block = Times(run.count, rest);
      if (number < block) {
        params.emplace(member.parameter->name, member.domain.At(run.first + number / rest));
        number %= rest;
        state = std::move(after);
        break;
      }
      number -= block;
    }
  }
}

std::optional<int64_t> Points::NumberIn(const Group& group, const Params& params, size_t& present) {
  State state(group.members.size(), -1);
  int64_t number = 0;
  for (size_t place = 0; place < group.members.size(); ++place) {
    const Member& member = group.members[place];
    const auto found = params.find(member.parameter->name);
    const bool active = IsActive(member, state);
    if (active != (found != params.end())) return std::nullopt;
    if (!active) {
      state = After(group, place, std::move(state), -1);
      continue;
    }
    const auto value = member.domain.NumberOf(found->second);
    if (!value) return std::nullopt;
    ++present;
    for (const Run& run : member.runs) {
      State after = After(group, place, state, run.kind);
      const int64_t rest = Completions(group, place + 1, after);
      if (*value < run.first + run.count) {
        number = Plus(number, Times(*value - run.first, rest));
        state = std::move(after);
        break;
      }
      number = Plus(number, Times(run.count, rest));
    }
  }
  return number;
}

Params Points::At(int64_t number) const {
  CHECK(number >= 0 && number < count_);
  Params params;
  // The last group turns fastest: take its digit first.
  for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
    PointAt(*group, number % group->count, params);
    number /= group->count;
  }
  return params;
}

std::optional<int64_t> Points::NumberOf(const Params& params) const {
  int64_t number = 0;
  size_t present = 0;
  for (const Group& group : groups_) {
    const auto digit = NumberIn(group, params, present);
    if (!digit) return std::nullopt;
    number = Plus(Times(number, group.count), *digit);
    if (number == kManyPoints) return std::nullopt;
  }
  return present == params.size() ? std::optional(number) : std::nullopt;
}

}  // namespace jizi::tuner
