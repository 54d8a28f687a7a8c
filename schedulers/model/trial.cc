#include "schedulers/model/trial.h"

#include <algorithm>
#include <cmath>

namespace jizi::tuner {

const double* Find(const Measurement& measurement, const std::string& metric) {
  for (const Metric& one : measurement.metrics) {
    if (one.name == metric) return &one.value;
  }
  return nullptr;
}

bool operator==(const Measurement& a, const Measurement& b) {
  const auto same = [](const Metric& x, const Metric& y) {
    return x.name == y.name && (x.value == y.value || (std::isnan(x.value) && std::isnan(y.value)));
  };
  return a.attempt == b.attempt && a.rollback == b.rollback && a.step == b.step &&
         a.time == b.time && a.gradient == b.gradient &&
         std::equal(a.metrics.begin(), a.metrics.end(), b.metrics.begin(), b.metrics.end(), same);
}

std::optional<CheckpointRef> StartOf(const Trial& trial) {
  if (!trial.checkpoints.empty()) return CheckpointRef{trial.id, trial.checkpoints.back()};
  return trial.warm_start;
}

}  // namespace jizi::tuner
