#include "trial-helper/terminate.h"

#include <signal.h>

#include <atomic>

namespace jizi::helper {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> seen{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void OnTerminate(int) {
  seen.store(true, std::memory_order_relaxed);
}

}  // namespace

void NoticeTerminate() {
  struct sigaction present{};
  if (sigaction(SIGTERM, nullptr, &present) != 0) return;
  if ((present.sa_flags & SA_SIGINFO) != 0 || present.sa_handler != SIG_DFL) return;
  struct sigaction ours{};
  ours.sa_handler = OnTerminate;
  ours.sa_flags = SA_RESTART;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGTERM, &ours, nullptr);
}

bool TerminateSeen() {
  return seen.load(std::memory_order_relaxed);
}

}  // namespace jizi::helper
