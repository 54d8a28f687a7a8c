#pragma once
// limits.h - how much one request may carry and one answer may hold. Beyond them a request is
// refused with InvalidArgument that names the field and the limit; an answer ends its page early.

#include <cstddef>
#include <cstdint>

namespace jizi::tuner {

inline constexpr int kMaxRequestBytes = 16 << 20;  // One message on the wire; gRPC refuses more.
inline constexpr size_t kMaxPageBytes = 3 << 20;   // Of an answer: a standard client takes 4 MiB.
inline constexpr int kMaxPageSize = 1000;          // Studies or trials.
inline constexpr int kDefaultPageSize = 100;
inline constexpr int kMaxMeasurementsPerPage = 10'000;
inline constexpr int kDefaultMeasurementsPerPage = 1000;
inline constexpr size_t kListedCheckpoints = 10;  // Of a trial, the last ones, but for GetTrial.
inline constexpr size_t kCheckpointPageBytes = 1 << 20;  // In GetTrial's answer.
inline constexpr int kMaxStreams = 256;                  // docs/contracts.md, 14.
inline constexpr int kMaxBufferedChanges = 256;  // Of one stream, before it sends a snapshot.

inline constexpr size_t kMaxNameBytes = 256;  // Of a worker, metric, attribute, parameter.
inline constexpr size_t kMaxStudyNameBytes =
    16 << 10;  // Looked up only; what a study may be called is Validate's.
inline constexpr size_t kMaxRequestIdBytes = 128;
inline constexpr size_t kMaxTextBytes =
    64 << 10;  // An attribute's value, a parameter's text, a reason.
inline constexpr size_t kMaxSettingsBytes = 1 << 20;
inline constexpr int kMaxListed =
    1000;  // Parameters, values, conditions, metrics, attributes, leases in one message.
inline constexpr size_t kMaxPathBytes = 4096;

inline constexpr double kMinLease_s = 0.05;
inline constexpr double kMaxLease_s = 7 * 24 * 3600;
inline constexpr double kMaxWallClock_s = 1e9;  // 31 years: far from where clocks overflow.

}  // namespace jizi::tuner
