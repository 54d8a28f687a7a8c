#pragma once
// supervisor_child.h - the supervisor's own process: the loop behind supervisor.h, after the fork.
// One thread. Every process that it starts leads a session of its own, and everything that they
// start stays its descendant, because it is a child subreaper. Whose a descendant is it knows by
// session, group, or the entry JIZI_PROCESS=<tag>.<id> of its environment. One that has shed all
// three cannot be told from another's: it ends once no process runs, or with the supervisor, or, by
// the record that is kept in the lock's file (process_record.h), with the start of the next owner.
// A leader that has ended stays a zombie until its job is over, so that its pid names nobody else.
// Fails: a refused start is told to the parent. It returns never.

#include <sys/types.h>

#include <string>

namespace jizi::tuner {

inline constexpr char kSupervisorName[] = "jizi-supervisor";

// Entry of the environment by which processes of one supervisor, and of one job, are known.
inline constexpr char kProcessEntry[] = "JIZI_PROCESS=";
inline constexpr char kSupervisorEntry[] = "JIZI_SUPERVISOR=";

struct SupervisorSetup {
  int socket = -1;
  int lock = -1;  // Held by being open; the record goes into its file.
  std::string tag;
  mode_t program_umask = 077;  // Of the programs; the supervisor itself makes no file.
};

[[noreturn]] void RunSupervisor(const SupervisorSetup& setup);

}  // namespace jizi::tuner
