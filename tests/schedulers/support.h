#pragma once
// support.h - what the tests of schedulers share: seeds that can be given back, spaces by hand and
// at random, studies that grow.

#include <cstdint>
#include <string>
#include <vector>

#include "schedulers/scheduler.h"

namespace jizi::tuner {

// JIZI_TEST_SEED, or 1. Tests derive all that is random from it and print it.
uint64_t TestSeed();

ParameterSpec Real(std::string name, double min, double max, Scale scale = Scale::kLinear,
                   double quantum = 0);
ParameterSpec Int(std::string name, double min, double max, double step = 1);
ParameterSpec Choice(std::string name, std::vector<ParamValue> values,
                     std::vector<double> probabilities = {});
ParameterSpec Fixed(std::string name, ParamValue value);
ParameterSpec When(ParameterSpec parameter, std::string parent, std::vector<ParamValue> any_of);

// A valid space with conditions. All parameters have few values where `finite`.
Space RandomSpace(Rng& rng, bool finite);

StudySpec SpecOf(Space space, std::string method, std::string settings = "{}", uint64_t seed = 7);
Study StudyOf(StudySpec spec);

// As the service does with a decision: trials in the given state, one after another.
void Accept(Study& study, const std::vector<Proposal>& proposals, int64_t decision,
            TrialState state = TrialState::kCompleted);
void Enqueue(Study& study, Params params);

// Every point by brute force: nested loops over the parameters.
std::vector<Params> AllPoints(const Space& space);

}  // namespace jizi::tuner
