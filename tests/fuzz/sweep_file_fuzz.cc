// sweep_file_fuzz.cc - any bytes as a sweep file: a sweep or faults with lines, never a crash; what
// is accepted is valid.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tuner-service/cli/sweep_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto sweep = jizi::tuner::ParseSweep(text, "fuzz.yaml");
  if (!sweep.ok()) {
    CHECK(sweep.status().message().find("fuzz.yaml:") != std::string::npos);
    return 0;
  }
  CHECK(jizi::tuner::Validate(sweep->study).ok());
  for (const auto& params : sweep->first_trials) {
    CHECK(jizi::tuner::Check(sweep->study.space, params).ok());
  }
  jizi::tuner::Rng rng({1});
  CHECK(jizi::tuner::Check(sweep->study.space, jizi::tuner::Sample(sweep->study.space, rng)).ok());
  return 0;
}
