#pragma once
// words.h - the words that stand in the tables for states and ends, as docs/design.md spells them.
// Threads: pure functions.

#include "schedulers/model/study.h"
#include "schedulers/model/trial.h"

namespace jizi::tuner {

const char* Name(StudyState state);
const char* Name(TrialState state);
const char* Name(AttemptEnd end);

}  // namespace jizi::tuner
