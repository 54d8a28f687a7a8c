#pragma once
// exit_code.h - the last word of a program whose trial did not finish while the service stayed
// away: exit code 0 would tell its worker that it finished. A program that ends with 0 after
// TellByExitCode ends with kExitNotFinished instead, once everything that runs at its end has run;
// any other end stays what it is.
// Fails: nothing. Threads: any. In a forked child it has no effect.

namespace jizi::helper {

inline constexpr int kExitNotFinished = 75;  // EX_TEMPFAIL of sysexits.h.

void TellByExitCode();

}  // namespace jizi::helper
