#pragma once
// tried.h - which points of a space a study has tried already, kept in the Memo so that each trial
// is looked at once. A trial counts whatever became of it, also while queued or running; one that a
// person enqueued counts as the point that it equals. Threads: a value.   Cost: Update O(new
// trials); without a Memo O(trials).

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "schedulers/brute_force/used_numbers.h"
#include "schedulers/model/points.h"
#include "schedulers/scheduler.h"

namespace jizi::tuner {

class Tried {
 public:
  // The one in the Memo, brought up to date with the study, or a new one there. `points` is null
  // for a space without numbers.
  static Tried& Of(const Study& study, const Points* points, Memo& memo);

  bool Contains(const Points* points, const Params& params) const;
  void Add(const Points* points, const Params& params);
  void Remove(const Points* points, const Params& params);  // What the last Add of it added.

  const UsedNumbers& numbers() const { return numbers_; }
  // The Sobol point that follows the last one that a trial of the study stands for.
  int64_t next_sobol() const { return next_sobol_; }
  // How many of the study's trials a scheduler proposed: a person enqueued the others.
  int64_t proposed() const { return proposed_; }

 private:
  size_t trials_seen_ = 0;
  UsedNumbers numbers_;  // Where the points have numbers.
  std::unordered_set<uint64_t>
      hashes_;  // Where they have none: of their text. A clash only costs another draw.
  int64_t next_sobol_ = 0;
  int64_t proposed_ = 0;
};

// The tag of a trial that says which Sobol point it stands for.
inline constexpr char kSobolTag[] = "sobol";

}  // namespace jizi::tuner
