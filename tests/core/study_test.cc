// What people ask of a study (docs/contracts.md, 15), and its first record.

#include <gtest/gtest.h>

#include "tests/core/machine.h"

namespace jizi::tuner::testing {
namespace {

TEST(CreateStudy, RefusesWhatValidateAndTheSchedulerRefuse) {
  const auto status = [](const StudySpec& spec) {
    return CreateStudy(1, spec, "id", Timestamp{}).status();
  };
  EXPECT_TRUE(status(SimpleSpec()).ok());
  StudySpec spec = SimpleSpec();
  spec.name = "";
  EXPECT_EQ(status(spec).code(), StatusCode::kInvalidArgument);
  spec = SimpleSpec();
  spec.method = "no such method";
  EXPECT_EQ(status(spec).code(), StatusCode::kUnimplemented);
  spec = SimpleSpec();
  spec.attributes["key"] = std::string(kMaxAttributeBytes + 1, 'x');
  EXPECT_FALSE(status(spec).ok());
}

TEST(SetState, PauseHandsOutNothingAndResumeGoesOn) {
  Machine m(SimpleSpec());
  const LeaseRef lease = m.Take("a");
  ASSERT_TRUE(m.Run(SetStateCommand{StudyState::kPaused}).ok());
  EXPECT_TRUE(m.Run(SetStateCommand{StudyState::kPaused})->events.empty());
  EXPECT_TRUE(std::holds_alternative<Wait>(m.Suggest("b")));
  EXPECT_EQ(m.Report(lease, 1, 0.5).directive, Directive(Continue{}));  // Running ones go on.
  ASSERT_TRUE(m.Run(SetStateCommand{StudyState::kActive}).ok());
  EXPECT_EQ(m.Take("b").trial, 2);
}

TEST(SetState, StopTellsEveryRunningTrialAlsoOneThatComesBack) {
  Machine m(SimpleSpec());
  const LeaseRef lost = m.Take("a");
  m.Advance(30);
  const LeaseRef lease = m.Take("b");
  m.Advance(31);
  ASSERT_TRUE(m.Run(TickCommand{}).ok());
  ASSERT_TRUE(m.Run(SetStateCommand{StudyState::kStopped}).ok());
  EXPECT_TRUE(std::holds_alternative<Stop>(m.Report(lease, 1, 0.5).directive));
  EXPECT_TRUE(std::holds_alternative<Finished>(m.Suggest("c")));  // The queue is not handed out.
  EXPECT_TRUE(std::holds_alternative<Stop>(m.Report(lost, 1, 0.5).directive));
  ASSERT_TRUE(m.Run(ReleaseCommand{lost, m.NextCall(lost), "stopped"}).ok());
  EXPECT_EQ(m.StateOf(1), TrialState::kStopped);
  EXPECT_EQ(CodeOf(m.Run(EnqueueCommand{AtX(0), ""}).status()), "STUDY_STOPPED");
  EXPECT_EQ(CodeOf(m.Run(RetryCommand{{}, ""}).status()), "STUDY_STOPPED");
  EXPECT_EQ(CodeOf(m.Run(SetStateCommand{StudyState::kPaused}).status()), "STUDY_STOPPED");
  ASSERT_TRUE(m.Run(SetStateCommand{StudyState::kActive}).ok());
  EXPECT_EQ(m.Take("c").trial, 3);
}

TEST(SetState, FinishedIsNotSetByHandAndNotLeftByHand) {
  StudySpec spec = SimpleSpec();
  spec.budget.run_cap = 1;
  Machine m(spec);
  EXPECT_EQ(CodeOf(m.Run(SetStateCommand{StudyState::kFinished}).status()), "BAD_STATE");
  const LeaseRef lease = m.Take("a");
  m.Report(lease, 1, 0.5);
  ASSERT_TRUE(m.Run(m.CompleteOf(lease)).ok());
  ASSERT_EQ(m.state.state, StudyState::kFinished);
  EXPECT_EQ(CodeOf(m.Run(SetStateCommand{StudyState::kActive}).status()), "STUDY_FINISHED");
  EXPECT_TRUE(m.Run(SetStateCommand{StudyState::kStopped})->events.empty());
}

TEST(Contract15, ARaisedRunCapLetsAFinishedStudyGoOn) {
  StudySpec spec = SimpleSpec();
  spec.budget.run_cap = 1;
  Machine m(spec);
  const LeaseRef lease = m.Take("a");
  m.Report(lease, 1, 0.5);
  ASSERT_TRUE(m.Run(m.CompleteOf(lease)).ok());
  ASSERT_TRUE(m.Run(ResumeCommand{spec, "same"}).ok());
  EXPECT_EQ(m.state.state, StudyState::kFinished);
  spec.budget.run_cap = 2;
  spec.retries.max_retries = 4;
  for (int delivery = 0; delivery < 2; ++delivery) {
    const auto outcome = m.Run(ResumeCommand{spec, "more"});
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome->events.empty(), delivery > 0);
  }
  EXPECT_EQ(m.state.state, StudyState::kActive);
  EXPECT_EQ(m.state.study.spec->retries.max_retries, 4);
  EXPECT_EQ(m.Take("a").trial, 2);
}

TEST(Contract15, AnyOtherDifferenceIsRefusedAndShownWithBothValues) {
  Machine m(SimpleSpec());
  const auto shown = [&](const StudySpec& spec, std::initializer_list<const char*> words) {
    const Status status = m.Run(ResumeCommand{spec, ""}).status();
    EXPECT_EQ(CodeOf(status), "STUDY_DIFFERS");
    for (const char* word : words) {
      EXPECT_NE(std::string(status.message()).find(word), std::string::npos)
          << word << " in " << status.message();
    }
  };
  StudySpec spec = SimpleSpec();
  spec.seed = 7;
  shown(spec, {"seed is 0 there and 7 here"});
  spec = SimpleSpec();
  spec.method = "grid";
  shown(spec, {"method is random there and grid here"});
  spec = SimpleSpec();
  spec.metrics[0] = {"accuracy", Goal::kMaximize, 0.9};
  shown(spec, {"minimize loss", "maximize accuracy to 0.9"});
  spec = SimpleSpec();
  spec.space.parameters[0].domain = NumericDomain{Uniform{0.5, 1, Scale::kLog}, 0, false};
  spec.space.parameters.push_back({"y", ConstantDomain{int64_t{3}}, {}});
  shown(spec, {"parameter 'x'", "uniform from 0.0 to 1.0", "log-uniform from 0.5", "'y'",
               "missing there and always 3 here"});
  spec = SimpleSpec();
  spec.objective = {ObjectiveKind::kMeanOfLast, 3};
  shown(spec, {"objective is last there and mean_of_last 3 here"});
  EXPECT_EQ(m.log.size(), 1u);
}

TEST(Enqueue, ParametersMustBeAPointOfTheSpace) {
  Machine m(SimpleSpec());
  for (const Params& params : {AtX(2), Params{}, Params{{"y", 0.5}}, Params{{"x", 0.5}, {"y", 0.5}},
                               Params{{"x", std::string("a")}}}) {
    const Status status = m.Run(EnqueueCommand{params, ""}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_FALSE(DetailOf(status).mend.empty());
  }
  ASSERT_TRUE(m.Run(EnqueueCommand{{{"x", int64_t{1}}}, ""}).ok());  // 1 is meant as 1.0.
  EXPECT_EQ(m.At(1).params, AtX(1));
}

TEST(Attributes, AreSetRemovedAndBounded) {
  Machine m(SimpleSpec());
  m.Take("a");
  for (const TrialId trial : {0, 1}) {
    ASSERT_TRUE(m.Run(SetAttributesCommand{trial, {{"a", "1"}, {"b", "2"}}, {}}).ok());
    ASSERT_TRUE(m.Run(SetAttributesCommand{trial, {{"b", "3"}}, {"a"}}).ok());
    EXPECT_TRUE(m.Run(SetAttributesCommand{trial, {{"b", "3"}}, {"a"}})->events.empty());
    const auto& attributes = trial == 0 ? m.state.study.spec->attributes : m.At(1).attributes;
    EXPECT_EQ(attributes, (std::map<std::string, std::string>{{"b", "3"}}));
    const std::string long_value(kMaxAttributeBytes + 1, 'x');
    EXPECT_EQ(CodeOf(m.Run(SetAttributesCommand{trial, {{"c", long_value}}, {}}).status()),
              "ATTRIBUTE_TOO_LONG");
    SetAttributesCommand many{trial, {}, {}};
    for (size_t i = 0; i < kMaxAttributes; ++i) many.set[std::to_string(i)] = "x";
    EXPECT_EQ(CodeOf(m.Run(many).status()), "TOO_MANY_ATTRIBUTES");
    // Together they go with every answer, and a page is at most 3 MiB.
    SetAttributesCommand large{trial, {}, {}};
    for (size_t i = 0; i < 17; ++i)
      large.set[std::to_string(i)] = std::string(kMaxAttributeBytes, 'x');
    EXPECT_EQ(CodeOf(m.Run(large).status()), "TOO_MANY_ATTRIBUTES");
  }
  EXPECT_EQ(CodeOf(m.Run(SetAttributesCommand{5, {}, {}}).status()), "TRIAL_NOT_FOUND");
}

}  // namespace
}  // namespace jizi::tuner::testing
