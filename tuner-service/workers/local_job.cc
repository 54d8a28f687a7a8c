#include "tuner-service/workers/local_job.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tuner-service/workers/host_fault.h"

namespace jizi::tuner {
namespace {

constexpr int kPortTries = 100;
constexpr int kChunksAtOnce = 4;  // So that one that prints gigabytes does not starve the others.
constexpr int kRestChunks = 32;   // More than a pipe holds.

Status CannotPipe(int error) {
  return HostFault(std::string("cannot make a pipe: ") + strerror(error), "", MendOfHost(error));
}

}  // namespace

std::map<std::string, std::string> RankVariables(const RankPlace& place) {
  std::map<std::string, std::string> variables;
  if (place.ranks < 2) return variables;
  variables["RANK"] = variables["LOCAL_RANK"] = std::to_string(place.rank);
  variables["WORLD_SIZE"] = variables["LOCAL_WORLD_SIZE"] = std::to_string(place.ranks);
  variables["GROUP_RANK"] = "0";
  variables["MASTER_ADDR"] = "127.0.0.1";
  variables["MASTER_PORT"] = std::to_string(place.master_port);
  return variables;
}

StatusOr<RankWriters> OpenPipes(JobRank& rank, int number, const std::string& output_mark) {
  const std::string suffix = number == 0 ? ".log" : "." + std::to_string(number) + ".log";
  int writers[2] = {-1, -1};
  for (int i = 0; i < 2; ++i) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      const Status failed = CannotPipe(errno);
      if (i == 1) close(writers[0]);
      return failed;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    rank.streams[i].pipe = ends[0];
    rank.streams[i].name = (i == 0 ? "stdout" : "stderr") + suffix;
    rank.streams[i].marks.Expect(output_mark);
    if (i == 1) rank.streams[i].lines = LineScanner("jizi: ");
    writers[i] = ends[1];
  }
  return RankWriters{.stdout_fd = writers[0], .stderr_fd = writers[1]};
}

void ClosePipes(JobRank& rank) {
  for (JobStream& stream : rank.streams) {
    if (stream.pipe >= 0) close(stream.pipe);
    stream.pipe = -1;
  }
}

namespace {

void OpenFile(const LocalJobState& job, JobStream& stream, const std::string& folder) {
  stream.folder = folder;
  stream.file.reset();  // Before the new one: it may be the same path.
  stream.file = std::make_unique<OutputFile>(folder + "/" + stream.name, job.output_cap_bytes);
}

// What comes from here on is another trial's, and so is a failure that it tells of.
void FollowMark(LocalJobState& job, JobStream& stream, int64_t trial) {
  const std::string folder = job.events.folder_of ? job.events.folder_of(trial) : "";
  if (folder.empty()) return;
  stream.marked = true;
  if (folder == stream.folder) return;
  stream.tail = {};
  OpenFile(job, stream, folder);
}

void TellSaid(LocalJobState& job, std::string line) {
  {
    MutexLock lock(job.mutex);
    if (job.silent) return;
  }
  if (job.events.on_said) job.events.on_said(std::move(line));
}

void TakeText(LocalJobState& job, JobStream& stream, std::string_view text) {
  if (stream.file) stream.file->Append(text);
  stream.tail.Append(text);
  if (&stream == &job.ranks[0].streams[0]) {
    stream.lines.Append(text, [&](std::string line) {
      if (!TellLine(job, std::move(line))) stream.held = true;
    });
  } else if (&stream == &job.ranks[0].streams[1]) {
    stream.lines.Append(text, [&](std::string line) { TellSaid(job, std::move(line)); });
  }
}

}  // namespace

void OpenFiles(LocalJobState& job) {
  for (JobRank& rank : job.ranks) {
    for (JobStream& stream : rank.streams) {
      if (!stream.marked) OpenFile(job, stream, job.folder);
    }
  }
}

void ReadStream(LocalJobState& job, JobStream& stream, std::vector<char>& chunk, Reading reading) {
  const int chunks = reading == Reading::kRest ? kRestChunks : kChunksAtOnce;
  for (int i = 0; i < chunks && stream.pipe >= 0; ++i) {
    const ssize_t got = read(stream.pipe, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;  // Nothing more for now.
    if (got == 0) {
      close(stream.pipe);
      stream.pipe = -1;
      return;
    }
    stream.marks.Append(
        std::string_view(chunk.data(), static_cast<size_t>(got)),
        [&](std::string_view text) { TakeText(job, stream, text); },
        [&](int64_t trial) { FollowMark(job, stream, trial); });
    if (stream.held && reading == Reading::kSome) return;
  }
}

void FinishStream(LocalJobState& job, JobStream& stream) {
  stream.marks.Finish([&](std::string_view text) { TakeText(job, stream, text); });
}

bool TellLine(LocalJobState& job, std::string line) {
  {
    MutexLock lock(job.mutex);
    if (job.silent) return true;
  }
  return !job.events.on_line || job.events.on_line(std::move(line));
}

JobEnd EndOf(const LocalJobState& job) {
  const int rank = job.failed_rank.value_or(0);
  const JobRank& ended = job.ranks[static_cast<size_t>(rank)];
  Status lost = job.lost;
  for (const JobRank& other : job.ranks) {
    if (lost.ok() && other.end->lost) lost = SupervisorGone();
  }
  return {.exit_code = ended.end->exit_code,
          .signal = ended.end->signal,
          .rank = rank,
          .lost = std::move(lost),
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
