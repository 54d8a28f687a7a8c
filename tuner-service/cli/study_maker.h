#pragma once
// study_maker.h - from a sweep to its study: created, continued or joined, and its defaults
// enqueued once, however often that is repeated. Fails: what the service says; FailedPrecondition
// STUDY_DIFFERS when the one to join is another. Threads: from one thread.

#include <functional>
#include <string>

#include "base/status.h"
#include "proto/client.h"
#include "tuner-service/cli/sweep_file.h"

namespace jizi::tuner {

enum class Making {
  kNew,     // Refused where it exists (docs/contracts.md, 15).
  kResume,  // Created or continued.
  kJoin,    // Created or taken as it is: neither its budget nor a pause is touched.
};

// `note` hears what a person should know: defaults that came too late.
StatusOr<v1::Study> MakeStudy(Client& client, const Sweep& sweep, Making making,
                              const std::function<void(const std::string&)>& note);

}  // namespace jizi::tuner
