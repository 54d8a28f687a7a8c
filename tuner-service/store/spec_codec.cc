#include "tuner-service/store/spec_codec.h"

#include <type_traits>
#include <utility>
#include <vector>

namespace jizi::tuner {
namespace {

template <typename Field>
StatusOr<std::vector<ParamValue>> FromStoredValues(const Field& field) {
  std::vector<ParamValue> values;
  values.reserve(static_cast<size_t>(field.size()));
  for (const stored::Value& value : field) values.push_back(TRY(FromStored(value)));
  return values;
}

void PutNumeric(const NumericDomain& domain, stored::NumericDomain* message) {
  std::visit(
      [&](const auto& distribution) {
        using T = std::decay_t<decltype(distribution)>;
        if constexpr (std::is_same_v<T, Uniform>) {
          stored::Uniform* uniform = message->mutable_uniform();
          uniform->set_min(distribution.min);
          uniform->set_max(distribution.max);
          uniform->set_scale(ToStoredEnum(distribution.scale));
        } else if constexpr (std::is_same_v<T, Normal>) {
          stored::Normal* normal = message->mutable_normal();
          normal->set_mu(distribution.mu);
          normal->set_sigma(distribution.sigma);
          normal->set_log(distribution.log);
        } else {
          static_assert(std::is_same_v<T, Beta>);
          stored::Beta* beta = message->mutable_beta();
          beta->set_a(distribution.a);
          beta->set_b(distribution.b);
        }
      },
      domain.distribution);
  message->set_quantum(domain.quantum);
  message->set_integral(domain.integral);
}

StatusOr<NumericDomain> ReadNumeric(const stored::NumericDomain& message) {
  NumericDomain domain;
  switch (message.distribution_case()) {
    case stored::NumericDomain::kUniform: {
      const stored::Uniform& uniform = message.uniform();
      const Scale scale = TRY(FromStoredEnum(uniform.scale(), Scale::kInverseLog));
      domain.distribution = Uniform{uniform.min(), uniform.max(), scale};
      break;
    }
    case stored::NumericDomain::kNormal:
      domain.distribution =
          Normal{message.normal().mu(), message.normal().sigma(), message.normal().log()};
      break;
    case stored::NumericDomain::kBeta:
      domain.distribution = Beta{message.beta().a(), message.beta().b()};
      break;
    case stored::NumericDomain::DISTRIBUTION_NOT_SET:
      return Damaged("a numeric parameter without a distribution");
  }
  domain.quantum = message.quantum();
  domain.integral = message.integral();
  return domain;
}

void PutParameter(const ParameterSpec& parameter, stored::ParameterSpec* message) {
  message->set_name(parameter.name);
  std::visit(
      [&](const auto& domain) {
        using T = std::decay_t<decltype(domain)>;
        if constexpr (std::is_same_v<T, NumericDomain>) {
          PutNumeric(domain, message->mutable_numeric());
        } else if constexpr (std::is_same_v<T, CategoricalDomain>) {
          stored::CategoricalDomain* categorical = message->mutable_categorical();
          for (const ParamValue& value : domain.values) ToStored(value, categorical->add_values());
          for (const double p : domain.probabilities) categorical->add_probabilities(p);
        } else {
          static_assert(std::is_same_v<T, ConstantDomain>);
          ToStored(domain.value, message->mutable_constant()->mutable_value());
        }
      },
      parameter.domain);
  for (const Condition& condition : parameter.when) {
    stored::Condition* entry = message->add_when();
    entry->set_parent(condition.parent);
    for (const ParamValue& value : condition.any_of) ToStored(value, entry->add_any_of());
  }
}

StatusOr<ParameterSpec> ReadParameter(const stored::ParameterSpec& message) {
  ParameterSpec parameter;
  parameter.name = message.name();
  switch (message.domain_case()) {
    case stored::ParameterSpec::kNumeric:
      parameter.domain = TRY(ReadNumeric(message.numeric()));
      break;
    case stored::ParameterSpec::kCategorical: {
      CategoricalDomain categorical;
      categorical.values = TRY(FromStoredValues(message.categorical().values()));
      const auto& probabilities = message.categorical().probabilities();
      categorical.probabilities.assign(probabilities.begin(), probabilities.end());
      parameter.domain = std::move(categorical);
      break;
    }
    case stored::ParameterSpec::kConstant:
      parameter.domain = ConstantDomain{TRY(FromStored(message.constant().value()))};
      break;
    case stored::ParameterSpec::DOMAIN_NOT_SET:
      return Damaged("parameter '" + message.name() + "' without a domain");
  }
  for (const stored::Condition& entry : message.when()) {
    parameter.when.push_back({entry.parent(), TRY(FromStoredValues(entry.any_of()))});
  }
  return parameter;
}

}  // namespace

Status Damaged(const std::string& what) {
  return Error(
      StatusCode::kDataLoss, "the log is damaged: " + what,
      {"LOG_DAMAGED", "log",
       "restore the file from a copy, or save what is readable with: sqlite3 FILE .recover"});
}

void ToStored(const ParamValue& value, stored::Value* message) {
  std::visit(
      [&](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, bool>) {
          message->set_bool_value(held);
        } else if constexpr (std::is_same_v<T, int64_t>) {
          message->set_int_value(held);
        } else if constexpr (std::is_same_v<T, double>) {
          message->set_float_value(held);
        } else if constexpr (std::is_same_v<T, std::string>) {
          message->set_string_value(held);
        } else {
          static_assert(std::is_same_v<T, JsonText>);
          message->mutable_json_value()->set_text(held.text);
        }
      },
      value);
}

