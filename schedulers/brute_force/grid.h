#pragma once
// grid.h - method grid: every point of the space once, in the order of points.h (nested loops, the
// last parameter fastest). Each suggestion is the first points that no trial stands for, so trials
// that a person enqueued count as the points that they equal, and kExhausted once all are used.
// Points that conditions make impossible are not counted. Fails: Create is InvalidArgument for a
// parameter with no grid, for a setting (there are none), and for conditions too entangled to
// count. Cost: O(new trials + count) with a warm Memo.

#include <memory>

#include "schedulers/scheduler.h"

namespace jizi::tuner {

StatusOr<std::unique_ptr<Scheduler>> CreateGrid(const StudySpec& spec);

}  // namespace jizi::tuner
