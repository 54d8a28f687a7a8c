#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "tuner-service/rpc/accounts.h"
#include "tuner-service/rpc/calls.h"
#include "tuner-service/rpc/convert.h"
#include "tuner-service/rpc/gate.h"
#include "tuner-service/rpc/limits.h"
#include "tuner-service/rpc/line_bound.h"
#include "tuner-service/rpc/pages.h"

namespace jizi::tuner {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

v1::StudySpec FullSpec() {
  v1::StudySpec spec;
  spec.set_name("s");
  spec.set_method("random");
  spec.set_settings_json("{\"sampler\":\"sobol\"}");
  spec.set_seed(UINT64_MAX);
  const auto add = [&spec](const char* name) {
    spec.add_parameters()->set_name(name);
    return spec.mutable_parameters(spec.parameters_size() - 1);
  };
  auto* uniform = add("uniform")->mutable_numeric();
  uniform->mutable_uniform()->set_min(1e-5);
  uniform->mutable_uniform()->set_max(1);
  uniform->mutable_uniform()->set_scale(v1::SCALE_INVERSE_LOG);
  auto* normal = add("normal")->mutable_numeric();
  normal->mutable_normal()->set_mu(-1);
  normal->mutable_normal()->set_sigma(2);
  normal->mutable_normal()->set_log(true);
  normal->set_quantum(0.5);
  auto* beta = add("beta")->mutable_numeric();
  beta->mutable_beta()->set_a(2);
  beta->mutable_beta()->set_b(3);
  auto* whole = add("whole")->mutable_numeric();
  whole->mutable_uniform()->set_min(1);
  whole->mutable_uniform()->set_max(9);
  whole->mutable_uniform()->set_scale(v1::SCALE_LINEAR);
  whole->set_integral(true);
  whole->set_quantum(2);
  auto* categorical = add("categorical")->mutable_categorical();
  categorical->add_values()->set_int_value(1);
  categorical->add_values()->set_float_value(1);
  categorical->add_values()->set_string_value("1");
  categorical->add_values()->set_bool_value(true);
  categorical->add_values()->set_json_value("[1,null]");
  for (int i = 0; i < 5; ++i) categorical->add_probabilities(0.2);
  auto* constant = add("constant");
  constant->mutable_constant()->mutable_value()->set_string_value("x; $(y)");
  auto* when = constant->add_when();
  when->set_parent("categorical");
  when->add_any_of()->set_int_value(1);
  auto* metric = spec.add_metrics();
  metric->set_name("accuracy");
  metric->set_goal(v1::GOAL_MAXIMIZE);
  metric->set_target(0.9);
  spec.mutable_objective()->set_kind(v1::OBJECTIVE_KIND_MEAN_OF_LAST);
  spec.mutable_objective()->set_last_k(3);
  spec.mutable_budget()->set_run_cap(12);
  spec.mutable_budget()->set_wall_clock_s(3600);
  spec.mutable_retries()->set_max_retries(2);
  spec.mutable_retries()->set_max_lost_workers(7);
  (*spec.mutable_attributes())["owner"] = "ada";
  return spec;
}

TEST(ConvertTest, ASpecReadsBackAsItWas) {
  const v1::StudySpec spec = FullSpec();
  const auto converted = FromWire(spec);
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_EQ(ToWire(*converted).DebugString(), spec.DebugString());
}

TEST(ConvertTest, WhatTheDomainDoesNotTakeIsRefusedWithItsField) {
  using Edit = std::function<void(v1::StudySpec&)>;
  const std::vector<std::pair<std::string, Edit>> edits = {
      {"spec.name", [](auto& s) { s.clear_name(); }},
      {"spec.method", [](auto& s) { s.clear_method(); }},
      {"spec.parameters[0].numeric.uniform.min",
       [](auto& s) {
         s.mutable_parameters(0)->mutable_numeric()->mutable_uniform()->set_min(kNan);
       }},
      {"spec.parameters[0].numeric.uniform.max",
       [](auto& s) {
         s.mutable_parameters(0)->mutable_numeric()->mutable_uniform()->set_max(kInfinity);
       }},
      {"spec.parameters[0].numeric.uniform.scale",
       [](auto& s) {
         s.mutable_parameters(0)->mutable_numeric()->mutable_uniform()->set_scale(
             static_cast<v1::Scale>(99));
       }},
      {"spec.parameters[0].numeric.distribution",
       [](auto& s) { s.mutable_parameters(0)->mutable_numeric()->clear_uniform(); }},
      {"spec.parameters[1].numeric.quantum",
       [](auto& s) { s.mutable_parameters(1)->mutable_numeric()->set_quantum(-1); }},
      {"spec.parameters[4].categorical.probabilities",
       [](auto& s) { s.mutable_parameters(4)->mutable_categorical()->add_probabilities(0.1); }},
      {"spec.parameters[4].categorical.values[0]",
       [](auto& s) { s.mutable_parameters(4)->mutable_categorical()->mutable_values(0)->Clear(); }},
      {"spec.parameters[4].categorical.values[4]",
       [](auto& s) {
         s.mutable_parameters(4)->mutable_categorical()->mutable_values(4)->set_json_value("[1");
       }},
      {"spec.parameters[5].domain", [](auto& s) { s.mutable_parameters(5)->clear_constant(); }},
      {"spec.parameters[5].constant.value",
       [](auto& s) {
         s.mutable_parameters(5)->mutable_constant()->mutable_value()->set_float_value(kNan);
       }},
      {"spec.metrics[0].goal",
       [](auto& s) { s.mutable_metrics(0)->set_goal(static_cast<v1::Goal>(9)); }},
      {"spec.metrics[0].target", [](auto& s) { s.mutable_metrics(0)->set_target(kNan); }},
      {"spec.objective.last_k", [](auto& s) { s.mutable_objective()->set_last_k(0); }},
      {"spec.budget.run_cap", [](auto& s) { s.mutable_budget()->set_run_cap(0); }},
      {"spec.budget.wall_clock_s",
       [](auto& s) { s.mutable_budget()->set_wall_clock_s(kInfinity); }},
      {"spec.retries.max_retries", [](auto& s) { s.mutable_retries()->set_max_retries(-1); }},
      {"spec.settings_json", [](auto& s) { s.set_settings_json("[]"); }},
      {"spec.settings_json", [](auto& s) { s.set_settings_json(std::string(100'000, '[')); }},
  };
  for (const auto& [field, edit] : edits) {
    v1::StudySpec spec = FullSpec();
    edit(spec);
    const auto converted = FromWire(spec);
    ASSERT_EQ(converted.status().code(), StatusCode::kInvalidArgument) << field;
    EXPECT_EQ(DetailOf(converted.status()).subject, field);
    EXPECT_FALSE(DetailOf(converted.status()).mend.empty()) << field;
  }
}

TEST(ConvertTest, SettingsAndValuesBecomeCanonical) {
  v1::StudySpec spec = FullSpec();
  spec.set_settings_json(" { \"b\": 1, \"a\": 2 } ");
  EXPECT_EQ(FromWire(spec)->settings_json, "{\"a\":2,\"b\":1}");
  spec.clear_settings_json();
  EXPECT_EQ(FromWire(spec)->settings_json, "{}");
  v1::Value value;
  value.set_json_value(" 3 ");
  EXPECT_EQ(*FromWire(value, {"v"}), ParamValue(int64_t{3}));
}

v1::Lease SomeLease() {
  v1::Lease lease;
  lease.set_study("s");
  lease.set_trial(1);
  lease.set_attempt(1);
  lease.set_token(std::string(16, 't'));
  return lease;
}
v1::ReportRequest SomeReport() {
  v1::ReportRequest report;
  *report.mutable_lease() = SomeLease();
  report.set_sequence(1);
  auto* measurement = report.add_measurements();
  (*measurement->mutable_metrics())["b"] = 1;
  (*measurement->mutable_metrics())["a"] = kNan;
  return report;
}

TEST(ConvertTest, AReportKeepsNanSortsMetricsAndTakesTheGivenTimeForNone) {
  const Timestamp now{std::chrono::microseconds(5)};
  const auto report = FromWire(SomeReport(), now);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->measurements.size(), 1U);
  EXPECT_EQ(report->measurements[0].time, now);
  EXPECT_EQ(report->measurements[0].metrics[0].name, "a");
  EXPECT_TRUE(std::isnan(report->measurements[0].metrics[0].value));
}

TEST(ConvertTest, BadReportsAreRefused) {
  using Edit = std::function<void(v1::ReportRequest&)>;
  const std::vector<std::pair<std::string, Edit>> edits = {
      {"lease.token", [](auto& r) { r.mutable_lease()->set_token("short"); }},
      {"lease.trial", [](auto& r) { r.mutable_lease()->set_trial(0); }},
      {"lease.attempt", [](auto& r) { r.mutable_lease()->set_attempt(-1); }},
      {"lease.study", [](auto& r) { r.mutable_lease()->clear_study(); }},
      {"sequence", [](auto& r) { r.set_sequence(0); }},
      {"measurements[0].step", [](auto& r) { r.mutable_measurements(0)->set_step(-1); }},
      {"measurements[0].time",
       [](auto& r) { r.mutable_measurements(0)->mutable_time()->set_seconds(INT64_MAX); }},
      {"measurements[0].metrics",
       [](auto& r) { (*r.mutable_measurements(0)->mutable_metrics())[""] = 1; }},
      {"measurements[0].gradient",
       [](auto& r) { r.mutable_measurements(0)->mutable_gradient()->set_small_batch_size(-1); }},
      {"total_steps", [](auto& r) { r.set_total_steps(-5); }},
      {"measurements",
       [](auto& r) {
         for (int i = 0; i < 1001; ++i) r.add_measurements();
       }},
  };
  for (const auto& [field, edit] : edits) {
    v1::ReportRequest report = SomeReport();
    edit(report);
    const auto converted = FromWire(report, Timestamp());
    ASSERT_EQ(converted.status().code(), StatusCode::kInvalidArgument) << field;
    EXPECT_EQ(DetailOf(converted.status()).subject, field);
  }
}

TEST(Contract26, CheckpointPathsStayInTheTrialsFolder) {
  v1::RegisterCheckpointRequest request;
  *request.mutable_lease() = SomeLease();
  request.set_sequence(1);
  request.mutable_checkpoint()->set_sha256(std::string(64, '0'));
  for (const std::string& path :
       {std::string("a"), std::string("a/b..c/..d"), std::string("./x")}) {
    request.mutable_checkpoint()->set_path(path);
    EXPECT_TRUE(FromWire(request).ok()) << path;
  }
  for (const std::string& path :
       {std::string(), std::string("/etc/passwd"), std::string(".."), std::string("a/../../b"),
        std::string("a/.."), std::string("a\0b", 3), std::string(5000, 'x')}) {
    request.mutable_checkpoint()->set_path(path);
    EXPECT_EQ(FromWire(request).status().code(), StatusCode::kInvalidArgument) << path;
  }
}

TEST(Contract12, DigestsLeaveOutSequenceAndCatchingUpAndNothingElse) {
  v1::ReportRequest report = SomeReport();
  const Digest digest = DigestOf(report);
  report.set_sequence(9);
  report.set_catching_up(true);
  EXPECT_EQ(DigestOf(report), digest);
  report.mutable_measurements(0)->set_step(1);
  EXPECT_NE(DigestOf(report), digest);
  v1::CompleteRequest complete;
  *complete.mutable_lease() = SomeLease();
  complete.set_sequence(1);
  complete.mutable_finished();
  complete.mutable_next()->set_worker("w");
  complete.mutable_next()->set_sequence(4);
  v1::SuggestRequest alone = complete.next();
  alone.set_study("s");
  const auto command = FromWire(complete, RandomTokens, Timestamp());
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(command->next->call.digest, FromWire(alone, RandomTokens)->call.digest);
}

TEST(CallsTest, TokensAreFresh) {
  std::set<Token> seen;
  for (int i = 0; i < 10; ++i) {
    for (const Token& token : RandomTokens(100)) EXPECT_TRUE(seen.insert(token).second);
  }
}

TEST(GateTest, TellsWhoMayCall) {
  EXPECT_TRUE(Gate("").Check({}).ok());
  EXPECT_TRUE(Gate("").Check({"1", "Bearer anything"}).ok());
  EXPECT_EQ(DetailOf(Gate("").Check({"2", {}})).code, "VERSION_MISMATCH");
  const Gate gate("t0ken");
  EXPECT_TRUE(gate.Check({"1", "Bearer t0ken"}).ok());
  for (const char* authorization : {"t0ken", "Basic t0ken", "bearer t0ken", ""}) {
    EXPECT_EQ(DetailOf(gate.Check({{}, authorization})).code, "TOKEN_MISSING") << authorization;
  }
  for (const char* authorization : {"Bearer ", "Bearer t0ke", "Bearer t0kenx", "Bearer T0ken"}) {
    EXPECT_EQ(DetailOf(gate.Check({{}, authorization})).code, "TOKEN_WRONG") << authorization;
  }
}

TEST(AccountsTest, CountsCallsByWhoseFaultTheyEndedIn) {
  auto accounts = Accounts::Open(CallLog::kOff, "");
  ASSERT_TRUE(accounts.ok());
  (*accounts)->Note(Method::kReport, {"", "", absl::OkStatus(), std::chrono::microseconds(10)});
  (*accounts)->Note(Method::kReport,
                    {"", "", absl::NotFoundError(""), std::chrono::microseconds(20)});
  (*accounts)->Note(Method::kReport,
                    {"", "", absl::UnavailableError(""), std::chrono::microseconds(30)});
  const MethodCount count = (*accounts)->count(Method::kReport);
  EXPECT_EQ(count.calls, 3);
  EXPECT_EQ(count.refused, 1);
  EXPECT_EQ(count.failed, 1);
  EXPECT_EQ(count.total.count(), 60);
  EXPECT_EQ((*accounts)->count(Method::kRenew).calls, 0);
  EXPECT_EQ(DetailOf(Accounts::Open(CallLog::kAll, "/proc/none/log").status()).code, "LOG_FILE");
}

TEST(AccountsTest, AnEndThatTheServerWasToldToMakeIsNoFailure) {
  EXPECT_FALSE(IsFailure(
      Error(StatusCode::kUnavailable, "the service is shutting down", {"SHUTTING_DOWN", "", ""})));
  EXPECT_TRUE(IsFailure(Error(StatusCode::kUnavailable, "full", {"STORE_FULL", "", ""})));
}

TEST(LineBoundTest, SoManyLinesInAWhileAndThenOnlyTheirNumber) {
  LineBound bound;
  const std::chrono::steady_clock::time_point begin{};
  for (int i = 0; i < LineBound::kMostLines; ++i) EXPECT_EQ(bound.Take(begin), 0);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(bound.Take(begin + std::chrono::seconds(9)), std::nullopt);
  EXPECT_EQ(bound.Take(begin + LineBound::kWindow), 1000);
  EXPECT_EQ(bound.Take(begin + LineBound::kWindow), 0);
}

TEST(PagesTest, APageEndsEarlyAtItsBytesAndStaysWhole) {
  StudyView view;
  view.study.spec = std::make_shared<StudySpec>();
  Trial trial;
  for (int i = 1; i <= 10; ++i) {
    trial.id = i;
    trial.attributes["notes"] = std::string(1 << 20, 'x');
    view.study.trials.push_back(Cow<Trial>(trial));
  }
  v1::ListTrialsRequest request;
  std::vector<int64_t> ids;
  do {
    const auto page = ListTrials(view, request);
    ASSERT_TRUE(page.ok());
    EXPECT_LT(page->ByteSizeLong(), 4U << 20);
    for (const auto& listed : page->trials()) ids.push_back(listed.id());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(ids, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST(PagesTest, MeasurementsArePagedAndUnknownTrialsRefused) {
  StudyView view;
  view.study.spec = std::make_shared<StudySpec>();
  Trial trial;
  trial.id = 1;
  for (int i = 0; i < 2500; ++i) {
    Measurement measurement;
    measurement.step = i;
    trial.measurements.push_back(measurement);
  }
  view.study.trials.push_back(Cow<Trial>(trial));
  v1::GetTrialRequest request;
  request.set_trial(1);
  EXPECT_EQ(GetTrial(view, request)->trial().measurements_size(), 1000);
  EXPECT_EQ(GetTrial(view, request)->trial().measurement_count(), 2500);
  request.set_skip_measurements(2000);
  EXPECT_EQ(GetTrial(view, request)->trial().measurements_size(), 500);
  EXPECT_EQ(GetTrial(view, request)->trial().measurements(0).step(), 2000);
  request.set_skip_measurements(INT64_MAX);
  EXPECT_EQ(GetTrial(view, request)->trial().measurements_size(), 0);
  request.set_max_measurements(10'001);
  EXPECT_EQ(GetTrial(view, request).status().code(), StatusCode::kInvalidArgument);
  request.set_max_measurements(0);
  request.set_trial(2);
  EXPECT_EQ(DetailOf(GetTrial(view, request).status()).code, "TRIAL_NOT_FOUND");
}

TEST(PagesTest, AWorkersListIsMadeOfWhatItHoldsAndNothingElseIsLookedAt) {
  StudyView view;
  view.study.spec = std::make_shared<StudySpec>();
  for (int i = 1; i <= 6; ++i) {
    Trial trial;
    trial.id = i;
    trial.state = i == 5 ? TrialState::kPaused : TrialState::kRunning;
    trial.objective = -i;
    view.study.trials.push_back(Cow<Trial>(std::move(trial)));
  }
  const std::vector<TrialId> held = {2, 4, 5};
  v1::ListTrialsRequest request;
  request.set_worker("w");
  request.set_page_size(2);
  const auto ids = [&] {
    std::vector<int64_t> all;
    request.clear_page_token();
    do {
      const auto page = ListTrials(view, request, held);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) break;
      for (const auto& listed : page->trials()) all.push_back(listed.id());
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty() && all.size() < 20);
    return all;
  };
  EXPECT_EQ(ids(), (std::vector<int64_t>{2, 4, 5}));
  request.set_descending(true);
  EXPECT_EQ(ids(), (std::vector<int64_t>{5, 4, 2}));
  request.set_sort_metric("objective");
  EXPECT_EQ(ids(), (std::vector<int64_t>{2, 4, 5}));
  request.clear_sort_metric();
  request.add_states(v1::TRIAL_STATE_RUNNING);
  EXPECT_EQ(ids(), (std::vector<int64_t>{4, 2}));
}

TEST(PagesTest, CheckpointsArePagedFromTheLastOneBack) {
  StudyView view;
  view.study.spec = std::make_shared<StudySpec>();
  Trial trial;
  trial.id = 1;
  for (int step = 1; step <= 2000; ++step) {
    trial.checkpoints.push_back({step, std::string(4000, 'p'), std::string(64, 'a'), 1, 1});
  }
  view.study.trials.push_back(Cow<Trial>(trial));
  v1::GetTrialRequest request;
  request.set_trial(1);
  int64_t expected = 2000;
  int pages = 0;
  while (expected > 0 && pages < 100) {
    request.set_skip_checkpoints(2000 - expected);
    const auto page = GetTrial(view, request);
    ASSERT_TRUE(page.ok());
    EXPECT_LT(page->ByteSizeLong(), size_t{3} << 20);
    EXPECT_EQ(page->trial().checkpoint_count(), 2000);
    const auto& shown = page->trial().checkpoints();
    ASSERT_FALSE(shown.empty());
    EXPECT_EQ(shown.rbegin()->step(), expected);
    expected = shown.begin()->step() - 1;
    ++pages;
  }
  EXPECT_EQ(expected, 0);
  EXPECT_GT(pages, 2);
  request.set_skip_checkpoints(INT64_MAX);
  EXPECT_TRUE(GetTrial(view, request)->trial().checkpoints().empty());
}

}  // namespace
}  // namespace jizi::tuner
