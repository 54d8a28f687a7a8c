#include "trial-helper/trial_source.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/utf8.h"
#include "trial-helper/checkpoint_file.h"
#include "trial-helper/exit_code.h"
#include "trial-helper/params.h"
#include "trial-helper/terminate.h"

namespace jizi::helper {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kAttachDeadline = 5s;
constexpr std::chrono::milliseconds kSuggestDeadline = 30s;  // A model may be fitted for it.
constexpr duration<double> kBetweenTries{0.2};
constexpr size_t kMaxWhyBytes = 4096;
constexpr int kMaxGivenUp = 3;  // Trials in a row that could not start here.

SteadyTime After(duration<double> wait) {
  return steady_clock::now() + duration_cast<steady_clock::duration>(wait);
}

// False once the deadline has passed or the process is to end.
bool Sleep(duration<double> wait, SteadyTime deadline) {
  const SteadyTime until = After(wait);
  while (!TerminateSeen() && steady_clock::now() < deadline) {
    if (steady_clock::now() >= until) return true;
    std::this_thread::sleep_until(std::min({until, deadline, After(duration<double>(0.05))}));
  }
  return false;
}

// A path may hold any bytes, and JSON only UTF-8.
std::string Hex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    hex += {kDigits[value >> 4], kDigits[value & 15]};
  }
  return hex;
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

Params ParamsOf(const v1::Trial& trial) {
  return {trial.params().begin(), trial.params().end()};
}

}  // namespace

std::string Encode(const std::optional<Assigned>& assigned) {
  if (!assigned) return "null";
  return json{{"id", assigned->id},
              {"attempt", assigned->attempt},
              {"params", ToJson(assigned->params)},
              {"folder", Hex(assigned->folder)},
              {"warm_start", Hex(assigned->warm_start)},
              {"start_step", assigned->start_step},
              {"last_step", assigned->last_step}}
      .dump();
}

std::optional<Assigned> DecodeAssigned(const std::string& bytes) {
  const json parsed = json::parse(bytes);
  if (parsed.is_null()) return std::nullopt;
  Assigned assigned;
  assigned.id = parsed.at("id");
  assigned.attempt = parsed.at("attempt");
  assigned.params = ParseParams(parsed.at("params").get<std::string>());
  assigned.folder = FromHex(parsed.at("folder"));
  assigned.warm_start = FromHex(parsed.at("warm_start"));
  assigned.start_step = parsed.at("start_step");
  assigned.last_step = parsed.at("last_step");
  return assigned;
}

TrialSource::TrialSource(Client* client, const Environment& env, v1::Capabilities capabilities,
                         Waits waits)
    : client_(client), env_(env), capabilities_(std::move(capabilities)), waits_(waits) {}

std::optional<Assigned> TrialSource::Next() {
  if (client_ == nullptr) return ByHand();
  if (TerminateSeen()) return std::nullopt;
  const bool first = !std::exchange(first_done_, true);
  if (first && env_.lease) {
    std::optional<Assigned> assigned = First();
    if (assigned || env_.one_trial) return assigned;
  } else if (env_.one_trial && !first) {
    return std::nullopt;
  }
  return Suggested();
}

std::optional<Assigned> TrialSource::ByHand() {
  if (std::exchange(first_done_, true)) return std::nullopt;
  Assigned assigned;
  assigned.params = env_.params;
  assigned.folder = env_.trial_folder.empty() ? fs::current_path().string() : env_.trial_folder;
  assigned.warm_start = env_.warm_start;
  assigned.start_step = env_.warm_start_step;
  return assigned;
}

StatusOr<v1::AttachResponse> TrialSource::AttachTo(const v1::Lease& lease, SteadyTime deadline) {
  v1::AttachRequest request;
  *request.mutable_lease() = lease;
  request.set_worker(env_.worker);
  *request.mutable_capabilities() = capabilities_;
  while (true) {
    StatusOr<v1::AttachResponse> response =
        client_->Call(&v1::TuneService::Stub::Attach, request, kAttachDeadline);
    if (response.ok() || !MayComeBack(response.status())) return response;
    if (!Sleep(kBetweenTries, deadline)) return response;
  }
}

// The trial that the worker leased for this process.
std::optional<Assigned> TrialSource::First() {
  Assigned assigned;
  assigned.id = env_.lease->trial();
  assigned.attempt = env_.lease->attempt();
  assigned.folder =
      env_.trial_folder.empty() ? FolderOf(env_.trials_folder, assigned.id) : env_.trial_folder;
  assigned.params = env_.params;
  assigned.warm_start = env_.warm_start;
  assigned.start_step = env_.warm_start_step;
  Session::Options& session = assigned.session.emplace();
  session.lease = *env_.lease;
  session.worker = env_.worker;
  session.capabilities = capabilities_;

  const StatusOr<v1::AttachResponse> attached = AttachTo(*env_.lease, After(waits_.first));
  if (!attached.ok() && MayComeBack(attached.status())) {
    SayLine("the service is away (" + ForPeople(attached.status()) +
            "); the trial starts without it" +
            (assigned.warm_start.empty()
                 ? ""
                 : ", from " + assigned.warm_start + ", whose digest nobody could tell"));
    return assigned;
  }
  if (!attached.ok() || attached->held_size() != 1 || attached->next_sequence_size() != 1) {
    SayLine("trial " + std::to_string(assigned.id) + " is not this program's to run: " +
            (attached.ok() ? "the lease was lost" : ForPeople(attached.status())));
    return std::nullopt;
  }
  const v1::Assignment& held = attached->held(0);
  assigned.params = ParamsOf(held.trial());
  assigned.last_step = attached->last_step_size() == 1 ? attached->last_step(0) : -1;
  lease_s_ = held.lease_s();
  if (lease_s_ > 0) session.lease_s = lease_s_;
  session.next_sequence = attached->next_sequence(0);
  // The service knows the checkpoint's size and digest; the worker's word is its path alone.
  const std::string given = assigned.warm_start;
  assigned.warm_start.clear();
  assigned.start_step = 0;
  if (held.has_warm_start() && !Prepare(assigned, held.warm_start())) return std::nullopt;
  if (!given.empty() && fs::path(given).lexically_normal() != assigned.warm_start) {
    SayLine("trial " + std::to_string(assigned.id) + ": JIZI_WARM_START names " + given +
            ", but the service says " +
            (assigned.warm_start.empty() ? "that it starts fresh" : assigned.warm_start) +
            ": that counts");
  }
  return assigned;
}

