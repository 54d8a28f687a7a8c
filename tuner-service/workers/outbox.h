#pragma once
// outbox.h - sends what a program could not: the file JIZI_OUTBOX (proto/outbox_file.h; contract
// 22). Reports that the service has already are passed over by their sequence, those of leases that
// are gone too.
// Fails: Deliver: as `report` does for an error that is no answer (Unavailable); the file is then
// kept.
// Threads: none; the program that wrote the file must have ended.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "jizi/v1/tune_service.pb.h"

namespace jizi::tuner {

struct HeldAttempt {
  v1::Assignment assignment;
  int64_t next_sequence = 1;
};

std::vector<HeldAttempt> HeldOf(const v1::AttachResponse& response);

using ReportCall = std::function<StatusOr<v1::ReportResponse>(const v1::ReportRequest&)>;

// Advances next_sequence of `held`, removes the file, returns the number of reports delivered.
StatusOr<int> DeliverOutbox(const std::string& path, std::vector<HeldAttempt>& held,
                            const ReportCall& report);

}  // namespace jizi::tuner
