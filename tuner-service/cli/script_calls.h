#pragma once
// script_calls.h - a worker's calls for whoever holds no connection: a shell script asks, reports
// and completes from a process each, and knows a trial by its number and its lease's token. The
// places in the sequence come from Attach (docs/contracts.md, 12).
// Fails: FailedPrecondition LEASE_LOST, TRIAL_ENDED; InvalidArgument BAD_LEASE_TOKEN, BAD_METRIC,
// BAD_MEASUREMENT; what the service says. Threads: from one thread. Cost: three calls each.

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "proto/client.h"
#include "tuner-service/cli/requests.h"

namespace jizi::tuner {

// The right to a trial, and where its calls stand.
struct HeldTrial {
  v1::Lease lease;
  int64_t next_sequence = 1;
  int64_t last_step = -1;  // The last that counts; -1 if none.
};

// The same request again while nobody answers (docs/contracts.md, 12), for some seconds.
template <typename Request, typename Response>
StatusOr<Response> CallPatiently(Client& client,
                                 grpc::Status (v1::TuneService::Stub::*method)(grpc::ClientContext*,
                                                                               const Request&,
                                                                               Response*),
                                 const Request& request) {
  for (int tries = 1;; ++tries) {
    auto response = client.Call(method, request, kCommandDeadline);
    if (response.ok() || !IsAway(response.status()) || tries == 5) return response;
    std::this_thread::sleep_for(std::chrono::milliseconds(500 * tries));
  }
}

using Metrics = std::map<std::string, double>;

// {"val_accuracy=0.91", "loss=nan"}.
StatusOr<Metrics> ParseMetrics(const std::vector<std::string>& assignments);

// 32 hex digits, as `suggest` prints them and JIZI_LEASE holds them, to 16 bytes.
StatusOr<std::string> TokenFromHex(const std::string& hex);

// The lease of the trial's last attempt, by its token (16 bytes).
StatusOr<v1::Lease> LeaseOf(Client& client, const std::string& study, int64_t trial,
                            const std::string& token);

// Says at the same time that its program can stop.
StatusOr<HeldTrial> AttachTrial(Client& client, const v1::Lease& lease);

// The step of a measurement that names none: one after the last, from 1 on.
int64_t NextStep(const HeldTrial& held);
v1::Measurement MeasurementOf(const Metrics& metrics, int64_t step);

// Numbers each call. A measurement that the service rejects is an error, for nobody else hears it.
StatusOr<v1::Directive> SendReport(Client& client, HeldTrial& held,
                                   const v1::Measurement& measurement);

enum class TrialEnd { kFinished, kFailed, kInfeasible };
struct Ending {
  TrialEnd end = TrialEnd::kFinished;
  std::string why;
  std::optional<v1::Measurement> final_measurement;
};
// Of a trial that this attempt has ended already: what became of it.
StatusOr<v1::Trial> SendComplete(Client& client, HeldTrial& held, const Ending& ending);
Status SendRelease(Client& client, HeldTrial& held, const std::string& why);

// {"lr":0.1,"optimizer":"sgd"}: as JSON has them, unlike the message's own JSON.
std::string PlainJson(const google::protobuf::Map<std::string, v1::Value>& params);

// {"directive":"stop","why":"..."}; of a `continue` also what is to change: "set", "roll_back_to".
std::string DirectiveJson(const v1::Directive& directive);
// Stop or pause: the program ends now, and completes.
bool IsToEnd(const v1::Directive& directive);

}  // namespace jizi::tuner
