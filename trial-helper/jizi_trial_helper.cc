#include "trial-helper/jizi_trial_helper.h"

#include <unistd.h>

#include <exception>
#include <stdexcept>

#include "base/utf8.h"
#include "trial-helper/checkpoint_file.h"
#include "trial-helper/exit_code.h"
#include "trial-helper/live_trial.h"
#include "trial-helper/output.h"
#include "trial-helper/params.h"
#include "trial-helper/terminate.h"
#include "trial-helper/trial_files.h"

namespace jizi {

using helper::Link;
using helper::LiveTrial;

// Far below what a request may hold; of a longer reason the service keeps the end.
static constexpr size_t kMaxWhyBytes = size_t{1} << 20;

struct Trial::State {
  std::shared_ptr<LiveTrial> live;
  int exceptions = std::uncaught_exceptions();
};

struct ReportResult::Answer {
  std::shared_ptr<LiveTrial> live;
  int64_t report = 0;  // To wait for; 0: not sent.
  bool settled = false;
  LiveTrial::Shown shown;

  const LiveTrial::Shown& Settle() {
    if (!std::exchange(settled, true) && live->session != nullptr && !live->link->forked()) {
      if (report > 0) {
        live->session->WaitForAnswer(
            report, std::chrono::duration<double>(live->link->options.report_wait_s));
      }
      live->TakeInto(shown);
    }
    return shown;
  }
};

ReportResult::ReportResult(std::shared_ptr<Answer> answer) : answer_(std::move(answer)) {}

bool ReportResult::should_stop() const {
  LiveTrial& live = *answer_->live;
  if (answer_->Settle().stop) return true;
  // With several ranks all must leave at the same step: only what was broadcast counts.
  if (live.link->several_ranks() || !helper::TerminateSeen()) return false;
  live.left_by_signal = true;
  answer_->shown.why = "this process is to end (SIGTERM)";
  return true;
}

bool ReportResult::should_pause() const {
  return answer_->Settle().pause;
}

std::vector<std::pair<std::string, std::string>> ReportResult::changes() const {
  std::vector<std::pair<std::string, std::string>> changes;
  for (const auto& [name, value] : answer_->Settle().set) {
    changes.emplace_back(name, ToJsonText(value));
  }
  return changes;
}

int64_t ReportResult::roll_back_to() const {
  return answer_->Settle().roll_back_to;
}

std::string ReportResult::why() const {
  return answer_->Settle().why;
}

Trial::Trial(std::unique_ptr<State> state) : state_(std::move(state)) {}

Trial::~Trial() {
  LiveTrial& live = *state_->live;
  live.link->trial_lives = false;
  // A forked child's buffers are copies, which would come twice.
  if (!live.link->forked()) helper::FlushOutput();
  if (live.session == nullptr) return;
  if (live.link->forked()) {
    // The thread and the locks are the parent's: leave them untouched.
    (void)live.session.release();
    return;
  }
  try {
    if (std::uncaught_exceptions() > state_->exceptions) {
      // A handler may go on with the next trial; otherwise the exit code tells the worker.
      live.link->left_running = std::move(live.session);
      return;
    }
    live.SayUnread();
    live.Complete();
    live.session.reset();
  } catch (const std::exception& error) {
    helper::SayLine(std::string("a trial's end was not sent: ") + error.what());
  }
}

template <typename T>
T Trial::Get(const std::string& name, T by_hand) const {
  const helper::Params& params = state_->live->assigned.params;
  state_->live->link->read_params.insert(name);
  const auto found = params.find(name);
  return found == params.end() ? std::move(by_hand) : helper::ValueAs<T>(name, found->second);
}
template double Trial::Get(const std::string&, double) const;
template float Trial::Get(const std::string&, float) const;
template int Trial::Get(const std::string&, int) const;
template int64_t Trial::Get(const std::string&, int64_t) const;
template bool Trial::Get(const std::string&, bool) const;
template std::string Trial::Get(const std::string&, std::string) const;

std::string Trial::Get(const std::string& name, const char* by_hand) const {
  return Get<std::string>(name, std::string(by_hand));
}

bool Trial::Has(const std::string& name) const {
  state_->live->link->read_params.insert(name);
  return state_->live->assigned.params.contains(name);
}
std::string Trial::ParamsJson() const {
  for (const auto& [name, value] : state_->live->assigned.params) {
    state_->live->link->read_params.insert(name);
  }
  return helper::ToJson(state_->live->assigned.params);
}
int64_t Trial::id() const {
  return state_->live->assigned.id;
}
std::string Trial::Directory() const {
  return state_->live->assigned.folder;
}
std::string Trial::WarmStart() const {
  return state_->live->assigned.warm_start;
}
int64_t Trial::StartStep() const {
  return state_->live->assigned.start_step;
}
void Trial::PlanSteps(int64_t total_steps) {
  state_->live->PlanSteps(total_steps);
}

ReportResult Trial::Report(int64_t step, const Metrics& metrics) {
  return ReportWith(step, metrics, nullptr);
}

ReportResult Trial::Report(int64_t step, const Metrics& metrics, double small_norm_squared,
                           double big_norm_squared, double small_batch, double big_batch) {
  const double gradient[] = {small_norm_squared, big_norm_squared, small_batch, big_batch};
  return ReportWith(step, metrics, gradient);
}

ReportResult Trial::ReportWith(int64_t step, const Metrics& metrics, const double* gradient) {
  std::optional<v1::GradientStatistics> statistics;
  if (gradient != nullptr) {
    statistics.emplace();
    statistics->set_small_batch_norm_squared(gradient[0]);
    statistics->set_big_batch_norm_squared(gradient[1]);
    statistics->set_small_batch_size(gradient[2]);
    statistics->set_big_batch_size(gradient[3]);
  }
  const auto answer = std::make_shared<ReportResult::Answer>();
  answer->live = state_->live;
  LiveTrial& live = *state_->live;
  // What came too late for the report before is obeyed here. Measured on a branch that was rolled
  // back meanwhile, this one does not count and is not sent.
  live.TakeInto(answer->shown);
  if (live.link->talks() && answer->shown.roll_back_to < 0) {
    answer->report = live.Send(step, metrics, statistics);
  }
  if (live.link->several_ranks()) {
    answer->shown = live.Collective(answer->report, std::move(answer->shown));
    answer->settled = true;
  }
  return ReportResult(answer);
}

bool Trial::Checkpoint(int64_t step, const std::function<void(const std::string&)>& writer) {
  LiveTrial& live = *state_->live;
  return Register(step, [&] {
    return helper::WriteCheckpoint(live.assigned.folder, step, live.assigned.attempt, writer);
  });
}

bool Trial::Checkpoint(int64_t step, const std::string& path) {
  LiveTrial& live = *state_->live;
  return Register(step, [&] { return helper::AdoptCheckpoint(live.assigned.folder, step, path); });
}

template <typename Make>
bool Trial::Register(int64_t step, const Make& make) {
  LiveTrial& live = *state_->live;
  bool written = false;
  if (live.link->talks()) {
    const StatusOr<v1::Checkpoint> checkpoint = make();
    written = checkpoint.ok();
    if (!written) {
      helper::SayLine("the checkpoint of step " + std::to_string(step) +
                      " was not saved: " + ForPeople(checkpoint.status()));
    } else if (live.session != nullptr && !live.link->forked()) {
      live.session->AddCheckpoint(*checkpoint);
    }
  }
  return live.link->Broadcast(written ? "1" : "0") == "1";
}

void Trial::Fail(const std::string& why) {
  state_->live->outcome.mutable_failed()->set_why(Utf8Text(why, kMaxWhyBytes));
}
void Trial::Infeasible(const std::string& why) {
  state_->live->outcome.mutable_infeasible()->set_why(Utf8Text(why, kMaxWhyBytes));
}

struct JiziTrialHelper::Impl {
  std::shared_ptr<Link> link;
  std::unique_ptr<helper::TrialSource> source;  // On rank 0.

