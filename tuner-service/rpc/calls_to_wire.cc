#include "tuner-service/rpc/calls.h"
#include "tuner-service/rpc/convert.h"

namespace jizi::tuner {
namespace {

void ToWire(const Assigned& assigned, const std::string& study, v1::Assignment* to) {
  *to->mutable_trial() = ToWire(*assigned.trial);
  v1::Lease* lease = to->mutable_lease();
  lease->set_study(study);
  lease->set_trial(assigned.trial->id);
  lease->set_attempt(assigned.attempt);
  lease->set_token(assigned.token.data(), assigned.token.size());
  to->set_lease_s(assigned.lease.count());
  if (assigned.start) *to->mutable_warm_start() = ToWire(*assigned.start);
}

}  // namespace

void ToWire(const SuggestReply& reply, const std::string& study, v1::SuggestResponse* response) {
  if (const auto* trials = std::get_if<std::vector<Assigned>>(&reply)) {
    v1::SuggestResponse::Trials* to = response->mutable_trials();
    for (const Assigned& assigned : *trials) ToWire(assigned, study, to->add_assignments());
  } else if (const auto* wait = std::get_if<Wait>(&reply)) {
    response->mutable_wait()->set_retry_after_s(wait->retry_after.count());
    response->mutable_wait()->set_why(wait->why);
  } else if (const auto* finished = std::get_if<Finished>(&reply)) {
    response->mutable_finished()->set_why(finished->why);
  }
}

void ToWire(const AttachReply& reply, const std::string& study, v1::AttachResponse* response) {
  for (const AttachReply::Held& held : reply.held) {
    ToWire(held.assigned, study, response->add_held());
    response->add_next_sequence(held.next_sequence);
    response->add_last_step(held.last_step);
  }
  response->set_next_worker_sequence(reply.next_worker_sequence);
}

void ToWire(const ReportReply& reply, v1::ReportResponse* response) {
  *response->mutable_directive() = ToWire(reply.directive);
  response->set_lease_s(reply.lease.count());
  for (const Rejected& rejected : reply.rejected) {
    v1::RejectedMeasurement* to = response->add_rejected();
    to->set_index(rejected.index);
    to->set_why(rejected.why);
  }
}

void ToWire(const RegisterCheckpointReply& reply, v1::RegisterCheckpointResponse* response) {
  response->set_lease_s(reply.lease.count());
}

void ToWire(const RenewReply& reply, v1::RenewResponse* response) {
  for (const RenewReply::Renewed& renewed : reply.leases) {
    v1::RenewResponse::Renewed* to = response->add_leases();
    to->set_held(renewed.held);
    if (!renewed.held) continue;
    to->set_lease_s(renewed.lease.count());
    *to->mutable_directive() = ToWire(renewed.directive);
  }
}

void ToWire(const CompleteReply& reply, const std::string& study, v1::CompleteResponse* response) {
  *response->mutable_trial() = ToWire(*reply.trial);
  if (reply.next) ToWire(*reply.next, study, response->mutable_next());
}

void ToWire(const EnqueueReply& reply, v1::EnqueueTrialResponse* response) {
  *response->mutable_trial() = ToWire(*reply.trial);
}

void ToWire(const RetryReply& reply, v1::RetryTrialsResponse* response) {
  for (const TrialId trial : reply.queued) response->add_queued(trial);
}

}  // namespace jizi::tuner
