// docs/contracts.md, 11: what a refusal says, whatever it refuses.

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "tests/core/machine.h"

namespace jizi::tuner::testing {
namespace {

CompleteCommand Failed(CompleteCommand command) {
  command.outcome = FailedOutcome{"exit code 1"};
  return command;
}

// Commands that most states refuse for a reason of their own. `held` is a live lease, or was one.
std::vector<Command> BadCommands(Machine& m, const LeaseRef& held) {
  const LeaseRef stranger{held.trial, held.attempt, Token{9, 9}};
  const LeaseRef nowhere{999, 1, held.token};
  StudySpec other = SimpleSpec();
  other.seed += 1;
  SuggestCommand none = m.SuggestFor("w");
  none.count = 0;
  SuggestCommand brief = m.SuggestFor("w");
  brief.lease = Seconds(0);
  SuggestCommand nobody = m.SuggestFor("w");
  nobody.worker.clear();
  SuggestCommand numberless = m.SuggestFor("w");
  numberless.call.sequence = 0;
  ReportCommand gap = m.ReportOf(held, 1, 0.5);
  gap.call.sequence += 5;
  std::vector<Command> commands = {
      none,
      brief,
      nobody,
      numberless,
      gap,
      m.ReportOf(stranger, 1, 0.5),
      m.ReportOf(nowhere, 1, 0.5),
      m.CompleteOf(stranger),
      AttachCommand{stranger, "", std::nullopt, std::nullopt},
      ReleaseCommand{stranger, m.NextCall(stranger), "why"},
      RegisterCheckpointCommand{held, m.NextCall(held), Checkpoint{-1, "a", "", 1, 1}},
      EnqueueCommand{AtX(7), "e1"},
      EnqueueCommand{AtX(0.5), std::string(1000, 'x')},
      RetryCommand{{999}, "r1"},
      RetryCommand{{1}, "r2"},
      SetStateCommand{StudyState::kFinished},
      SetStateCommand{StudyState::kPaused},
      SetStateCommand{StudyState::kActive},
      SetAttributesCommand{999, {{"a", "b"}}, {}},
      SetAttributesCommand{0, {{"a", std::string(kMaxAttributeBytes + 1, 'x')}}, {}},
      SetAttributesCommand{0, {{"", "b"}}, {}},
      ResumeCommand{other, "z1"},
      AnswerCommand{77, 1, 1, Decision{}},
  };
  return commands;
}

struct Heard {
  std::set<std::string> codes;
  std::set<std::string> exhausted;  // Codes of RESOURCE_EXHAUSTED.
};

void Sweep(Machine& m, const LeaseRef& held, Heard& heard) {
  for (const Command& command : BadCommands(m, held)) {
    const StatusOr<Outcome> outcome = m.Run(command);
    if (outcome.ok()) continue;
    const ErrorDetail detail = DetailOf(outcome.status());
    EXPECT_NE(detail.code, "") << outcome.status();
    EXPECT_NE(detail.mend, "") << outcome.status();
    EXPECT_FALSE(outcome.status().message().empty());
    heard.codes.insert(detail.code);
    if (outcome.status().code() == StatusCode::kResourceExhausted) {
      heard.exhausted.insert(detail.code);
    }
  }
}

TEST(Contract11, EveryRefusalHasACodeAndAMend) {
  Heard heard;
  {
    Machine m(SimpleSpec());
    const LeaseRef held = m.Take("w");
    Sweep(m, held, heard);  // Active, or paused and back.
  }
  {
    Machine m(SimpleSpec());
    const LeaseRef held = m.Take("w");
    ASSERT_TRUE(m.Call(SetStateCommand{StudyState::kStopped}).ok());
    Sweep(m, held, heard);
  }
  {
    Machine m(SimpleSpec());
    const LeaseRef held = m.Take("w");
    ASSERT_TRUE(m.Call(Failed(m.CompleteOf(held))).ok());
    Sweep(m, held, heard);
  }
  for (const char* code :
       {"BAD_COUNT", "BAD_LEASE", "BAD_NAME", "SEQUENCE_INVALID", "SEQUENCE_GAP", "LEASE_LOST",
        "TRIAL_NOT_FOUND", "TRIAL_NOT_FAILED", "BAD_STATE", "ATTRIBUTE_TOO_LONG", "STUDY_DIFFERS",
        "STALE_DECISION", "STUDY_STOPPED"}) {
    EXPECT_TRUE(heard.codes.contains(code)) << code;
  }
}

TEST(Contract11, FinishedIsAnAnswerAndNeverResourceExhausted) {
  StudySpec spec = SimpleSpec();
  spec.budget.run_cap = 1;
  Machine m(spec);
  const LeaseRef held = m.Take("w");
  m.Report(held, 1, 0.5);
  ASSERT_TRUE(m.Call(m.CompleteOf(held)).ok());
  ASSERT_EQ(m.state.state, StudyState::kFinished);
  EXPECT_TRUE(std::holds_alternative<Finished>(m.Suggest("w")));
  EXPECT_TRUE(std::holds_alternative<Finished>(m.Suggest("another", 1000)));
  Heard heard;
  Sweep(m, held, heard);
  // Only what is too large for any state.
  EXPECT_EQ(heard.exhausted, std::set<std::string>{"ATTRIBUTE_TOO_LONG"});
  EXPECT_TRUE(heard.codes.contains("STUDY_FINISHED"));
}

}  // namespace
}  // namespace jizi::tuner::testing
