#pragma once
// call_size.h - about how much memory a call, or what it made, holds while it waits: the bound on
// queues is one of bytes too. Counts what a caller can make large (texts and lists), and a little
// for the rest. Threads: pure functions. Cost: linear in what is counted.

#include <cstddef>
#include <string>

#include "tuner-service/core/commands.h"
#include "tuner-service/core/events.h"

namespace jizi::tuner {

size_t BytesOf(const StudySpec& spec);
size_t BytesOf(const Command& command);
size_t BytesOf(const LogRecord& record);

}  // namespace jizi::tuner
