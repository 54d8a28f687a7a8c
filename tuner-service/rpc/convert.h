#pragma once
// convert.h - wire messages to the domain's types and back. Wire messages stop here.
// Fails: InvalidArgument naming the field, what is wrong and the mend, for anything that the domain
// does not take: non-finite parameters, negative steps, unset oneofs, numbers out of range, lists
// and texts beyond limits.h. Never crashes on any bytes (fuzzed). Threads: pure functions.   Cost:
// linear in the message.

#include "base/status.h"
#include "jizi/v1/tune_service.pb.h"
#include "tuner-service/engine/engine.h"
#include "tuner-service/rpc/checks.h"

namespace jizi::tuner {

StatusOr<StudySpec> FromWire(const v1::StudySpec& spec);
StatusOr<Params> FromWire(const google::protobuf::Map<std::string, v1::Value>& params);
StatusOr<ParamValue> FromWire(const v1::Value& value, const Field& field);
StatusOr<Timestamp> FromWire(const google::protobuf::Timestamp& time, const Field& field);
StatusOr<std::map<std::string, std::string>> AttributesFromWire(
    const google::protobuf::Map<std::string, std::string>& attributes, const Field& field);
StatusOr<TrialState> FromWire(v1::TrialState state, const Field& field);

v1::StudySpec ToWire(const StudySpec& spec);
v1::Value ToWire(const ParamValue& value);
// Without measurements, and with the last kListedCheckpoints: this goes into lists and streams.
v1::Trial ToWire(const Trial& trial);
v1::Measurement ToWire(const Measurement& measurement);
v1::Checkpoint ToWire(const Checkpoint& checkpoint);
v1::WarmStart ToWire(const CheckpointRef& checkpoint);
v1::Study ToWire(const StudyView& view);
v1::Study WithoutSpec(const StudyView& view);
v1::Directive ToWire(const Directive& directive);

}  // namespace jizi::tuner
