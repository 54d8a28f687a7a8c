#pragma once
// noted_store.h - a store that says in plain words when it cannot be written, and when it can
// again. Calls that fail are tried again by those who made them, so that a full disk is no end of a
// run, but a person must hear of it: once, not with each try.
// Threads: as store.h; the note comes on the thread that appends.   Cost: none while all is well.

#include <functional>
#include <memory>
#include <string>

#include "tuner-service/store/store.h"

namespace jizi::tuner {

using StoreNote = std::function<void(const std::string&)>;

// "the disk is full ..." at the first failure, "... can be written again" once nothing has failed
// for kNotedCalm; the same trouble is told at most once in kNotedAgain.
inline constexpr std::chrono::seconds kNotedCalm{1};
inline constexpr std::chrono::seconds kNotedAgain{60};

std::unique_ptr<Store> MakeNotedStore(std::unique_ptr<Store> store, std::string database,
                                      StoreNote note);

}  // namespace jizi::tuner
