#pragma once
// terminate.h - notices SIGTERM, so that a trial can save a checkpoint before its worker kills it.
// Threads: any; the flag is for the whole process, as a signal is.

namespace jizi::helper {

// Installs the handler unless the program has one of its own (or ignores the signal).
void NoticeTerminate();
bool TerminateSeen();

}  // namespace jizi::helper