  // A trial that an exception left, in a program that goes on.
  void FailLeftTrial() {
    if (link->left_running == nullptr) return;
    v1::CompleteRequest request;
    request.mutable_failed()->set_why("an exception left the trial");
    link->unanswered = !link->left_running->Complete(
        request, std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int64_t>(
                                                        link->options.flush_wait_s * 1000)));
    if (link->unanswered) helper::TellByExitCode();
    link->left_running.reset();
  }
};

JiziTrialHelper JiziTrialHelper::FromEnvironment(HelperOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->link = std::make_shared<Link>();
  Link& link = *impl->link;
  link.options = std::move(options);
  link.env = helper::ReadEnvironment();
  link.process = getpid();
  const helper::Environment& env = link.env;
  if (link.several_ranks() && !link.options.broadcast) {
    throw std::invalid_argument(
        "jizi: WORLD_SIZE is " + std::to_string(env.world_size) +
        ", and rank 0 alone talks to the service: give FromEnvironment a broadcast, in one line: "
        "options.broadcast = [&](std::string& bytes) { /* rank 0's bytes to every rank */ };");
  }
  if (!env.endpoint.empty()) {
    if (link.options.notice_sigterm) helper::NoticeTerminate();
    if (link.talks()) {
      auto client = Client::Connect(ClientOptionsFromEnvironment(env.endpoint));
      if (!client.ok()) throw std::invalid_argument(helper::WhyNotConnected(client.status()));
      link.client = *std::move(client);
      link.outbox = std::make_unique<helper::Outbox>(env.outbox);
    }
  } else if (link.talks()) {
    helper::SayLine(
        "run by hand, without a service: parameters are the program's own, checkpoints go to "
        "checkpoints/, and nothing is recorded");
  }
  v1::Capabilities capabilities;
  capabilities.set_stop(true);
  capabilities.set_pause(link.options.can_pause);
  capabilities.set_roll_back(link.options.can_roll_back);
  for (const std::string& name : link.options.changeable) capabilities.add_changeable(name);
  helper::TrialSource::Waits waits;
  waits.next = std::chrono::duration<double>(link.options.next_trial_wait_s);
  impl->source = std::make_unique<helper::TrialSource>(link.client.get(), env, capabilities, waits);
  return JiziTrialHelper(std::move(impl));
}

