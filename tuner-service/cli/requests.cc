#include "tuner-service/cli/requests.h"

#include <sys/random.h>

#include <algorithm>

namespace jizi::tuner {
namespace {

constexpr int kPage = 1000;
constexpr int kMeasurementPage = 10'000;
constexpr int kMostPages = 10'000;  // A server that never ends its pages is not followed for ever.

}  // namespace

StatusOr<v1::Study> GetStudy(Client& client, const std::string& study) {
  v1::GetStudyRequest request;
  request.set_study(study);
  auto response = TRY(client.Call(&v1::TuneService::Stub::GetStudy, request, kCommandDeadline));
  return std::move(*response.mutable_study());
}

StatusOr<std::vector<v1::Study>> AllStudies(Client& client) {
  std::vector<v1::Study> studies;
  v1::ListStudiesRequest request;
  request.set_page_size(kPage);
  for (int page = 0; page < kMostPages; ++page) {
    auto response =
        TRY(client.Call(&v1::TuneService::Stub::ListStudies, request, kCommandDeadline));
    for (v1::Study& study : *response.mutable_studies()) studies.push_back(std::move(study));
    if (response.next_page_token().empty()) break;
    request.set_page_token(response.next_page_token());
  }
  return studies;
}

StatusOr<std::vector<v1::Trial>> AllTrials(Client& client, v1::ListTrialsRequest request,
                                           int64_t limit) {
  std::vector<v1::Trial> trials;
  for (int page = 0; page < kMostPages; ++page) {
    const int64_t left = limit == 0 ? kPage : limit - static_cast<int64_t>(trials.size());
    request.set_page_size(static_cast<int32_t>(std::min<int64_t>(kPage, left)));
    auto response = TRY(client.Call(&v1::TuneService::Stub::ListTrials, request, kCommandDeadline));
    for (v1::Trial& trial : *response.mutable_trials()) trials.push_back(std::move(trial));
    const bool enough = limit != 0 && static_cast<int64_t>(trials.size()) >= limit;
    if (enough || response.next_page_token().empty()) break;
    request.set_page_token(response.next_page_token());
  }
  return trials;
}

StatusOr<v1::Trial> WholeTrial(Client& client, const std::string& study, int64_t trial) {
  v1::GetTrialRequest request;
  request.set_study(study);
  request.set_trial(trial);
  request.set_max_measurements(kMeasurementPage);
  auto whole = TRY(client.Call(&v1::TuneService::Stub::GetTrial, request, kCommandDeadline));
  while (whole.trial().measurements_size() < whole.trial().measurement_count()) {
    request.set_skip_measurements(whole.trial().measurements_size());
    auto more = TRY(client.Call(&v1::TuneService::Stub::GetTrial, request, kCommandDeadline));
    if (more.trial().measurements_size() == 0) break;  // They became fewer: a roll-back.
    for (v1::Measurement& measurement : *more.mutable_trial()->mutable_measurements()) {
      *whole.mutable_trial()->add_measurements() = std::move(measurement);
    }
  }
  return std::move(*whole.mutable_trial());
}

StatusOr<v1::Trial> TrialAlone(Client& client, const std::string& study, int64_t trial) {
  v1::GetTrialRequest request;
  request.set_study(study);
  request.set_trial(trial);
  request.set_max_measurements(1);  // 0 would be the service's choice.
  auto alone = TRY(client.Call(&v1::TuneService::Stub::GetTrial, request, kCommandDeadline));
  alone.mutable_trial()->clear_measurements();
  return std::move(*alone.mutable_trial());
}

std::string RandomHex(int bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string random(static_cast<size_t>(bytes), '\0');
  CHECK(getrandom(random.data(), random.size(), 0) == static_cast<ssize_t>(random.size()));
  std::string hex;
  for (const char c : random) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace jizi::tuner