StatusOr<ParamValue> FromStored(const stored::Value& message) {
  switch (message.kind_case()) {
    case stored::Value::kFloatValue:
      return ParamValue(message.float_value());
    case stored::Value::kIntValue:
      return ParamValue(static_cast<int64_t>(message.int_value()));
    case stored::Value::kBoolValue:
      return ParamValue(message.bool_value());
    case stored::Value::kStringValue:
      return ParamValue(message.string_value());
    case stored::Value::kJsonValue:
      return ParamValue(JsonText{message.json_value().text()});
    case stored::Value::KIND_NOT_SET:
      break;
  }
  return Damaged("a value without a kind");
}

void ToStored(const Budget& budget, stored::Budget* message) {
  if (budget.run_cap) message->set_run_cap(*budget.run_cap);
  if (budget.wall_clock) message->set_wall_clock_s(budget.wall_clock->count());
}

Budget FromStored(const stored::Budget& message) {
  Budget budget;
  if (message.has_run_cap()) budget.run_cap = message.run_cap();
  if (message.has_wall_clock_s()) {
    budget.wall_clock = std::chrono::duration<double>(message.wall_clock_s());
  }
  return budget;
}

void ToStored(const RetryPolicy& retries, stored::RetryPolicy* message) {
  message->set_max_retries(retries.max_retries);
  message->set_max_lost_workers(retries.max_lost_workers);
}

RetryPolicy FromStored(const stored::RetryPolicy& message) {
  RetryPolicy retries;
  retries.max_retries = message.max_retries();
  retries.max_lost_workers = message.max_lost_workers();
  return retries;
}

void ToStored(const StudySpec& spec, stored::StudySpec* message) {
  message->set_name(spec.name);
  for (const ParameterSpec& parameter : spec.space.parameters) {
    PutParameter(parameter, message->add_parameters());
  }
  for (const MetricSpec& metric : spec.metrics) {
    stored::MetricSpec* entry = message->add_metrics();
    entry->set_name(metric.name);
    entry->set_goal(ToStoredEnum(metric.goal));
    if (metric.target) entry->set_target(*metric.target);
  }
  message->mutable_objective()->set_kind(ToStoredEnum(spec.objective.kind));
  message->mutable_objective()->set_last_k(spec.objective.last_k);
  message->set_method(spec.method);
  message->set_settings_json(spec.settings_json);
  message->set_seed(spec.seed);
  ToStored(spec.budget, message->mutable_budget());
  ToStored(spec.retries, message->mutable_retries());
  ToStoredTexts(spec.attributes, message->mutable_attributes());
}

StatusOr<StudySpec> FromStored(const stored::StudySpec& message) {
  StudySpec spec;
  spec.name = message.name();
  for (const stored::ParameterSpec& parameter : message.parameters()) {
    spec.space.parameters.push_back(TRY(ReadParameter(parameter)));
  }
  for (const stored::MetricSpec& entry : message.metrics()) {
    MetricSpec metric;
    metric.name = entry.name();
    metric.goal = TRY(FromStoredEnum(entry.goal(), Goal::kMaximize));
    if (entry.has_target()) metric.target = entry.target();
    spec.metrics.push_back(std::move(metric));
  }
  spec.objective.kind = TRY(FromStoredEnum(message.objective().kind(), ObjectiveKind::kMeanOfLast));
  spec.objective.last_k = message.objective().last_k();
  spec.method = message.method();
  spec.settings_json = message.settings_json();
  spec.seed = message.seed();
  spec.budget = FromStored(message.budget());
  spec.retries = FromStored(message.retries());
  spec.attributes = FromStoredTexts(message.attributes());
  return spec;
}

}  // namespace jizi::tuner
