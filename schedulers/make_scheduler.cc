#include "schedulers/bayes/bayes.h"
#include "schedulers/brute_force/grid.h"
#include "schedulers/brute_force/sampling.h"
#include "schedulers/model/text.h"
#include "schedulers/scheduler.h"
#include "schedulers/tpe/tpe.h"

namespace jizi::tuner {
namespace {

struct Method {
  const char* name;
  StatusOr<std::unique_ptr<Scheduler>> (*create)(const StudySpec& spec);
};

// In alphabetical order.
constexpr Method kMethods[] = {
    {"bayes", CreateBayes},
    {"grid", CreateGrid},
    {"random", CreateSampling},
    {"tpe", CreateTpe},
};

}  // namespace

StatusOr<std::unique_ptr<Scheduler>> MakeScheduler(const StudySpec& spec) {
  for (const Method& method : kMethods) {
    if (spec.method == method.name) return method.create(spec);
  }
  std::string known;
  for (const Method& method : kMethods)
    known += (known.empty() ? "" : ", ") + std::string(method.name);
  const auto nearest = Nearest(spec.method, SchedulerMethods());
  return Error(StatusCode::kUnimplemented,
               "there is no method " + Quoted(spec.method) + "; there are: " + known,
               {"METHOD_UNKNOWN", "method",
                nearest ? "did you mean " + *nearest + "?" : "use one of " + known});
}

std::vector<std::string> SchedulerMethods() {
  std::vector<std::string> names;
  for (const Method& method : kMethods) names.emplace_back(method.name);
  return names;
}

}  // namespace jizi::tuner
