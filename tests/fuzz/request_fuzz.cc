// request_fuzz.cc - any bytes as any request: conversion refuses or gives a command, and never
// crashes. The first byte picks the call. What is accepted must read back: a specification converts
// to the wire and again to the same one.

#include <cstdint>
#include <memory>
#include <string>

#include "tuner-service/rpc/calls.h"
#include "tuner-service/rpc/convert.h"
#include "tuner-service/rpc/pages.h"

namespace jizi::tuner {
namespace {

template <typename Request, typename Convert>
void Try(const std::string& bytes, Convert convert) {
  Request request;
  if (request.ParseFromString(bytes)) static_cast<void>(convert(request).ok());
}

const StudyView& SomeView() {
  static const StudyView* const kView = [] {
    auto* view = new StudyView();
    view->study.spec = std::make_shared<StudySpec>();
    for (int i = 1; i <= 40; ++i) {
      Trial trial;
      trial.id = i;
      trial.state = static_cast<TrialState>(i % 7);
      if (i % 3 == 0) trial.objective = i;
      Measurement measurement;
      measurement.metrics.push_back({"loss", 1.0 / i});
      trial.measurements.push_back(measurement);
      view->study.trials.push_back(Cow<Trial>(std::move(trial)));
    }
    return view;
  }();
  return *kView;
}

void Run(uint8_t call, const std::string& bytes) {
  const Timestamp now{};
  switch (call % 14) {
    case 0:
      return Try<v1::CreateStudyRequest>(bytes, [](const auto& request) {
        auto spec = FromWire(request.spec());
        if (spec.ok()) {
          const auto again = FromWire(ToWire(*spec));
          CHECK(again.ok() && *again == *spec);
        }
        return spec;
      });
    case 1:
      return Try<v1::SuggestRequest>(
          bytes, [](const auto& request) { return FromWire(request, RandomTokens); });
    case 2:
      return Try<v1::AttachRequest>(bytes, [](const auto& request) { return FromWire(request); });
    case 3:
      return Try<v1::ReportRequest>(bytes,
                                    [now](const auto& request) { return FromWire(request, now); });
    case 4:
      return Try<v1::RegisterCheckpointRequest>(
          bytes, [](const auto& request) { return FromWire(request); });
    case 5:
      return Try<v1::RenewRequest>(bytes, [](const auto& request) { return FromWire(request); });
    case 6:
      return Try<v1::ReleaseRequest>(bytes, [](const auto& request) { return FromWire(request); });
    case 7:
      return Try<v1::CompleteRequest>(
          bytes, [now](const auto& request) { return FromWire(request, RandomTokens, now); });
    case 8:
      return Try<v1::EnqueueTrialRequest>(bytes,
                                          [](const auto& request) { return FromWire(request); });
    case 9:
      return Try<v1::RetryTrialsRequest>(bytes,
                                         [](const auto& request) { return FromWire(request); });
    case 10:
      return Try<v1::SetStudyStateRequest>(bytes,
                                           [](const auto& request) { return FromWire(request); });
    case 11:
      return Try<v1::SetAttributesRequest>(bytes,
                                           [](const auto& request) { return FromWire(request); });
    case 12:
      return Try<v1::ListTrialsRequest>(
          bytes, [](const auto& request) { return ListTrials(SomeView(), request); });
    default:
      return Try<v1::GetTrialRequest>(
          bytes, [](const auto& request) { return GetTrial(SomeView(), request); });
  }
}

}  // namespace
}  // namespace jizi::tuner

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  jizi::tuner::Run(data[0], std::string(reinterpret_cast<const char*>(data + 1), size - 1));
  return 0;
}
