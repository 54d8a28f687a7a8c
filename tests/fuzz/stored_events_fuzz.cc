// Stored events from any bytes: decoding gives an event or an error, what decodes encodes to the
// same meaning, and nothing that is let through CheckFits can abort Apply or what is asked of the
// study afterwards. The first byte says how many measurement rows there are and the second how they
// look; the rest is a record.

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "tuner-service/core/core.h"
#include "tuner-service/store/record.h"

namespace jizi::tuner {
namespace {

EncodedRecord FromBytes(const uint8_t* data, size_t size) {
  EncodedRecord record;
  record.study = 1;
  record.position = 1;
  if (size < 2) return record;
  for (int i = 0; i < data[0] % 8; ++i) {
    record.rows.push_back({data[1] % 4, data[1] % 3, 0, i, "metric", data[1] / 2.0, i});
  }
  record.payload.assign(reinterpret_cast<const char*>(data) + 2, size - 2);
  return record;
}

// A study with a trial that is running, one that waits and one that was lost.
StudyData SomeState() {
  StudySpec spec;
  spec.name = "study";
  spec.space.parameters.push_back({"n", NumericDomain{Uniform{0, 8, Scale::kLinear}, 2, true}, {}});
  spec.metrics.push_back({"metric", Goal::kMinimize, 0.5});
  spec.objective = {ObjectiveKind::kMeanOfLast, 2};
  spec.method = "random";
  Proposal proposal;
  proposal.params = {{"n", int64_t{4}}};
  const Seconds lease(60);
  StudyData state;
  const LogRecord record{
      1,
      1,
      {},
      {StudyCreated{std::move(spec), "create"}, TrialCreated{1, 1, proposal, ""},
       TrialCreated{2, 1, proposal, ""}, TrialCreated{3, 0, proposal, "enqueue"},
       TrialAssigned{1, 1, "worker", {}, lease, {}}, TrialAssigned{3, 1, "other", {}, lease, {}},
       AttemptEnded{3, 1, AttemptEnd::kLost, "", TrialState::kQueued, {}}}};
  CHECK(CheckFits(StudyData(), record).ok());
  Apply(state, record);
  return state;
}

// What workers, people and the clock ask of any study.
std::vector<Command> SomeCommands(const StudyData& state) {
  SuggestCommand suggest;
  suggest.worker = "worker";
  const auto last = state.workers.find("worker");
  suggest.call.sequence = last == state.workers.end() ? 1 : last->second.call.sequence;
  suggest.call.digest = last == state.workers.end() ? Digest{} : last->second.call.digest;
  suggest.count = 3;
  suggest.tokens.resize(3);
  SuggestCommand next = suggest;
  ++next.call.sequence;
  std::vector<Command> commands = {LoadedCommand{}, suggest, next, TickCommand{}};
  for (TrialId trial = 1; trial <= 4; ++trial) {
    const LeaseRef lease{trial, 1, {}};
    ReportCommand report{lease, {1, {}}, {}, std::nullopt, true};
    report.measurements.push_back({1, {}, {{"metric", 0.25}}, std::nullopt});
    commands.push_back(AttachCommand{lease, "", Capabilities{true, true, true, {"n"}}, 9});
    commands.push_back(report);
    report.call.sequence = 2;
    commands.push_back(report);
    commands.push_back(RegisterCheckpointCommand{lease, {3, {}}, {1, "c", "", 1, 0}});
    commands.push_back(CompleteCommand{lease, {4, {}}, FinishedOutcome{}, {}, next});
  }
  commands.push_back(AttachCommand{std::nullopt, "worker", std::nullopt, std::nullopt});
  commands.push_back(EnqueueCommand{{{"n", int64_t{3}}}, ""});
  commands.push_back(EnqueueCommand{{{"n", 6.0}}, "enqueue"});
  commands.push_back(RetryCommand{{}, "retry"});
  commands.push_back(SetAttributesCommand{0, {{"a", "b"}}, {}});
  commands.push_back(SetStateCommand{StudyState::kStopped});
  commands.push_back(ResumeCommand{*state.study.spec, "resume"});
  return commands;
}

void Use(StudyData state) {
  const auto scheduler = MakeScheduler(*state.study.spec);
  if (!scheduler.ok()) return;  // As the engine does, which then does not serve the study.
  Memo memo;
  SteadyTime now{std::chrono::hours(1)};
  for (const Command& command : SomeCommands(state)) {
    now += std::chrono::seconds(20);
    const Context context{Timestamp(std::chrono::hours(500'000)), now, **scheduler, memo};
    const auto outcome = Execute(state, command, context);
    CHECK(outcome.ok() || outcome.status().code() != StatusCode::kInternal);
    NextDeadline(state, context);
    if (!outcome.ok() || !outcome->need) continue;
    Memo fresh;
    const Rng rng = Rng::ForSuggest(state.study.spec->seed, outcome->need->decision);
    const AnswerCommand answer{
        outcome->need->decision, outcome->need->log_position, outcome->need->count,
        (*scheduler)->Suggest(state.study, outcome->need->count, rng, fresh)};
    CHECK(Execute(state, answer, context).ok());
  }
}

void TryToApply(StudyData state, LogRecord record) {
  record.position = state.log_position + 1;
  if (!CheckFits(state, record).ok()) return;
  Apply(state, record);
  Use(std::move(state));
}

}  // namespace
}  // namespace jizi::tuner

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace jizi::tuner;
  EncodedRecord encoded = FromBytes(data, size);
  encoded.checksum = ChecksumOf(encoded);
  RecordDecoder decoder;
  const auto decoded = decoder.Decode(encoded);
  if (!decoded.ok()) return 0;
  // Fields of a newer version are lost; what is left must be stable.
  const EncodedRecord again = Encode(*decoded);
  const auto twice = decoder.Decode(again);
  CHECK(twice.ok());
  CHECK(Encode(*twice).checksum == again.checksum);
  TryToApply(StudyData(), *decoded);
  TryToApply(SomeState(), *decoded);
  return 0;
}
