#pragma once
// scheduler.h - the one interface behind every method: what to try next, and what to say to a
// running trial. A scheduler is a pure function of the study and a random stream: no clock, file,
// thread or hidden state, so that restart, replay and a simulator are free. What it would hate to
// compute again goes into the Memo, which the engine owns and may drop at any call; the answer must
// be the same without it. Fails: Suggest and OnChange fail only for a bug (Internal); settings are
// judged by MakeScheduler. Threads: const; Suggest runs on a pool thread, OnChange on the engine
// thread, each with a Memo of its own. Cost: OnChange O(log n) in the number of trials with a warm
// Memo.

#include <any>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "schedulers/model/rng.h"
#include "schedulers/model/study.h"

namespace jizi::tuner {

struct Proposal {
  Params params;
  std::optional<CheckpointRef> warm_start;
  std::optional<TrialId> successor_of;
  std::map<std::string, std::string> tags;  // rung, bracket, member, probe
  std::string why;                          // One line for a person.
  bool operator==(const Proposal&) const = default;
};

// What follows when fewer than asked for were proposed. kMore: ask again at once. kWait: only a
// change of the study brings more.
enum class Next { kMore, kWait, kExhausted };

struct Decision {
  std::vector<Proposal> start;
  std::vector<TrialId> resume;  // Paused trials.
  std::map<TrialId, Directive> tell;
  Next next = Next::kMore;
  std::string why;  // With kWait and kExhausted: the reason.
  bool operator==(const Decision&) const = default;
};

struct Reported {
  Measurement measurement;
};
struct Ended {};  // The trial is Completed, Stopped, Infeasible or Failed for good, or Paused.
struct Lost {};   // The attempt's worker went silent; the trial is queued again.
using Change = std::variant<Reported, Ended, Lost>;

struct Memo {
  std::any value;
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // At most `count` proposals and resumes together.
  virtual StatusOr<Decision> Suggest(const Study& study, int count, Rng rng, Memo& memo) const = 0;

  // Once per measurement, in step order, and once per end or loss. The change is already part of
  // the study.
  virtual StatusOr<Decision> OnChange(const Study& study, TrialId trial, const Change& change,
                                      Rng rng, Memo& memo) const;
};

// The scheduler of spec.method with spec.settings_json, for a spec that has passed Validate.
// Fails: Unimplemented for a method that is not here (names those that are); InvalidArgument for a
// setting, with the nearest right name.
StatusOr<std::unique_ptr<Scheduler>> MakeScheduler(const StudySpec& spec);

// What MakeScheduler takes, in alphabetical order.
std::vector<std::string> SchedulerMethods();

}  // namespace jizi::tuner