// Next number of this worker's Suggest calls.
Status TrialSource::LearnSequence() {
  v1::AttachRequest request;
  request.mutable_lease()->set_study(env_.study);
  request.set_worker(env_.worker);
  worker_sequence_ = TRY(client_->Call(&v1::TuneService::Stub::Attach, request, kAttachDeadline))
                         .next_worker_sequence();
  return absl::OkStatus();
}

// Finds and checks the checkpoint to start from; a trial without it is failed here.
bool TrialSource::Prepare(Assigned& assigned, const v1::WarmStart& warm_start) {
  const std::string folder = warm_start.trial() == assigned.id || warm_start.trial() == 0
                                 ? assigned.folder
                                 : FolderOf(env_.trials_folder, warm_start.trial());
  const StatusOr<std::string> path = VerifyCheckpoint(folder, warm_start.checkpoint());
  if (path.ok()) {
    assigned.warm_start = *path;
    assigned.start_step = warm_start.checkpoint().step();
    return true;
  }
  GiveUp(assigned.session->lease, assigned.session->next_sequence.value_or(1),
         "it cannot start from its checkpoint on this worker: " + ForPeople(path.status()));
  return false;
}

void TrialSource::GiveUp(const v1::Lease& lease, int64_t sequence, const std::string& why) {
  SayLine("trial " + std::to_string(lease.trial()) + " failed: " + why);
  v1::CompleteRequest request;
  *request.mutable_lease() = lease;
  request.set_sequence(sequence);
  request.mutable_failed()->set_why(Utf8Text(why, kMaxWhyBytes));  // It may hold a path.
  const auto response = client_->Call(&v1::TuneService::Stub::Complete, request, kAttachDeadline);
  if (response.ok()) return;
  SayLine(ForPeople(response.status()));
  if (MayComeBack(response.status()))
    TellByExitCode();  // Its worker must not take it for finished.
}

StatusOr<v1::SuggestResponse> TrialSource::Suggest() {
  if (!worker_sequence_) TRY(LearnSequence());
  v1::SuggestRequest request;
  request.set_study(env_.study);
  request.set_worker(env_.worker);
  request.set_sequence(*worker_sequence_);
  request.set_count(1);
  request.set_lease_s(lease_s_);
  StatusOr<v1::SuggestResponse> answer =
      client_->Call(&v1::TuneService::Stub::Suggest, request, kSuggestDeadline);
  if (answer.ok()) {
    ++*worker_sequence_;
  } else if (!MayComeBack(answer.status())) {
    worker_sequence_.reset();  // Perhaps the number was another's: ask where it stands.
  }
  return answer;
}

std::optional<Assigned> TrialSource::Accept(const v1::Assignment& assignment) {
  Assigned assigned;
  assigned.id = assignment.trial().id();
  assigned.attempt = assignment.lease().attempt();
  assigned.params = ParamsOf(assignment.trial());
  assigned.folder = FolderOf(env_.trials_folder, assigned.id);
  Session::Options& session = assigned.session.emplace();
  session.lease = assignment.lease();
  session.worker = env_.worker;
  session.capabilities = capabilities_;
  if (assignment.lease_s() > 0) session.lease_s = assignment.lease_s();
  // Says what this program can do. If the service goes away just now, the session says it later.
  const auto attached = AttachTo(assignment.lease(), After(waits_.first));
  if (!attached.ok() && !MayComeBack(attached.status())) {
    SayLine(ForPeople(attached.status()));
    return std::nullopt;
  }
  if (attached.ok() && attached->next_sequence_size() == 1) {
    session.next_sequence = attached->next_sequence(0);
    assigned.last_step = attached->last_step_size() == 1 ? attached->last_step(0) : -1;
  }
  if (assignment.has_warm_start() && !Prepare(assigned, assignment.warm_start())) {
    return std::nullopt;
  }
  return assigned;
}

std::optional<Assigned> TrialSource::Suggested() {
  const SteadyTime deadline = After(waits_.next);
  int refused = 0;
  for (int given_up = 0; given_up < kMaxGivenUp;) {
    const StatusOr<v1::SuggestResponse> answer = Suggest();
    duration<double> wait = kBetweenTries;
    if (answer.ok() && answer->has_finished()) return std::nullopt;
    if (answer.ok() && answer->trials().assignments_size() > 0) {
      std::optional<Assigned> assigned = Accept(answer->trials().assignments(0));
      if (assigned) return assigned;
      ++given_up;
    } else if (answer.ok()) {
      wait = std::max(wait, duration<double>(answer->wait().retry_after_s()));
    } else if (!MayComeBack(answer.status()) && ++refused > 1) {
      SayLine("no trial: " + ForPeople(answer.status()));
      return std::nullopt;
    }
    // Beyond the deadline the worker asks on, without this process.
    if (!Sleep(wait, deadline)) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace jizi::helper
