#include "tuner-service/cli/signals.h"

#include <ctime>

namespace jizi::tuner {

Signals::Signals() {
  sigemptyset(&set_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    // Linux keeps a blocked signal for sigtimedwait even if it is ignored.
    struct sigaction action{};
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    sigaddset(&set_, number);
  }
  pthread_sigmask(SIG_BLOCK, &set_, &before_);
}

Signals::~Signals() {
  // One more Ctrl-C as we end would kill what has its exit code already.
  while (Wait(std::chrono::milliseconds(0))) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> Signals::Wait(std::chrono::milliseconds timeout) {
  const timespec time = {static_cast<time_t>(timeout.count() / 1000),
                         static_cast<long>(timeout.count() % 1000) * 1'000'000};
  const int number = sigtimedwait(&set_, nullptr, &time);
  if (number < 0)
    return std::nullopt;  // The deadline, or EINTR of another signal: the caller loops.
  return number;
}

}  // namespace jizi::tuner
