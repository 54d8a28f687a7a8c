#pragma once
// requests.h - calls of the service that several commands need, with their pages put together.
// Fails: what the service says.   Threads: any.

#include <chrono>
#include <string>
#include <vector>

#include "proto/client.h"

namespace jizi::tuner {

inline constexpr std::chrono::milliseconds kCommandDeadline{30'000};

StatusOr<v1::Study> GetStudy(Client& client, const std::string& study);
StatusOr<std::vector<v1::Study>> AllStudies(Client& client);

// At most `limit` trials (0: all) of the request's filter and order.
StatusOr<std::vector<v1::Trial>> AllTrials(Client& client, v1::ListTrialsRequest request,
                                           int64_t limit);

// With all its measurements.
StatusOr<v1::Trial> WholeTrial(Client& client, const std::string& study, int64_t trial);

// Without its measurements but the last.
StatusOr<v1::Trial> TrialAlone(Client& client, const std::string& study, int64_t trial);

// 128 random bits in hex, for request ids and tokens.
std::string RandomHex(int bytes);

}  // namespace jizi::tuner
