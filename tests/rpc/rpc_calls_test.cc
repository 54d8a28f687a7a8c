// Every call of the service against a real server with real SQLite; each test also runs with the
// server killed and reopened after every call, and must not notice.

#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "tests/rpc/rpc_testing.h"

namespace jizi::tuner {
namespace {

using Stub = v1::TuneService::Stub;

class RpcCalls : public testing::TestWithParam<std::tuple<Transport, Restart>> {
 protected:
  RpcCalls() : service_(std::get<0>(GetParam())) {}

  template <typename Request, typename Response>
  StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                       Response*),
                          const Request& request) {
    return service_.Call(method, request, std::get<1>(GetParam()));
  }
  v1::Study Create(const std::string& name) {
    return Must(Call(&Stub::CreateStudy, NewStudy(name))).study();
  }
  v1::Assignment SuggestOne(const std::string& study, const std::string& worker, int64_t sequence) {
    const auto response = Must(Call(&Stub::Suggest, NewSuggest(study, worker, sequence)));
    EXPECT_EQ(response.trials().assignments_size(), 1) << response.ShortDebugString();
    return response.trials().assignments_size() == 1 ? response.trials().assignments(0)
                                                     : v1::Assignment();
  }
  StatusOr<v1::ReportResponse> Report(const v1::Lease& lease, int64_t sequence, int64_t step,
                                      double loss) {
    v1::ReportRequest request;
    *request.mutable_lease() = lease;
    request.set_sequence(sequence);
    *request.add_measurements() = MeasurementOf(step, loss);
    return Call(&Stub::Report, request);
  }
  StatusOr<v1::CompleteResponse> Finish(const v1::Lease& lease, int64_t sequence) {
    v1::CompleteRequest request;
    *request.mutable_lease() = lease;
    request.set_sequence(sequence);
    request.mutable_finished();
    return Call(&Stub::Complete, request);
  }

  TestService service_;
};

INSTANTIATE_TEST_SUITE_P(, RpcCalls,
                         testing::Combine(testing::Values(Transport::kTcp, Transport::kUnix),
                                          testing::Values(Restart::kNever,
                                                          Restart::kAfterEveryCall)),
                         [](const auto& kind) {
                           return std::string(std::get<0>(kind.param) == Transport::kTcp ? "Tcp"
                                                                                         : "Unix") +
                                  (std::get<1>(kind.param) == Restart::kNever ? "" : "Restarted");
                         });

TEST_P(RpcCalls, ATrialsWholeLife) {
  const v1::Study study = Create("life");
  EXPECT_EQ(study.state(), v1::STUDY_STATE_ACTIVE);
  const v1::Assignment first = SuggestOne("life", "w", 1);
  EXPECT_EQ(first.trial().id(), 1);
  EXPECT_EQ(first.trial().params().count("lr"), 1U);
  EXPECT_EQ(first.lease().token().size(), 16U);
  EXPECT_EQ(first.lease_s(), 60);

  v1::AttachRequest attach;
  *attach.mutable_lease() = first.lease();
  attach.set_worker("w");
  attach.mutable_capabilities()->set_stop(true);
  attach.set_total_steps(3);
  const auto attached = Must(Call(&Stub::Attach, attach));
  ASSERT_EQ(attached.held_size(), 1);
  EXPECT_EQ(attached.next_sequence(0), 1);
  EXPECT_EQ(attached.last_step(0), -1);
  EXPECT_EQ(attached.next_worker_sequence(), 2);

  const auto reported = Must(Report(first.lease(), 1, 0, 0.5));
  EXPECT_TRUE(reported.directive().has_go_on());
  EXPECT_EQ(reported.rejected_size(), 0);

  v1::RegisterCheckpointRequest checkpoint;
  *checkpoint.mutable_lease() = first.lease();
  checkpoint.set_sequence(2);
  checkpoint.mutable_checkpoint()->set_step(0);
  checkpoint.mutable_checkpoint()->set_path("checkpoints/0.bin");
  checkpoint.mutable_checkpoint()->set_sha256(std::string(64, 'a'));
  checkpoint.mutable_checkpoint()->set_bytes(10);
  Must(Call(&Stub::RegisterCheckpoint, checkpoint));

  v1::RenewRequest renew;
  *renew.add_leases() = first.lease();
  const auto renewed = Must(Call(&Stub::Renew, renew));
  ASSERT_EQ(renewed.leases_size(), 1);
  EXPECT_TRUE(renewed.leases(0).held());

  v1::ReleaseRequest release;
  *release.mutable_lease() = first.lease();
  release.set_sequence(3);
  release.set_why("the machine goes down");
  Must(Call(&Stub::Release, release));

  // Again from its checkpoint.
  const v1::Assignment second = SuggestOne("life", "w", 2);
  EXPECT_EQ(second.trial().id(), 1);
  EXPECT_EQ(second.lease().attempt(), 2);
  ASSERT_TRUE(second.has_warm_start());
  EXPECT_EQ(second.warm_start().checkpoint().path(), "checkpoints/0.bin");

  v1::CompleteRequest complete;
  *complete.mutable_lease() = second.lease();
  complete.set_sequence(1);
  complete.mutable_finished();
  *complete.mutable_final_measurement() = MeasurementOf(1, 0.25);
  *complete.mutable_next() = NewSuggest("life", "w", 3);
  const auto completed = Must(Call(&Stub::Complete, complete));
  EXPECT_EQ(completed.trial().state(), v1::TRIAL_STATE_COMPLETED);
  EXPECT_EQ(completed.trial().objective(), 0.25);
  ASSERT_EQ(completed.next().trials().assignments_size(), 1);
  EXPECT_EQ(completed.next().trials().assignments(0).trial().id(), 2);

  v1::GetTrialRequest get;
  get.set_study("life");
  get.set_trial(1);
  const auto trial = Must(Call(&Stub::GetTrial, get)).trial();
  EXPECT_EQ(trial.attempts_size(), 2);
  EXPECT_EQ(trial.measurements_size(), 2);
  EXPECT_EQ(trial.attempts(0).end(), v1::ATTEMPT_END_RELEASED);
  EXPECT_EQ(trial.attempts(0).why(), "the machine goes down");

  v1::GetStudyRequest get_study;
  get_study.set_study("life");
  const auto after = Must(Call(&Stub::GetStudy, get_study)).study();
  EXPECT_EQ(after.best_trial(), 1);
  EXPECT_EQ(after.best_objective(), 0.25);
  EXPECT_EQ(after.counts().completed(), 1);
  EXPECT_EQ(after.counts().running(), 1);
}

