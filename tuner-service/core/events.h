#pragma once
// events.h - what has happened to a study. State is what follows from them, in order; replay never
// runs an algorithm again. What was decided is stored, not how: an event carries results (an
// objective, a directive), so that Apply only writes them down and store/ can fill its tables from
// the event alone. Threads: values.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tuner-service/core/commands.h"

namespace jizi::tuner {

using StudyId = int64_t;  // Never reused in a file.

struct StudyCreated {
  StudySpec spec;
  std::string request_id;
};
struct StudyResumed {  // Budgets and retries taken over from a new spec.
  Budget budget;
  RetryPolicy retries;
  std::string request_id;
};
struct StudyStateSet {
  StudyState state = StudyState::kActive;
  std::string why;
};
struct StudyDeleted {};
// A scheduler's answer was taken: these are its number, the log position it saw, and how many were
// asked for.
struct Decided {
  int64_t decision = 0;
  int64_t log_position = 0;
  int count = 0;
  Next next = Next::kMore;
  std::string why;
};
struct TrialCreated {  // Queued.
  TrialId trial = 0;
  int64_t decision = 0;  // 0: enqueued by a person; -1: the scheduler's answer to a change.
  Proposal proposal;
  std::string request_id;  // Of EnqueueTrial.
};
struct TrialAssigned {  // Queued -> Running: a new attempt.
  TrialId trial = 0;
  int attempt = 0;
  std::string worker;
  Token token{};
  Seconds lease{};
  std::optional<CheckpointRef>
      start;  // Counting measurements after its step (own checkpoint) no longer count.
};
struct AttemptReclaimed {  // An expired attempt came back before a successor was handed out: Queued
                           // -> Running.
  TrialId trial = 0;
  int attempt = 0;
};
struct AttemptAttached {
  TrialId trial = 0;
  int attempt = 0;
  std::optional<Capabilities> capabilities;
  std::optional<int64_t> total_steps;
};
struct MeasurementsReported {
  TrialId trial = 0;
  std::vector<Measurement> measurements;
  std::optional<int64_t> total_steps;
};
struct CheckpointRegistered {
  TrialId trial = 0;
  Checkpoint checkpoint;
};
struct TrialTold {  // A directive from the scheduler, or Stop from a stopped study; delivered with
                    // the next report.
  TrialId trial = 0;
  Directive directive;
};
struct DirectiveDelivered {  // A roll-back or change has been answered to the attempt.
  TrialId trial = 0;
  std::optional<int64_t> rolled_back_to;
};
struct AttemptEnded {
  TrialId trial = 0;
  int attempt = 0;
  AttemptEnd end = AttemptEnd::kFinished;
  std::string why;
  TrialState state = TrialState::kCompleted;  // Of the trial from now on.
  std::optional<double> objective;            // Of an ended trial.
  bool next_anew = false;                     // As in Attempt.
};
struct TrialRequeued {  // Failed or Paused -> Queued: a retry by hand, or a resume.
  TrialId trial = 0;
  std::string why;
  std::string request_id;
};
// RetryTrials of every failed trial, and none had: its repeat must not queue what failed since.
struct RetryFoundNone {
  std::string request_id;
};
struct AttributesSet {
  TrialId trial = 0;
  std::map<std::string, std::string> set;
  std::vector<std::string> remove;
};

// The recorded answer of a numbered call (contract 12), small enough to keep: trials by reference.
struct RecordedSuggestion {
  std::vector<std::pair<TrialId, int>> assigned;  // Trial, attempt.
  std::optional<Wait> wait;  // In older logs only: a Wait is no longer recorded.
  std::optional<Finished> finished;
};
struct RecordedReport {
  Directive directive;
  std::vector<Rejected> rejected;
};
struct RecordedDone {};
using RecordedReply = std::variant<RecordedSuggestion, RecordedReport, RecordedDone>;
struct CallAnswered {
  std::string worker;  // A Suggest's caller; empty for an attempt's call.
  TrialId trial = 0;
  int attempt = 0;
  CallNumber call;
  RecordedReply reply;
};

using Event =
    std::variant<StudyCreated, StudyResumed, StudyStateSet, StudyDeleted, Decided, TrialCreated,
                 TrialAssigned, AttemptReclaimed, AttemptAttached, MeasurementsReported,
                 CheckpointRegistered, TrialTold, DirectiveDelivered, AttemptEnded, TrialRequeued,
                 AttributesSet, CallAnswered, RetryFoundNone>;

// All that one command did: written together or not at all.
struct LogRecord {
  StudyId study = 0;
  int64_t position = 0;  // 1, 2, 3, ... in the study.
  Timestamp time;        // max(previous, wall clock).
  std::vector<Event> events;
};

}  // namespace jizi::tuner
