#pragma once
// points.h - the points of a space that has only so many, by their number, conditions honoured: no
// list of them is ever made. Units: points count from 0 in the order of nested loops over the
// parameters as they stand in the space, the last one fastest; parameters that conditions tie
// together turn as one, at the place of the first of them. An inactive parameter takes no turn.
// Fails: Of is empty if a parameter is continuous or unbounded, or if conditions tie so many
// parameters together that counting takes more than kMaxConditionStates steps; the space must be
// valid. Threads: immutable; const methods are safe from any thread.   Cost: At and NumberOf
// O(parameters), and O(values) for each parent.

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "schedulers/model/discrete.h"
#include "schedulers/model/space.h"

namespace jizi::tuner {

inline constexpr int64_t kManyPoints = std::numeric_limits<int64_t>::max();
inline constexpr size_t kMaxConditionStates = 20'000;

class Points {
 public:
  static std::optional<Points> Of(const Space& space);

  int64_t count() const { return count_; }  // kManyPoints: that many or more.
  Params At(int64_t number) const;          // 0 <= number < count().
  // Empty if these are not a point of the space, or one beyond kManyPoints.
  std::optional<int64_t> NumberOf(const Params& params) const;

 private:
  // Neighbouring values of a parameter that mean the same to all conditions.
  struct Run {
    int64_t first = 0;
    int64_t count = 0;
    int kind = 0;  // The same kind satisfies the same conditions.
  };
  struct Requirement {
    size_t parent = 0;          // Place in the group.
    std::vector<bool> allowed;  // By the parent's kind.
  };
  struct Member {
    const ParameterSpec* parameter = nullptr;
    DiscreteDomain domain;
    std::vector<Run> runs = {};
    int kinds = 1;
    std::vector<int64_t> values_of_kind = {};
    std::vector<Requirement> requirements = {};
    size_t last_child = 0;  // Place of the last one that asks for this one; 0: nobody does.
  };
  // The kinds of the members so far that later ones still ask about; -1: absent, or no longer asked
  // about.
  using State = std::vector<int>;
  struct Group {
    std::vector<Member> members;
    std::vector<std::map<State, int64_t>>
        completions;  // By place: points of the members from there on.
    int64_t count = 0;
  };

  Points() = default;
  static bool IsActive(const Member& member, const State& state);
  static State After(const Group& group, size_t place, State state, int kind);
  static int64_t Count(Group& group, size_t place, const State& state, size_t& budget);
  static int64_t Completions(const Group& group, size_t place, const State& state);
  static void FindKinds(Group& group, const std::map<std::string, size_t>& places);
  static void PointAt(const Group& group, int64_t number, Params& params);
  // The number in the group, and how many of its parameters there are; empty if it is no point.
  static std::optional<int64_t> NumberIn(const Group& group, const Params& params, size_t& present);

  std::shared_ptr<const Space> space_;  // Members point into it.
  std::vector<Group> groups_;
  int64_t count_ = 0;
};

}  // namespace jizi::tuner
