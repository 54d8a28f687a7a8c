#pragma once
// trial_source.h - where the trials of a process come from: the one that its worker leased for it
// (Attach), then what the service suggests to that worker, or one by hand without a service.
// Fails: nothing is thrown; what stands in the way is said on stderr, and then there is no trial.
// Threads: one.   Cost: blocks for the calls and their retries, bounded by the waits below.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "proto/client.h"
#include "trial-helper/environment.h"
#include "trial-helper/session.h"

namespace jizi::helper {

// A trial to run.
struct Assigned {
  int64_t id = 0;  // 0 by hand.
  int attempt = 0;
  Params params;
  std::string folder;
  std::string warm_start;
  int64_t start_step = 0;
  int64_t last_step = -1;  // The last one that counts already.
  std::optional<Session::Options> session;
};

// For the other ranks: everything but the session.
std::string Encode(const std::optional<Assigned>& assigned);
std::optional<Assigned> DecodeAssigned(const std::string& bytes);

class TrialSource {
 public:
  struct Waits {
    std::chrono::duration<double> first{10};  // Then the first trial starts without the service.
    std::chrono::duration<double> next{60};
  };

  // client: null without a service. It must outlive the source.
  TrialSource(Client* client, const Environment& env, v1::Capabilities capabilities, Waits waits);

  std::optional<Assigned> Next();

 private:
  std::optional<Assigned> ByHand();
  std::optional<Assigned> First();
  std::optional<Assigned> Suggested();
  std::optional<Assigned> Accept(const v1::Assignment& assignment);
  StatusOr<v1::SuggestResponse> Suggest();
  Status LearnSequence();
  StatusOr<v1::AttachResponse> AttachTo(const v1::Lease& lease, SteadyTime deadline);
  bool Prepare(Assigned& assigned, const v1::WarmStart& warm_start);
  void GiveUp(const v1::Lease& lease, int64_t sequence, const std::string& why);

  Client* client_;
  const Environment& env_;
  const v1::Capabilities capabilities_;
  const Waits waits_;
  bool first_done_ = false;
  double lease_s_ = 0;  // As the worker asked for; 0: the service's default.
  std::optional<int64_t> worker_sequence_;
};

}  // namespace jizi::helper
