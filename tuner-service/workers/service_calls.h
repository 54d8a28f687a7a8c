#pragma once
// service_calls.h - a worker's calls to the service: each bounded, repeated with backoff while the
// service is away. Every call can be repeated (contract 12), so a repeat is always the same
// request. Fails: with the service's own answer at once; Unavailable when it stayed away until the
// deadline or the caller was told to stop. Threads: any.

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/status.h"
#include "proto/client.h"

namespace jizi::tuner {

inline constexpr std::chrono::milliseconds kWorkerCallDeadline{5000};
inline constexpr std::chrono::milliseconds kFirstBackoff{50};
inline constexpr std::chrono::milliseconds kLongestBackoff{1000};

// `pause(d)` waits that long and returns false when the caller should give up.
template <typename Request, typename Response>
StatusOr<Response> CallUntil(Client& client,
                             grpc::Status (v1::TuneService::Stub::*method)(grpc::ClientContext*,
                                                                           const Request&,
                                                                           Response*),
                             const Request& request, std::chrono::steady_clock::time_point deadline,
                             const std::function<bool(std::chrono::milliseconds)>& pause) {
  auto backoff = kFirstBackoff;
  for (;;) {
    StatusOr<Response> answer = client.Call(method, request, kWorkerCallDeadline);
    if (answer.ok() || !IsAway(answer.status())) return answer;
    if (std::chrono::steady_clock::now() + backoff >= deadline || !pause(backoff)) return answer;
    backoff = std::min(backoff * 2, kLongestBackoff);
  }
}

}  // namespace jizi::tuner
