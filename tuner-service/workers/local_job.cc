#include "tuner-service/workers/local_job.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace jizi::tuner {
namespace {

constexpr int kPortTries = 100;

}  // namespace

JobEnd EndOf(const LocalJobState& job) {
  const int rank = job.failed_rank.value_or(0);
  const JobRank& ended = job.ranks[static_cast<size_t>(rank)];
  return {.exit_code = ended.end->exit_code,
          .signal = ended.end->signal,
          .rank = rank,
          .error_tail = ended.streams[1].tail.Text()};
}

bool LooksLikePortClash(const LocalJobState& job) {
  if (job.ranks.size() < 2 || !job.failed_rank) return false;
  return std::any_of(job.ranks.begin(), job.ranks.end(), [](const JobRank& rank) {
    const std::string text = rank.streams[1].tail.Text();
    return text.find("Address already in use") != std::string::npos ||
           text.find("EADDRINUSE") != std::string::npos;
  });
}

int FreePort(const std::vector<int>& taken) {
  for (int i = 0; i < kPortTries; ++i) {
    const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool bound = probe >= 0 &&
                       bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                       getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    if (probe >= 0) close(probe);
    const int port = ntohs(address.sin_port);
    if (bound && std::find(taken.begin(), taken.end(), port) == taken.end()) return port;
  }
  return 0;
}

}  // namespace jizi::tuner
