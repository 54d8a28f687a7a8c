#pragma once
// space_filling.h - what the methods with a model share: points that fill the space until there is
// a model, or where it cannot judge; no point of a finite space twice; and the answer to a
// Suggest as it is put together.
// Points are scrambled Sobol points, each marked by the tag "sobol"; after kRedraws of them that
// are all used, one of the unused points of a finite space.
// Fails: never.   Threads: SpaceFilling is immutable, an Answer belongs to one call.
// Cost: as sampling.h.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedulers/brute_force/tried.h"
#include "schedulers/model/points.h"
#include "schedulers/scheduler.h"

namespace jizi::tuner {

class SpaceFilling {
 public:
  explicit SpaceFilling(const Space& space);

  // The points by number, if the space has only so many.
  const Points* points() const { return points_ ? &*points_ : nullptr; }

  class Answer {
   public:
    // Takes the Tried out of the Memo.
    Answer(const SpaceFilling& filling, const Study& study, int count, Rng rng, Memo& memo);

    const Study& study() const { return study_; }
    Rng& rng() { return rng_; }
    bool IsUsed(const Params& params) const;
    // All that was asked for is there, or no unused point is left.
    bool IsFull() const;
    int missing() const { return count_ - static_cast<int>(decision_.start.size()); }
    void Take(Proposal proposal);
    // Fills up with space-filling points, which say this as their reason, and gives the answer.
    Decision Finish(const std::string& reason);

   private:
    Proposal NextPoint(const std::string& reason);

    const SpaceFilling& filling_;
    const Study& study_;
    int count_;
    Rng rng_;
    Tried& tried_;
    int64_t next_sobol_;
    Decision decision_;
    std::vector<Params> added_;
  };

 private:
  Space space_;
  std::optional<Points> points_;
  std::vector<int> sobol_dimension_;  // -1: none left, or it does not vary.
};

}  // namespace jizi::tuner
