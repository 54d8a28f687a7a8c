#pragma once
// closing.h - the last lines of a run: the best trial or why there is none, where everything is,
// and the commands that go on from here, each as it can be pasted. Pure: messages and words are
// arguments.   Cost: linear.

#include <string>

#include "jizi/v1/tune_service.pb.h"

namespace jizi::tuner {

struct ClosingWords {
  std::string database;      // Empty on a server.
  std::string target_words;  // " --db x.db": for other commands on the same study.
  std::string how_to_go_on;  // The command for it.
};

// What came out so far: the best trial, or why there is none; the state and how many have ended.
std::string OutcomeText(const v1::Study& study, const v1::Trial* best, const v1::Trial* failed,
                        const std::string& target_words);

// The outcome and how to go on, each command on a line of its own however long: it is to be pasted.
// `best`: of a study that has one. `failed`: the last that failed, where every trial did. Else
// null.
std::string Closing(const v1::Study& study, const v1::Trial* best, const v1::Trial* failed,
                    const ClosingWords& words);

// Has every trial that ended failed?
bool AllFailed(const v1::Study& study);

}  // namespace jizi::tuner
