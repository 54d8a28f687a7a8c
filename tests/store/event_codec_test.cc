// Every event, with a different value in every field, comes back as it was.

#include "tuner-service/store/event_codec.h"

#include <gtest/gtest.h>

#include <limits>

#include "tuner-service/store/record.h"
#include "tuner-service/store/spec_codec.h"

namespace jizi::tuner {
namespace {

Timestamp At(int64_t microseconds) {
  return Timestamp(std::chrono::microseconds(microseconds));
}

template <size_t N>
std::array<uint8_t, N> Bytes(uint8_t first) {
  std::array<uint8_t, N> bytes{};
  for (size_t i = 0; i < N; ++i) bytes[i] = static_cast<uint8_t>(first + i);
  return bytes;
}

// There and back through a whole record.
template <typename T>
T Back(const T& event) {
  const LogRecord record{4, 9, At(77), {Event(event), Event(StudyDeleted{})}};
  RecordDecoder decoder;
  const StatusOr<LogRecord> decoded = decoder.Decode(Encode(record));
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  if (!decoded.ok() || decoded->events.size() != 2) return T();
  EXPECT_EQ(decoded->study, 4);
  EXPECT_EQ(decoded->position, 9);
  EXPECT_EQ(decoded->time, At(77));
  EXPECT_TRUE(std::holds_alternative<T>(decoded->events[0]));
  return std::get<T>(decoded->events[0]);
}

const Params kParams = {{"bool", true},
                        {"int", int64_t{-3}},
                        {"float", 2.5},
                        {"text", std::string("a\0b\xff", 4)},
                        {"json", JsonText{"[1,null]"}}};
const Checkpoint kCheckpoint{11, "checkpoints/11", "abc", 12, 13};

TEST(EventCodecTest, StudyCreated) {
  StudySpec spec;
  spec.name = "näme\n'\"";
  spec.space.parameters = {
      {"u", NumericDomain{Uniform{1, 2, Scale::kLog}, 0.25, false}, {}},
      {"i", NumericDomain{Uniform{3, 40, Scale::kInverseLog}, 2, true}, {}},
      {"n", NumericDomain{Normal{3, 4, true}, 0.5, false}, {}},
      {"b",
       NumericDomain{Beta{5, 6}, 0, false},
       {{"u", {1.5, std::string("x")}}, {"i", {int64_t{3}}}}},
      {"c",
       CategoricalDomain{{true, int64_t{1}, 1.0, std::string("1"), JsonText{"null"}},
                         {0.125, 0.125, 0.25, 0.25, 0.25}},
       {}},
      {"k", ConstantDomain{std::string("v")}, {}}};
  spec.metrics = {{"loss", Goal::kMaximize, -0.5}, {"other", Goal::kMinimize, std::nullopt}};
  spec.objective = {ObjectiveKind::kMeanOfLast, 7};
  spec.method = "random";
  spec.settings_json = R"({"a":1})";
  spec.seed = std::numeric_limits<uint64_t>::max();
  spec.budget = {8, Seconds(9.5)};
  spec.retries = {10, 11};
  spec.attributes = {{"a", "b"}, {"c", "d"}};
  const StudyCreated back = Back(StudyCreated{spec, "request"});
  EXPECT_EQ(back.spec, spec);
  EXPECT_EQ(back.request_id, "request");
  EXPECT_EQ(Back(StudyCreated{}).spec, StudySpec());
}

TEST(EventCodecTest, EventsOfTheStudy) {
  const StudyResumed resumed = Back(StudyResumed{{8, Seconds(9.5)}, {10, 11}, "request"});
  EXPECT_EQ(resumed.budget, (Budget{8, Seconds(9.5)}));
  EXPECT_EQ(resumed.retries, (RetryPolicy{10, 11}));
  EXPECT_EQ(resumed.request_id, "request");
  for (const StudyState state :
       {StudyState::kActive, StudyState::kPaused, StudyState::kStopped, StudyState::kFinished}) {
    const StudyStateSet set = Back(StudyStateSet{state, "why"});
    EXPECT_EQ(set.state, state);
    EXPECT_EQ(set.why, "why");
  }
  for (const Next next : {Next::kMore, Next::kWait, Next::kExhausted}) {
    const Decided decided = Back(Decided{1, 2, 3, next, "why"});
    EXPECT_EQ(std::tie(decided.decision, decided.log_position, decided.count, decided.why),
              std::make_tuple(1, 2, 3, "why"));
    EXPECT_EQ(decided.next, next);
  }
  const AttributesSet set = Back(AttributesSet{3, {{"a", "b"}}, {"c", "d"}});
  EXPECT_EQ(set.trial, 3);
  EXPECT_EQ(set.set, (std::map<std::string, std::string>{{"a", "b"}}));
  EXPECT_EQ(set.remove, (std::vector<std::string>{"c", "d"}));
}

TEST(EventCodecTest, EventsOfTrials) {
  const Proposal proposal{kParams, CheckpointRef{14, kCheckpoint}, 15, {{"rung", "2"}}, "why"};
  const TrialCreated created = Back(TrialCreated{1, -2, proposal, "request"});
  EXPECT_EQ(created.trial, 1);
  EXPECT_EQ(created.decision, -2);
  EXPECT_EQ(created.proposal, proposal);
  EXPECT_EQ(created.request_id, "request");
  EXPECT_EQ(Back(TrialCreated{1, 0, {}, ""}).proposal, Proposal());

  const TrialAssigned assigned = Back(
      TrialAssigned{1, 2, "worker", Bytes<16>(3), Seconds(4.5), CheckpointRef{5, kCheckpoint}});
  EXPECT_EQ(assigned.trial, 1);
  EXPECT_EQ(assigned.attempt, 2);
  EXPECT_EQ(assigned.worker, "worker");
  EXPECT_EQ(assigned.token, Bytes<16>(3));
  EXPECT_EQ(assigned.lease, Seconds(4.5));
  EXPECT_EQ(assigned.start, (CheckpointRef{5, kCheckpoint}));
  EXPECT_EQ(Back(TrialAssigned{}).start, std::nullopt);

  EXPECT_EQ(Back(AttemptReclaimed{1, 2}).attempt, 2);
  EXPECT_EQ(Back(AttemptReclaimed{1, 2}).trial, 1);
  for (const bool on : {true, false}) {
    const Capabilities capabilities{on, !on, on, {"lr"}};
    const AttemptAttached attached = Back(AttemptAttached{1, 2, capabilities, 3});
    EXPECT_EQ(attached.trial, 1);
    EXPECT_EQ(attached.attempt, 2);
    EXPECT_EQ(attached.capabilities, capabilities);
    EXPECT_EQ(attached.total_steps, 3);
  }
  EXPECT_EQ(Back(AttemptAttached{1, 2, {}, {}}).capabilities, std::nullopt);

  const CheckpointRegistered registered = Back(CheckpointRegistered{1, kCheckpoint});
  EXPECT_EQ(registered.trial, 1);
  EXPECT_EQ(registered.checkpoint, kCheckpoint);
  for (int end = 0; end <= static_cast<int>(AttemptEnd::kReleased); ++end) {
    const auto state = static_cast<TrialState>(end);
    const AttemptEnded ended =
        Back(AttemptEnded{1, 2, static_cast<AttemptEnd>(end), "why\xff", state, 0.5, true});
    EXPECT_EQ(ended.trial, 1);
    EXPECT_EQ(ended.attempt, 2);
    EXPECT_EQ(ended.end, static_cast<AttemptEnd>(end));
    EXPECT_EQ(ended.why, "why\xff");
    EXPECT_EQ(ended.state, state);
    EXPECT_EQ(ended.objective, 0.5);
    EXPECT_TRUE(ended.next_anew);
  }
  EXPECT_EQ(Back(AttemptEnded{}).objective, std::nullopt);
  EXPECT_FALSE(Back(AttemptEnded{}).next_anew);
  const TrialRequeued requeued = Back(TrialRequeued{1, "why", "request"});
  EXPECT_EQ(std::tie(requeued.trial, requeued.why, requeued.request_id),
            std::make_tuple(1, "why", "request"));
}

TEST(EventCodecTest, Directives) {
  for (const Directive& directive : {Directive(Continue{kParams, 5, "why"}), Directive(Continue{}),
                                     Directive(Pause{"p"}), Directive(Stop{"s"})}) {
    EXPECT_EQ(Back(TrialTold{3, directive}).directive, directive);
    EXPECT_EQ(Back(TrialTold{3, directive}).trial, 3);
  }
  EXPECT_EQ(Back(DirectiveDelivered{3, 4}).rolled_back_to, 4);
  EXPECT_EQ(Back(DirectiveDelivered{3, {}}).rolled_back_to, std::nullopt);
}

TEST(EventCodecTest, MeasurementsWithAndWithoutMetrics) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<Measurement> measurements = {
      {1, 2, 3, At(4), {{"a", 0.1}, {"b", nan}, {"c", infinity}, {"d", -infinity}}, {}},
      {1, 2, 3, At(5), {{"e", 1e300}}, GradientStatistics{6, 7, 8, 9}},  // The same step again.
      {1, 3, 4, At(6), {}, GradientStatistics{10, 11, 12, 13}},
      {1, 3, 5, At(7), {}, {}},
      {2, 0, 0, At(-8), {{"a", 5e-324}}, {}}};
  const MeasurementsReported back = Back(MeasurementsReported{9, measurements, 100});
  EXPECT_EQ(back.trial, 9);
  EXPECT_EQ(back.total_steps, 100);
  EXPECT_EQ(back.measurements, measurements);
  EXPECT_TRUE(Back(MeasurementsReported{9, {}, {}}).measurements.empty());
}

TEST(EventCodecTest, AnsweredCalls) {
  const auto reply = [](RecordedReply recorded) {
    const CallAnswered back =
        Back(CallAnswered{"worker", 1, 2, {3, Bytes<16>(4)}, std::move(recorded)});
    EXPECT_EQ(std::tie(back.worker, back.trial, back.attempt, back.call.sequence),
              std::make_tuple("worker", 1, 2, 3));
    EXPECT_EQ(back.call.digest, Bytes<16>(4));
    return back.reply;
  };
  const auto trials =
      std::get<RecordedSuggestion>(reply(RecordedSuggestion{{{1, 2}, {3, 4}}, {}, {}}));
  EXPECT_EQ(trials.assigned, (std::vector<std::pair<TrialId, int>>{{1, 2}, {3, 4}}));
  EXPECT_FALSE(trials.wait || trials.finished);
  const auto wait =
      std::get<RecordedSuggestion>(reply(RecordedSuggestion{{}, Wait{Seconds(1.5), "w"}, {}}));
  EXPECT_EQ(wait.wait.value().retry_after, Seconds(1.5));
  EXPECT_EQ(wait.wait.value().why, "w");
  const auto finished =
      std::get<RecordedSuggestion>(reply(RecordedSuggestion{{}, {}, Finished{"f"}}));
  EXPECT_EQ(finished.finished.value().why, "f");
  const auto report =
      std::get<RecordedReport>(reply(RecordedReport{Stop{"s"}, {{1, "bad"}, {2, "worse"}}}));
  EXPECT_EQ(report.directive, Directive(Stop{"s"}));
  EXPECT_EQ(report.rejected, (std::vector<Rejected>{{1, "bad"}, {2, "worse"}}));
  EXPECT_TRUE(std::holds_alternative<RecordedDone>(reply(RecordedDone{})));
}

TEST(EventCodecTest, WhatNoVersionWroteIsDataLoss) {
  const auto refused = [](const stored::Event& message) {
    EventReader reader({});
    const Status status = reader.Read(message).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
    EXPECT_EQ(DetailOf(status).code, "LOG_DAMAGED");
  };
  stored::Event event;
  refused(event);
  event.mutable_study_state_set()->set_state(5);
  refused(event);
  event.mutable_study_state_set()->set_state(0);
  refused(event);
  event.mutable_trial_assigned()->set_token("short");
  refused(event);
  event.mutable_trial_told();
  refused(event);
  event.mutable_call_answered()->set_digest(std::string(16, 'd'));
  refused(event);
  event.mutable_measurements_reported()->add_rows(1);
  refused(event);
  event.mutable_measurements_reported()->set_rows(0, 0);
  refused(event);
  event.mutable_trial_created()->add_params()->set_name("without a value");
  refused(event);
  event.mutable_study_created()->mutable_spec()->add_parameters();
  refused(event);
}

}  // namespace
}  // namespace jizi::tuner
