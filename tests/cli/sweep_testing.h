#pragma once
// sweep_testing.h - sweep files for tests: a whole file around what a test is about, read or
// refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tuner-service/cli/sweep_file.h"

namespace jizi::tuner {

// A whole file around `parameters`, so that a table holds what it is about.
inline std::string With(const std::string& parameters, const std::string& more = "") {
  return "program: train.py\nmethod: random\n" + more + "parameters:\n" + parameters;
}

inline Sweep Parsed(const std::string& text) {
  auto sweep = ParseSweep(text, "sweep.yaml");
  EXPECT_TRUE(sweep.ok()) << text << "\n" << ForPeople(sweep.status());
  return sweep.ok() ? *std::move(sweep) : Sweep();
}

inline std::string FaultOf(const std::string& text) {
  const auto sweep = ParseSweep(text, "sweep.yaml");
  EXPECT_FALSE(sweep.ok()) << text;
  EXPECT_EQ(sweep.status().code(), StatusCode::kInvalidArgument);
  return ForPeople(sweep.status());
}

}  // namespace jizi::tuner