TEST_P(RpcCalls, AMetricThatTheStudyDoesNotNameIsKeptAndDecidesNothing) {
  Create("metrics");
  const v1::Lease lease = SuggestOne("metrics", "w", 1).lease();
  v1::ReportRequest request;
  *request.mutable_lease() = lease;
  request.set_sequence(1);
  v1::Measurement& measurement = *request.add_measurements();
  measurement.set_step(1);
  (*measurement.mutable_metrics())["losss"] = 0.5;
  EXPECT_EQ(Must(Call(&Stub::Report, request)).rejected_size(), 0);
  const v1::Trial trial = Must(Finish(lease, 2)).trial();
  EXPECT_EQ(trial.state(), v1::TRIAL_STATE_FAILED);
  EXPECT_NE(trial.end_why().find("loss"), std::string::npos) << trial.end_why();
  v1::GetTrialRequest get;
  get.set_study("metrics");
  get.set_trial(trial.id());
  const v1::Trial kept = Must(Call(&Stub::GetTrial, get)).trial();
  ASSERT_EQ(kept.measurements_size(), 1);
  EXPECT_EQ(kept.measurements(0).metrics().at("losss"), 0.5);
}

TEST_P(RpcCalls, WhatAPersonAsksForIsDone) {
  Create("people");
  v1::EnqueueTrialRequest enqueue;
  enqueue.set_study("people");
  enqueue.set_request_id("enqueue-1");
  (*enqueue.mutable_params())["lr"].set_float_value(0.1);
  (*enqueue.mutable_params())["optimizer"].set_string_value("adam");
  EXPECT_EQ(Must(Call(&Stub::EnqueueTrial, enqueue)).trial().id(), 1);
  EXPECT_EQ(Must(Call(&Stub::EnqueueTrial, enqueue)).trial().id(), 1);  // Again: what it made.

  const v1::Assignment held = SuggestOne("people", "w", 1);
  EXPECT_EQ(held.trial().params().at("lr").float_value(), 0.1);
  v1::CompleteRequest fail;
  *fail.mutable_lease() = held.lease();
  fail.set_sequence(1);
  fail.mutable_failed()->set_why("Segmentation fault");
  EXPECT_EQ(Must(Call(&Stub::Complete, fail)).trial().state(), v1::TRIAL_STATE_FAILED);

  v1::RetryTrialsRequest retry;
  retry.set_study("people");
  retry.set_request_id("retry-1");
  const auto retried = Must(Call(&Stub::RetryTrials, retry));
  ASSERT_EQ(retried.queued_size(), 1);
  EXPECT_EQ(retried.queued(0), 1);

  v1::SetAttributesRequest attributes;
  attributes.set_study("people");
  (*attributes.mutable_set())["owner"] = "ada";
  Must(Call(&Stub::SetAttributes, attributes));

  v1::SetStudyStateRequest pause;
  pause.set_study("people");
  pause.set_state(v1::STUDY_STATE_PAUSED);
  const auto paused = Must(Call(&Stub::SetStudyState, pause)).study();
  EXPECT_EQ(paused.state(), v1::STUDY_STATE_PAUSED);
  EXPECT_EQ(paused.spec().attributes().at("owner"), "ada");
  EXPECT_TRUE(Must(Call(&Stub::Suggest, NewSuggest("people", "w", 2))).has_wait());

  const auto listed = Must(Call(&Stub::ListStudies, v1::ListStudiesRequest()));
  ASSERT_EQ(listed.studies_size(), 1);
  EXPECT_EQ(listed.studies(0).spec().name(), "people");

  v1::DeleteStudyRequest remove;
  remove.set_study("people");
  Must(Call(&Stub::DeleteStudy, remove));
  v1::GetStudyRequest get;
  get.set_study("people");
  const auto gone = Call(&Stub::GetStudy, get);
  EXPECT_EQ(gone.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(DetailOf(gone.status()).code, "STUDY_NOT_FOUND");
}

TEST_P(RpcCalls, Contract12ARepeatGetsItsRecordedAnswer) {
  Create("once");
  EXPECT_FALSE(Must(Call(&Stub::CreateStudy, NewStudy("once"))).study().spec().name().empty());
  const v1::Assignment first = SuggestOne("once", "w", 1);
  const v1::Assignment again = SuggestOne("once", "w", 1);
  EXPECT_EQ(again.lease().token(), first.lease().token());
  EXPECT_EQ(again.trial().id(), first.trial().id());

  Must(Report(first.lease(), 1, 0, 0.5));
  EXPECT_EQ(Must(Report(first.lease(), 1, 0, 0.5)).rejected_size(), 0);
  const auto other_body = Report(first.lease(), 1, 0, 0.75);
  EXPECT_EQ(other_body.status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(DetailOf(other_body.status()).mend.empty());
  Must(Report(first.lease(), 2, 1, 0.4));
  const auto stale = Report(first.lease(), 1, 0, 0.5);
  EXPECT_EQ(stale.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailOf(stale.status()).code, "STALE_SEQUENCE");

  Must(Finish(first.lease(), 3));
  EXPECT_EQ(Must(Finish(first.lease(), 3)).trial().state(), v1::TRIAL_STATE_COMPLETED);
  v1::GetTrialRequest get;
  get.set_study("once");
  get.set_trial(1);
  EXPECT_EQ(Must(Call(&Stub::GetTrial, get)).trial().measurement_count(), 2);
}

TEST_P(RpcCalls, Contract12ARepeatOfCreateStudyHearsWhatTheFirstOneDid) {
  for (const bool resume : {false, true}) {
    v1::CreateStudyRequest request = NewStudy(resume ? "resumed" : "made");
    request.set_resume(resume);
    EXPECT_TRUE(Must(Call(&Stub::CreateStudy, request)).created());
    EXPECT_TRUE(Must(Call(&Stub::CreateStudy, request)).created()) << "resume " << resume;
    request.set_request_id("another");
    request.set_resume(true);
    EXPECT_FALSE(Must(Call(&Stub::CreateStudy, request)).created());
    EXPECT_FALSE(Must(Call(&Stub::CreateStudy, request)).created());
  }
}

TEST_P(RpcCalls, ABlankNameIsRefused) {
  const auto blank = Call(&Stub::CreateStudy, NewStudy(" \t"));
  EXPECT_EQ(blank.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf(blank.status()).subject, "spec.name");
}

TEST_P(RpcCalls, SortingByAMetricThatNobodyReportedNamesThoseThereAre) {
  Create("sorted");
  const v1::Assignment held = SuggestOne("sorted", "w", 1);
  v1::ReportRequest report;
  *report.mutable_lease() = held.lease();
  report.set_sequence(1);
  *report.add_measurements() = MeasurementOf(0, 0.5);
  (*report.mutable_measurements(0)->mutable_metrics())["accuracy"] = 0.25;
  Must(Call(&Stub::Report, report));
  v1::ListTrialsRequest list;
  list.set_study("sorted");
  list.set_sort_metric("acuracy");
  const auto refused = Call(&Stub::ListTrials, list);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  const ErrorDetail detail = DetailOf(refused.status());
  EXPECT_EQ(detail.code, "UNKNOWN_METRIC");
  EXPECT_NE(detail.mend.find("objective, accuracy, loss"), std::string::npos) << detail.mend;
  for (const char* known : {"accuracy", "loss", "objective"}) {
    list.set_sort_metric(known);
    EXPECT_EQ(Must(Call(&Stub::ListTrials, list)).trials_size(), 1) << known;
  }
}

TEST_P(RpcCalls, Contract12AnOutboxMaySayCatchingUpOnARepeat) {
  Create("outbox");
  const v1::Assignment held = SuggestOne("outbox", "w", 1);
  v1::ReportRequest report;
  *report.mutable_lease() = held.lease();
  report.set_sequence(1);
  *report.add_measurements() = MeasurementOf(0, 1);
  Must(Call(&Stub::Report, report));
  report.set_catching_up(true);
  EXPECT_EQ(Must(Call(&Stub::Report, report)).rejected_size(), 0);
}

TEST_P(RpcCalls, Contract7AnotherTokenIsALostLease) {
  Create("lease");
  v1::Lease lease = SuggestOne("lease", "w", 1).lease();
  lease.set_token(std::string(16, 'x'));
  const auto lost = Report(lease, 1, 0, 0.5);
  EXPECT_EQ(lost.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailOf(lost.status()).code, "LEASE_LOST");
}

TEST_P(RpcCalls, Contract6MetricsMayBeNanAndInfinite) {
  Create("numbers");
  const v1::Assignment held = SuggestOne("numbers", "w", 1);
  v1::ReportRequest report;
  *report.mutable_lease() = held.lease();
  report.set_sequence(1);
  *report.add_measurements() = MeasurementOf(0, std::nan(""));
  *report.add_measurements() = MeasurementOf(1, std::numeric_limits<double>::infinity());
  *report.add_measurements() = MeasurementOf(2, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(Must(Call(&Stub::Report, report)).rejected_size(), 0);
  v1::GetTrialRequest get;
  get.set_study("numbers");
  get.set_trial(1);
  const auto trial = Must(Call(&Stub::GetTrial, get)).trial();
  ASSERT_EQ(trial.measurements_size(), 3);
  EXPECT_TRUE(std::isnan(trial.measurements(0).metrics().at("loss")));
  EXPECT_EQ(trial.measurements(1).metrics().at("loss"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(trial.measurements(2).metrics().at("loss"), -std::numeric_limits<double>::infinity());
}

TEST_P(RpcCalls, StudyNamesOfAllKinds) {
  for (const std::string& name :
       {std::string("学习率 – café"), std::string("it's \"quoted\"; $(rm -rf) --x")}) {
    EXPECT_EQ(Must(Call(&Stub::CreateStudy, NewStudy(name, "id of " + name))).study().spec().name(),
              name);
    v1::GetStudyRequest get;
    get.set_study(name);
    EXPECT_EQ(Must(Call(&Stub::GetStudy, get)).study().spec().name(), name);
  }
  for (const std::string& name : {std::string("two\nlines"), std::string(10'240, 'x'),
                                  std::string(100'000, 'y'), std::string()}) {
    const auto refused = Call(&Stub::CreateStudy, NewStudy(name, "id"));
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument) << name.size();
    EXPECT_FALSE(DetailOf(refused.status()).mend.empty());
    v1::GetStudyRequest get;
    get.set_study(name);
    EXPECT_FALSE(Call(&Stub::GetStudy, get).ok());
  }
}

TEST_P(RpcCalls, PagesShowEveryTrialOnceInOrder) {
  Create("pages");
  const auto held = Must(Call(&Stub::Suggest, NewSuggest("pages", "w", 1, 7))).trials();
  ASSERT_EQ(held.assignments_size(), 7);
  for (int i = 0; i < 6; ++i) {  // The last one stays without a value.
    Must(Report(held.assignments(i).lease(), 1, 0, i == 2 ? std::nan("") : 10.0 - i));
    Must(Finish(held.assignments(i).lease(), 2));
  }
  v1::ListTrialsRequest list;
  list.set_study("pages");
  list.set_page_size(2);
  std::vector<int64_t> ids;
  do {
    const auto page = Must(Call(&Stub::ListTrials, list));
    for (const auto& trial : page.trials()) ids.push_back(trial.id());
    list.set_page_token(page.next_page_token());
  } while (!list.page_token().empty() && ids.size() < 20);
  EXPECT_EQ(ids, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7}));

  for (const bool descending : {false, true}) {
    for (const std::string sort : {"objective", "loss"}) {
      ids.clear();
      list.clear_page_token();
      list.set_sort_metric(sort);
      list.set_descending(descending);
      do {
        const auto page = Must(Call(&Stub::ListTrials, list));
        for (const auto& trial : page.trials()) ids.push_back(trial.id());
        list.set_page_token(page.next_page_token());
      } while (!list.page_token().empty() && ids.size() < 20);
      EXPECT_EQ(ids, descending ? (std::vector<int64_t>{1, 2, 4, 5, 6, 3, 7})
                                : (std::vector<int64_t>{6, 5, 4, 2, 1, 3, 7}))
          << sort;
    }
  }
}

}  // namespace
}  // namespace jizi::tuner
