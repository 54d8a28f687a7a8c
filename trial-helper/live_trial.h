#pragma once
// live_trial.h - a trial while its program works on it: parameters as they are now, what the
// service told, and the session that talks. Shared by Trial and the results of its reports.
// Threads: the program's, one at a time.

#include <sys/types.h>

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "trial-helper/jizi_trial_helper.h"
#include "trial-helper/outbox.h"
#include "trial-helper/resources.h"
#include "trial-helper/session.h"
#include "trial-helper/trial_source.h"

namespace jizi::helper {

// What outlives one trial: the way to the service.
struct Link {
  HelperOptions options;
  Environment env;
  std::unique_ptr<Client> client;  // Null without a service, and on ranks other than 0.
  std::unique_ptr<Outbox> outbox;
  pid_t process = 0;  // That made it: a forked child has no threads of ours.
  bool trial_lives = false;
  std::set<std::string> read_params;  // Asked for, by any of its trials.
  bool said_unread = false;
  bool unanswered = false;                // A trial could not be completed: take no other.
  std::unique_ptr<Session> left_running;  // Of a trial that an exception left.

  bool several_ranks() const { return env.world_size > 1; }
  bool talks() const { return env.rank == 0; }
  bool forked() const;
  // Rank 0's bytes become everyone's; by itself with one rank.
  std::string Broadcast(std::string bytes) const;
};

class LiveTrial {
 public:
  LiveTrial(std::shared_ptr<Link> link, Assigned assigned);

  // What a report's result shows; also what is told from now on.
  struct Shown {
    bool stop = false;
    bool pause = false;
    bool by_signal = false;
    Params set;
    int64_t roll_back_to = -1;
    std::string why;
  };
  // Sends a measurement (on rank 0). The number to wait for, 0 if it was not sent.
  int64_t Send(int64_t step, const Metrics& metrics,
               const std::optional<v1::GradientStatistics>& gradient);
  void PlanSteps(int64_t steps);
  // Takes what the service said since, and adds it to what is shown.
  void TakeInto(Shown& shown);
  // Several ranks: waits on rank 0 and tells the others.
  Shown Collective(int64_t report, Shown shown);
  void Complete();
  // Of a trial that ended well: which of its parameters did the program never ask for? Said once.
  void SayUnread() const;

  std::shared_ptr<Link> link;
  Assigned assigned;  // Parameters as they are now.
  std::unique_ptr<Session> session;
  bool left_by_signal = false;
  v1::CompleteRequest outcome;

 private:
  void Apply(const Shown& shown);
  v1::Measurement Fitting(int64_t step, const Metrics& metrics,
                          const std::optional<v1::GradientStatistics>& gradient);
  void LeaveOut(const std::string& what);  // Said once.

  ResourceMeter meter_;
  int64_t last_step_;
  bool said_step_ = false;
  std::optional<int64_t> total_steps_;  // Not yet sent.
  bool said_left_out_ = false;
  bool stop_ = false;
  bool pause_ = false;
  std::string stop_why_;
};

}  // namespace jizi::helper
