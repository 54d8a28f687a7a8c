#pragma once
// host_fault.h - what this machine could not do (no space, no descriptors, no process more): never
// the fault of the trial that it happened to. Unavailable HOST_FAULT: the trial is released with
// its budget and retries untouched, and the worker ends. Threads: values.

#include <cerrno>
#include <string>
#include <utility>

#include "base/status.h"

namespace jizi::tuner {

inline Status HostFault(const std::string& what, std::string subject, std::string mend) {
  return Error(StatusCode::kUnavailable, what, {"HOST_FAULT", std::move(subject), std::move(mend)});
}

// Errors that a program's name or mode cannot cause.
inline bool IsHostFault(int error) {
  switch (error) {
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case EROFS:
      return true;
    default:
      return false;
  }
}

inline std::string MendOfHost(int error) {
  switch (error) {
    case EAGAIN:
      return "raise `ulimit -u` or end other processes";
    case ENOMEM:
      return "free memory or use fewer workers";
    case EMFILE:
    case ENFILE:
      return "raise `ulimit -n` or use fewer workers";
    case ENOSPC:
    case EDQUOT:
      return "free some space";
    default:
      return "make the folder writable, or choose another";
  }
}

}  // namespace jizi::tuner
