// Studies: specifications, spaces and values, both ways.

#include <google/protobuf/util/time_util.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "proto/client.h"
#include "tuner-service/rpc/convert.h"
#include "tuner-service/rpc/limits.h"

namespace jizi::tuner {
namespace {

constexpr double kMaxNumber = 1.7976931348623157e308;

StatusOr<Scale> FromWire(v1::Scale scale, const Field& field) {
  switch (scale) {
    case v1::SCALE_UNSPECIFIED:
    case v1::SCALE_LINEAR:
      return Scale::kLinear;
    case v1::SCALE_LOG:
      return Scale::kLog;
    case v1::SCALE_INVERSE_LOG:
      return Scale::kInverseLog;
    default:
      return Refuse(field, "is no scale that this server knows", "give linear, log or inverse log");
  }
}

v1::Scale ScaleToWire(Scale scale) {
  switch (scale) {
    case Scale::kLog:
      return v1::SCALE_LOG;
    case Scale::kInverseLog:
      return v1::SCALE_INVERSE_LOG;
    case Scale::kLinear:
      break;
  }
  return v1::SCALE_LINEAR;
}

StatusOr<std::vector<ParamValue>> ValuesFromWire(
    const google::protobuf::RepeatedPtrField<v1::Value>& values, const Field& field) {
  TRY(CheckCount(field, values.size(), 0, kMaxListed));
  std::vector<ParamValue> converted;
  converted.reserve(static_cast<size_t>(values.size()));
  for (int i = 0; i < values.size(); ++i) converted.push_back(TRY(FromWire(values[i], field / i)));
  return converted;
}

StatusOr<NumericDomain> FromWire(const v1::NumericDomain& numeric, const Field& field) {
  NumericDomain domain;
  switch (numeric.distribution_case()) {
    case v1::NumericDomain::kUniform: {
      const v1::UniformDistribution& uniform = numeric.uniform();
      TRY(CheckFinite(field / "uniform.min", uniform.min()));
      TRY(CheckFinite(field / "uniform.max", uniform.max()));
      domain.distribution = Uniform{uniform.min(), uniform.max(),
                                    TRY(FromWire(uniform.scale(), field / "uniform.scale"))};
      break;
    }
    case v1::NumericDomain::kNormal: {
      const v1::NormalDistribution& normal = numeric.normal();
      TRY(CheckFinite(field / "normal.mu", normal.mu()));
      TRY(CheckFinite(field / "normal.sigma", normal.sigma()));
      domain.distribution = Normal{normal.mu(), normal.sigma(), normal.log()};
      break;
    }
    case v1::NumericDomain::kBeta:
      TRY(CheckFinite(field / "beta.a", numeric.beta().a()));
      TRY(CheckFinite(field / "beta.b", numeric.beta().b()));
      domain.distribution = Beta{numeric.beta().a(), numeric.beta().b()};
      break;
    case v1::NumericDomain::DISTRIBUTION_NOT_SET:
      return Refuse(field / "distribution", "is not set", "give uniform, normal or beta");
  }
  TRY(CheckRange(field / "quantum", numeric.quantum(), 0, kMaxNumber));
  domain.quantum = numeric.quantum();
  domain.integral = numeric.integral();
  if (domain.integral && domain.quantum == 0) domain.quantum = 1;
  return domain;
}

StatusOr<CategoricalDomain> FromWire(const v1::CategoricalDomain& categorical, const Field& field) {
  CategoricalDomain domain;
  domain.values = TRY(ValuesFromWire(categorical.values(), field / "values"));
  if (categorical.probabilities_size() != 0 &&
      categorical.probabilities_size() != categorical.values_size()) {
    return Refuse(field / "probabilities",
                  "has " + std::to_string(categorical.probabilities_size()) + " entries for " +
                      std::to_string(categorical.values_size()) + " values",
                  "give one for each value, or none");
  }
  for (int i = 0; i < categorical.probabilities_size(); ++i) {
    TRY(CheckRange(field / "probabilities" / i, categorical.probabilities(i), 0, 1));
    domain.probabilities.push_back(categorical.probabilities(i));
  }
  return domain;
}

StatusOr<Domain> DomainFromWire(const v1::ParameterSpec& parameter, const Field& field) {
  switch (parameter.domain_case()) {
    case v1::ParameterSpec::kNumeric:
      return Domain(TRY(FromWire(parameter.numeric(), field / "numeric")));
    case v1::ParameterSpec::kCategorical:
      return Domain(TRY(FromWire(parameter.categorical(), field / "categorical")));
    case v1::ParameterSpec::kBoolean:
      return Domain(CategoricalDomain{{ParamValue(false), ParamValue(true)}, {}});
    case v1::ParameterSpec::kConstant:
      return Domain(
          ConstantDomain{TRY(FromWire(parameter.constant().value(), field / "constant.value"))});
    case v1::ParameterSpec::DOMAIN_NOT_SET:
      break;
  }
  return Refuse(field / "domain", "is not set", "give numeric, categorical, boolean or constant");
}

StatusOr<ParameterSpec> FromWire(const v1::ParameterSpec& parameter, const Field& field) {
  ParameterSpec spec;
  TRY(CheckName(field / "name", parameter.name()));
  spec.name = parameter.name();
  spec.domain = TRY(DomainFromWire(parameter, field));
  TRY(CheckCount(field / "when", parameter.when_size(), 0, kMaxListed));
  for (int i = 0; i < parameter.when_size(); ++i) {
    const v1::Condition& condition = parameter.when(i);
    TRY(CheckName(field / "when" / i / "parent", condition.parent()));
    spec.when.push_back({condition.parent(),
                         TRY(ValuesFromWire(condition.any_of(), field / "when" / i / "any_of"))});
  }
  return spec;
}

StatusOr<MetricSpec> FromWire(const v1::MetricSpec& metric, const Field& field) {
  MetricSpec spec;
  TRY(CheckName(field / "name", metric.name()));
  spec.name = metric.name();
  switch (metric.goal()) {
    case v1::GOAL_UNSPECIFIED:
    case v1::GOAL_MINIMIZE:
      spec.goal = Goal::kMinimize;
      break;
    case v1::GOAL_MAXIMIZE:
      spec.goal = Goal::kMaximize;
      break;
    default:
      return Refuse(field / "goal", "is no goal that this server knows",
                    "give minimize or maximize");
  }
  if (metric.has_target()) {
    TRY(CheckFinite(field / "target", metric.target()));
    spec.target = metric.target();
  }
  return spec;
}

StatusOr<Objective> FromWire(const v1::Objective& objective, const Field& field) {
  switch (objective.kind()) {
    case v1::OBJECTIVE_KIND_UNSPECIFIED:
    case v1::OBJECTIVE_KIND_LAST:
      return Objective{ObjectiveKind::kLast, 1};
    case v1::OBJECTIVE_KIND_BEST:
      return Objective{ObjectiveKind::kBest, 1};
    case v1::OBJECTIVE_KIND_MEAN_OF_LAST:
      TRY(CheckCount(field / "last_k", objective.last_k(), 1, 1'000'000));
      return Objective{ObjectiveKind::kMeanOfLast, objective.last_k()};
    default:
      return Refuse(field / "kind", "is no kind that this server knows",
                    "give last, best or mean of last");
  }
}

// Canonical text, so that two ways of writing the same settings are no difference
// (docs/contracts.md, 15).
StatusOr<std::string> SettingsFromWire(const std::string& text, const Field& field) {
  if (text.empty()) return std::string("{}");
  TRY(CheckSize(field, text.size(), kMaxSettingsBytes));
  const StatusOr<v1::Value> value = ValueFromJsonText(text);
  if (!value.ok() || value->kind_case() != v1::Value::kJsonValue ||
      value->json_value().front() != '{') {
    return Refuse(field, "is no JSON object",
                  "give the scheduler's settings as one JSON object, such as {}");
  }
  return value->json_value();
}

Status ReadLimits(const v1::StudySpec& spec, StudySpec& converted) {
  if (spec.budget().has_run_cap()) {
    TRY(CheckCount({"spec.budget.run_cap"}, spec.budget().run_cap(), 1, INT64_MAX));
    converted.budget.run_cap = spec.budget().run_cap();
  }
  if (spec.budget().has_wall_clock_s()) {
    TRY(CheckRange({"spec.budget.wall_clock_s"}, spec.budget().wall_clock_s(), 0, kMaxWallClock_s));
    converted.budget.wall_clock = Seconds(spec.budget().wall_clock_s());
  }
  TRY(CheckCount({"spec.retries.max_retries"}, spec.retries().max_retries(), 0, 1'000'000));
  TRY(CheckCount({"spec.retries.max_lost_workers"}, spec.retries().max_lost_workers(), 0,
                 1'000'000));
  converted.retries.max_retries = spec.retries().max_retries();
  if (spec.retries().max_lost_workers() > 0) {
    converted.retries.max_lost_workers = spec.retries().max_lost_workers();
  }
  return absl::OkStatus();
}

v1::ParameterSpec ToWire(const ParameterSpec& parameter) {
  struct Writer {
    v1::ParameterSpec* to;
    void operator()(const NumericDomain& domain) const {
      v1::NumericDomain* numeric = to->mutable_numeric();
      if (const auto* uniform = std::get_if<Uniform>(&domain.distribution)) {
        numeric->mutable_uniform()->set_min(uniform->min);
        numeric->mutable_uniform()->set_max(uniform->max);
        numeric->mutable_uniform()->set_scale(ScaleToWire(uniform->scale));
      } else if (const auto* normal = std::get_if<Normal>(&domain.distribution)) {
        numeric->mutable_normal()->set_mu(normal->mu);
        numeric->mutable_normal()->set_sigma(normal->sigma);
        numeric->mutable_normal()->set_log(normal->log);
      } else if (const auto* beta = std::get_if<Beta>(&domain.distribution)) {
        numeric->mutable_beta()->set_a(beta->a);
        numeric->mutable_beta()->set_b(beta->b);
      }
      numeric->set_quantum(domain.quantum);
      numeric->set_integral(domain.integral);
    }
    void operator()(const CategoricalDomain& domain) const {
      for (const ParamValue& value : domain.values)
        *to->mutable_categorical()->add_values() = tuner::ToWire(value);
      for (const double p : domain.probabilities) to->mutable_categorical()->add_probabilities(p);
      if (domain.values.empty()) to->mutable_categorical();
    }
    void operator()(const ConstantDomain& domain) const {
      *to->mutable_constant()->mutable_value() = tuner::ToWire(domain.value);
    }
  };
  v1::ParameterSpec converted;
  converted.set_name(parameter.name);
  std::visit(Writer{&converted}, parameter.domain);
  for (const Condition& condition : parameter.when) {
    v1::Condition* to = converted.add_when();
    to->set_parent(condition.parent);
    for (const ParamValue& value : condition.any_of) *to->add_any_of() = tuner::ToWire(value);
  }
  return converted;
}

v1::StudyState ToWire(StudyState state) {
  switch (state) {
    case StudyState::kActive:
      return v1::STUDY_STATE_ACTIVE;
    case StudyState::kPaused:
      return v1::STUDY_STATE_PAUSED;
    case StudyState::kStopped:
      return v1::STUDY_STATE_STOPPED;
    case StudyState::kFinished:
      return v1::STUDY_STATE_FINISHED;
  }
  return v1::STUDY_STATE_UNSPECIFIED;
}

}  // namespace

StatusOr<ParamValue> FromWire(const v1::Value& value, const Field& field) {
  switch (value.kind_case()) {
    case v1::Value::kFloatValue:
      TRY(CheckFinite(field, value.float_value()));
      return ParamValue(value.float_value());
    case v1::Value::kIntValue:
      return ParamValue(value.int_value());
    case v1::Value::kBoolValue:
      return ParamValue(value.bool_value());
    case v1::Value::kStringValue:
      TRY(CheckSize(field, value.string_value().size(), kMaxTextBytes));
      return ParamValue(value.string_value());
    case v1::Value::kJsonValue: {
      TRY(CheckSize(field, value.json_value().size(), kMaxTextBytes));
      const StatusOr<v1::Value> canonical = ValueFromJsonText(value.json_value());
      if (!canonical.ok()) {
        return Refuse(field, "is no JSON value: " + std::string(canonical.status().message()),
                      "give finite JSON of at most 64 levels");
      }
      // Text of a plain number or string is that number or string.
      if (canonical->kind_case() != v1::Value::kJsonValue) return FromWire(*canonical, field);
      return ParamValue(JsonText{canonical->json_value()});
    }
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return Refuse(field, "has no value", "give a number, a bool, a text or JSON");
}

StatusOr<Params> FromWire(const google::protobuf::Map<std::string, v1::Value>& params) {
  TRY(CheckCount({"params"}, static_cast<int64_t>(params.size()), 0, kMaxListed));
  Params converted;
  for (const auto& [name, value] : params) {
    TRY(CheckName({"params"}, name));
    converted.emplace(name, TRY(FromWire(value, Field{"params"} / name)));
  }
  return converted;
}

StatusOr<Timestamp> FromWire(const google::protobuf::Timestamp& time, const Field& field) {
  using google::protobuf::util::TimeUtil;
  if (time.seconds() < TimeUtil::kTimestampMinSeconds ||
      time.seconds() > TimeUtil::kTimestampMaxSeconds || time.nanos() < 0 ||
      time.nanos() > 999'999'999) {
    return Refuse(field, "is no time", "give seconds and nanoseconds since 1970, UTC");
  }
  return Timestamp(std::chrono::microseconds(time.seconds() * 1'000'000 + time.nanos() / 1000));
}

StatusOr<std::map<std::string, std::string>> AttributesFromWire(
    const google::protobuf::Map<std::string, std::string>& attributes, const Field& field) {
  TRY(CheckCount(field, static_cast<int64_t>(attributes.size()), 0, kMaxListed));
  std::map<std::string, std::string> converted;
  for (const auto& [name, value] : attributes) {
    TRY(CheckName(field, name));
    TRY(CheckSize(field / name, value.size(), kMaxTextBytes));
    converted.emplace(name, value);
  }
  return converted;
}

StatusOr<StudySpec> FromWire(const v1::StudySpec& spec) {
  const Field field{"spec"};
  StudySpec converted;
  converted.name = spec.name();
  TRY(CheckStudyName(field / "name", spec.name()));
  TRY(CheckCount(field / "parameters", spec.parameters_size(), 0,
                 static_cast<int64_t>(kMaxParameters)));
  for (int i = 0; i < spec.parameters_size(); ++i) {
    converted.space.parameters.push_back(
        TRY(FromWire(spec.parameters(i), field / "parameters" / i)));
  }
  TRY(CheckCount(field / "metrics", spec.metrics_size(), 0, kMaxListed));
  for (int i = 0; i < spec.metrics_size(); ++i) {
    converted.metrics.push_back(TRY(FromWire(spec.metrics(i), field / "metrics" / i)));
  }
  converted.objective = TRY(FromWire(spec.objective(), field / "objective"));
  TRY(CheckName(field / "method", spec.method()));
  converted.method = spec.method();
  converted.settings_json = TRY(SettingsFromWire(spec.settings_json(), field / "settings_json"));
  converted.seed = spec.seed();
  TRY(ReadLimits(spec, converted));
  converted.attributes = TRY(AttributesFromWire(spec.attributes(), field / "attributes"));
  return converted;
}

v1::Value ToWire(const ParamValue& value) {
  struct Writer {
    v1::Value* to;
    void operator()(bool x) const { to->set_bool_value(x); }
    void operator()(int64_t x) const { to->set_int_value(x); }
    void operator()(double x) const { to->set_float_value(x); }
    void operator()(const std::string& x) const { to->set_string_value(x); }
    void operator()(const JsonText& x) const { to->set_json_value(x.text); }
  };
  v1::Value converted;
  std::visit(Writer{&converted}, value);
  return converted;
}

v1::StudySpec ToWire(const StudySpec& spec) {
  v1::StudySpec converted;
  converted.set_name(spec.name);
  for (const ParameterSpec& parameter : spec.space.parameters)
    *converted.add_parameters() = ToWire(parameter);
  for (const MetricSpec& metric : spec.metrics) {
    v1::MetricSpec* to = converted.add_metrics();
    to->set_name(metric.name);
    to->set_goal(metric.goal == Goal::kMaximize ? v1::GOAL_MAXIMIZE : v1::GOAL_MINIMIZE);
    if (metric.target) to->set_target(*metric.target);
  }
  switch (spec.objective.kind) {
    case ObjectiveKind::kLast:
      converted.mutable_objective()->set_kind(v1::OBJECTIVE_KIND_LAST);
      break;
    case ObjectiveKind::kBest:
      converted.mutable_objective()->set_kind(v1::OBJECTIVE_KIND_BEST);
      break;
    case ObjectiveKind::kMeanOfLast:
      converted.mutable_objective()->set_kind(v1::OBJECTIVE_KIND_MEAN_OF_LAST);
      converted.mutable_objective()->set_last_k(spec.objective.last_k);
      break;
  }
  converted.set_method(spec.method);
  converted.set_settings_json(spec.settings_json);
  converted.set_seed(spec.seed);
  v1::Budget* budget = converted.mutable_budget();
  if (spec.budget.run_cap) budget->set_run_cap(*spec.budget.run_cap);
  if (spec.budget.wall_clock) budget->set_wall_clock_s(spec.budget.wall_clock->count());
  converted.mutable_retries()->set_max_retries(spec.retries.max_retries);
  converted.mutable_retries()->set_max_lost_workers(spec.retries.max_lost_workers);
  converted.mutable_attributes()->insert(spec.attributes.begin(), spec.attributes.end());
  return converted;
}

v1::Study ToWire(const StudyView& view) {
  v1::Study converted = WithoutSpec(view);
  *converted.mutable_spec() = ToWire(*view.study.spec);
  return converted;
}

v1::Study WithoutSpec(const StudyView& view) {
  v1::Study converted;
  converted.set_state(ToWire(view.state));
  converted.set_state_why(view.state_why);
  *converted.mutable_created() = google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(
      view.created.time_since_epoch().count());
  const TrialCounts& counts = view.study.counts;
  v1::TrialCounts* to = converted.mutable_counts();
  to->set_queued(counts[TrialState::kQueued]);
  to->set_running(counts[TrialState::kRunning]);
  to->set_paused(counts[TrialState::kPaused]);
  to->set_completed(counts[TrialState::kCompleted]);
  to->set_stopped(counts[TrialState::kStopped]);
  to->set_infeasible(counts[TrialState::kInfeasible]);
  to->set_failed(counts[TrialState::kFailed]);
  converted.set_log_position(view.log_position);
  if (view.study.best) {
    converted.set_best_trial(*view.study.best);
    const Trial* best = view.study.Find(*view.study.best);
    if (best != nullptr && best->objective) converted.set_best_objective(*best->objective);
  }
  return converted;
}

}  // namespace jizi::tuner