JiziTrialHelper::JiziTrialHelper(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JiziTrialHelper::JiziTrialHelper(JiziTrialHelper&&) noexcept = default;

JiziTrialHelper::~JiziTrialHelper() {
  if (impl_ == nullptr) return;
  Link& link = *impl_->link;
  if (link.forked()) {
    (void)link.left_running.release();
    (void)link.client.release();
    return;
  }
  // The worker ends that trial by the exit code; what waits is worth a moment.
  if (link.left_running != nullptr) {
    link.left_running->Flush(std::chrono::steady_clock::now() + std::chrono::seconds(3));
    link.left_running.reset();
  }
}

std::unique_ptr<Trial> JiziTrialHelper::NextTrial() {
  Link& link = *impl_->link;
  if (link.trial_lives) {
    throw std::logic_error("jizi: NextTrial while the former trial lives: let go of it first");
  }
  std::optional<helper::Assigned> assigned;
  if (link.talks() && !link.forked()) {
    impl_->FailLeftTrial();
    if (!link.unanswered) assigned = impl_->source->Next();
  }
  if (link.several_ranks()) {
    const std::string bytes = link.Broadcast(helper::Encode(assigned));
    if (!link.talks()) assigned = helper::DecodeAssigned(bytes);
  }
  if (!assigned) return nullptr;
  if (!link.forked()) {
    helper::FlushOutput();
    helper::MarkOutput(link.env.output_mark, assigned->id);
    if (link.talks() && assigned->id > 0) helper::KeepParams(*assigned);
  }
  auto state = std::make_unique<Trial::State>();
  state->live = std::make_shared<LiveTrial>(impl_->link, *std::move(assigned));
  link.trial_lives = true;
  return std::unique_ptr<Trial>(new Trial(std::move(state)));
}

}  // namespace jizi
