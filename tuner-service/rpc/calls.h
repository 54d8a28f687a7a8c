#pragma once
// calls.h - each call's request as a command of the core, and the core's reply as the call's
// response. Randomness and time are arguments: fresh lease tokens, and the time of a measurement
// that carries none. Fails: as convert.h.   Threads: pure functions.

#include <functional>
#include <vector>

#include "base/status.h"
#include "jizi/v1/tune_service.pb.h"
#include "tuner-service/engine/engine.h"

namespace jizi::tuner {

// Fresh random tokens, as many as asked for.
using MakeTokens = std::function<std::vector<Token>(size_t)>;

StatusOr<SuggestCommand> FromWire(const v1::SuggestRequest& request, const MakeTokens& tokens);
StatusOr<AttachCommand> FromWire(const v1::AttachRequest& request);
StatusOr<ReportCommand> FromWire(const v1::ReportRequest& request, Timestamp now);
StatusOr<RegisterCheckpointCommand> FromWire(const v1::RegisterCheckpointRequest& request);
StatusOr<RenewCommand> FromWire(
    const v1::RenewRequest& request);  // At least one lease, all of one study.
StatusOr<ReleaseCommand> FromWire(const v1::ReleaseRequest& request);
StatusOr<CompleteCommand> FromWire(const v1::CompleteRequest& request, const MakeTokens& tokens,
                                   Timestamp now);
StatusOr<EnqueueCommand> FromWire(const v1::EnqueueTrialRequest& request);
StatusOr<RetryCommand> FromWire(const v1::RetryTrialsRequest& request);
StatusOr<SetStateCommand> FromWire(const v1::SetStudyStateRequest& request);
StatusOr<SetAttributesCommand> FromWire(const v1::SetAttributesRequest& request);

// `study` is needed for the leases that they carry.
void ToWire(const SuggestReply& reply, const std::string& study, v1::SuggestResponse* response);
void ToWire(const AttachReply& reply, const std::string& study, v1::AttachResponse* response);
void ToWire(const ReportReply& reply, v1::ReportResponse* response);
void ToWire(const RegisterCheckpointReply& reply, v1::RegisterCheckpointResponse* response);
void ToWire(const RenewReply& reply, v1::RenewResponse* response);
void ToWire(const CompleteReply& reply, const std::string& study, v1::CompleteResponse* response);
void ToWire(const EnqueueReply& reply, v1::EnqueueTrialResponse* response);
void ToWire(const RetryReply& reply, v1::RetryTrialsResponse* response);

// SHA-256 of the deterministic serialisation, cut to 16 bytes; sequence numbers and `catching_up`
// (a hint: the same report sent again from an outbox sets it) left out. Equal bodies have equal
// digests.
Digest DigestOf(const v1::SuggestRequest& request);
Digest DigestOf(const v1::ReportRequest& request);
Digest DigestOf(const v1::RegisterCheckpointRequest& request);
Digest DigestOf(const v1::ReleaseRequest& request);
Digest DigestOf(const v1::CompleteRequest& request);

// From the operating system's random source.
std::vector<Token> RandomTokens(size_t count);

}  // namespace jizi::tuner
