#pragma once
// draft.h - one command being decided: every event is applied as soon as it is decided, so that
// later steps of the same command see it. The rule that makes this safe: a command makes all of its
// refusals before its first Emit. Threads: none; lives for one Execute.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner-service/core/core.h"

namespace jizi::tuner {

// ---- apply.cc ----

// Writes one event into the state. Cannot fail on what a Draft or a log produced.
void ApplyEvent(StudyData& state, const Event& event, Timestamp time);

// ---- draft.cc ----

class Draft {
 public:
  Draft(StudyData& state, const Context& context) : state_(state), context_(context) {}

  const StudyData& state() const { return state_; }
  const Study& study() const { return state_.study; }
  const StudySpec& spec() const { return *state_.study.spec; }
  const Context& context() const { return context_; }
  const Trial& At(TrialId trial) const { return *state_.study.Find(trial); }
  const Cow<Trial>& Share(TrialId trial) const;

  void Emit(Event event);

  // Runs OnChange and does what it says. Its errors are kept for the log; the command goes on.
  void Changed(TrialId trial, const Change& change);

  // What is not stored.
  void StartLease(TrialId trial, Seconds length);
  void RenewLease(TrialId trial);                     // In full, from now.
  Seconds LeaseOf(TrialId trial, int attempt) const;  // 0 for an attempt that is over.
  std::optional<StudyData::Pending>& pending() { return state_.pending; }

  bool changed() const { return !events_.empty(); }
  // Ends the draft. The reply is for the caller, unless the outcome says that it is parked.
  Outcome Take(std::optional<Reply> reply);

 private:
  StudyData& state_;
  const Context& context_;
  std::vector<Event> events_;
  std::vector<Status> scheduler_errors_;
};

// Is this answer of the scheduler sane: points of the space, trials that exist, no more than asked
// for (count < 0: any)? Fails: Internal SCHEDULER_FAILED.
Status CheckDecision(const StudyData& state, const Decision& decision, int count);

// New trials (as far as budgets allow), resumes, directives. `number` as in TrialCreated.
void Enact(Draft& draft, const Decision& decision, int64_t number);

// Two directives for one trial: a Stop absorbs all, a Pause all but a Stop, changes are joined (the
// later value wins).
Directive Join(const Directive& first, const Directive& second);

// At most kMaxWhyBytes: head and tail, for the last lines of a program's errors matter most.
std::string Clip(const std::string& why);

// An error of the kind that every refusal here is.
Status Refuse(StatusCode kind, std::string code, std::string subject, const std::string& message,
              std::string mend);
std::string Named(TrialId trial);  // "trial 3"

// ---- decide_attach.cc: who holds what ----

enum class Standing {
  kHeld,       // The lease is live.
  kMayReturn,  // It expired, and nobody has the trial yet (docs/contracts.md, 9).
  kEnded,      // This attempt has ended.
};
// Fails: NotFound TRIAL_NOT_FOUND; FailedPrecondition LEASE_LOST for another token.
StatusOr<Standing> StandingOf(const StudyData& state, const LeaseRef& lease);

enum class Place { kNext, kRepeat };
enum class Gaps { kRefused, kAllowed };  // Allowed to workers: a Wait is not recorded.
// Fails: InvalidArgument SEQUENCE_INVALID, SEQUENCE_REUSED, SEQUENCE_GAP; FailedPrecondition
// STALE_SEQUENCE.
StatusOr<Place> PlaceOf(const LastCall* last, const CallNumber& call, const std::string& whose,
                        Gaps gaps = Gaps::kRefused);
const LastCall* LastCallOf(const StudyData& state, const LeaseRef& lease);
int64_t NextSequence(const LastCall* last);

// A numbered call of an attempt: the recorded answer if it is a repeat, or empty: go on.
// Fails: as both above; FailedPrecondition TRIAL_ENDED.
StatusOr<const RecordedReply*> Admit(const StudyData& state, const LeaseRef& lease,
                                     const CallNumber& call);
Status LeaseLost(const LeaseRef& lease);
Status TrialEnded(const Trial& trial);

// The call was admitted: takes the trial back if its lease had expired, and renews the lease.
void Hold(Draft& draft, const LeaseRef& lease);
bool HoldIfMine(Draft& draft,
                const LeaseRef& lease);  // False, and nothing done: it is not (any more).
Assigned AssignedOf(const Draft& draft, TrialId trial, int attempt);
// Attempts whose lease is over end here.
void ExpireLeases(Draft& draft);

// ---- decide_report.cc ----

// Stores what may be stored, tells the scheduler, and says what was rejected.
std::vector<Rejected> Record(Draft& draft, TrialId trial,
                             const std::vector<NewMeasurement>& measurements,
                             std::optional<int64_t> total_steps, bool catching_up);

// ---- decide_end.cc ----

// Ends the live attempt: the trial ends, waits or is tried again, by the rules for each end.
void EndAttempt(Draft& draft, TrialId trial, AttemptEnd end, std::string why, bool infeasible);

// ---- decide_suggest.cc ----

// Why no new trial will come; empty while the scheduler may be asked.
std::optional<std::string> NothingMore(const StudyData& state, Timestamp now);
// kFinished once nothing is live or queued and nothing more can come.
void FinishIfDone(Draft& draft);
bool MayCreate(const StudyData& state, Timestamp now);

// Every refusal of a Suggest, and nothing else. Empty: go on; else the recorded answer.
StatusOr<const RecordedReply*> AdmitSuggest(const StudyData& state, const SuggestCommand& command);
// The recorded answer again. A repeat is a sign of life too: leases that are still there are
// renewed.
SuggestReply Repeat(Draft& draft, const RecordedReply& recorded);
struct Suggested {
  std::optional<SuggestReply> reply;  // Empty: parked.
  std::optional<NeedDecision> need;
};
Suggested Serve(Draft& draft, const SuggestCommand& command);

// ---- resume.cc ----

// How the spec of a resume differs where it may not, for a person; empty if it does not.
std::string Differences(const StudySpec& stored, const StudySpec& given);

// ---- one each, decide_*.cc ----

StatusOr<Outcome> Decide(Draft& draft, const SuggestCommand& command);
StatusOr<Outcome> Decide(Draft& draft, const AttachCommand& command);
StatusOr<Outcome> Decide(Draft& draft, const ReportCommand& command);
StatusOr<Outcome> Decide(Draft& draft, const RegisterCheckpointCommand& command);
StatusOr<Outcome> Decide(Draft& draft, const RenewCommand& command);
StatusOr<Outcome> Decide(Draft& draft, const ReleaseCommand& command);
StatusOr<Outcome> Decide(Draft& draft, const CompleteCommand& command);
StatusOr<Outcome> Decide(Draft& draft, const EnqueueCommand& command);
StatusOr<Outcome> Decide(Draft& draft, const RetryCommand& command);
StatusOr<Outcome> Decide(Draft& draft, const SetStateCommand& command);
StatusOr<Outcome> Decide(Draft& draft, const SetAttributesCommand& command);
StatusOr<Outcome> Decide(Draft& draft, const ResumeCommand& command);
StatusOr<Outcome> Decide(Draft& draft, const AnswerCommand& command);
StatusOr<Outcome> Decide(Draft& draft, const TickCommand& command);
StatusOr<Outcome> Decide(Draft& draft, const LoadedCommand& command);

Status CheckId(const std::string& id, const std::string& what, bool may_be_empty);
Status CheckAttributes(const std::map<std::string, std::string>& attributes,
                       const std::string& subject);

}  // namespace jizi::tuner
