#include "tuner-service/workers/outbox.h"

#include <unistd.h>

#include "proto/client.h"
#include "proto/outbox_file.h"

namespace jizi::tuner {
namespace {

bool SameLease(const v1::Lease& a, const v1::Lease& b) {
  return a.study() == b.study() && a.trial() == b.trial() && a.attempt() == b.attempt() &&
         a.token() == b.token();
}

}  // namespace

std::vector<HeldAttempt> HeldOf(const v1::AttachResponse& response) {
  std::vector<HeldAttempt> held;
  for (int i = 0; i < response.held_size(); ++i) {
    held.push_back({response.held(i),
                    i < response.next_sequence_size() ? response.next_sequence(i) : int64_t{1}});
  }
  return held;
}

StatusOr<int> DeliverOutbox(const std::string& path, std::vector<HeldAttempt>& held,
                            const ReportCall& report) {
  int delivered = 0;
  TRY(ForEachReport(path, [&](v1::ReportRequest request) -> Status {
    for (HeldAttempt& attempt : held) {
      if (!SameLease(request.lease(), attempt.assignment.lease()) ||
          request.sequence() < attempt.next_sequence) {
        continue;
      }
      // The next in turn may have been under way when the program died: its repeat must be the same
      // to the byte (contract 12). Behind a gap (a checkpoint's registration) none was ever sent.
      if (request.sequence() != attempt.next_sequence) {
        request.set_sequence(attempt.next_sequence);
        request.set_catching_up(true);
      }
      const StatusOr<v1::ReportResponse> answer = report(request);
      if (!answer.ok() && IsAway(answer.status())) return answer.status();  // Or told to stop.
      if (!answer.ok()) continue;  // Refused for what it says: the others may still count.
      ++attempt.next_sequence;
      ++delivered;
    }
    return {};
  }));
  unlink(path.c_str());
  return delivered;
}

}  // namespace jizi::tuner
