#include "tests/schedulers/support.h"

#include <cstdlib>

namespace jizi::tuner {

uint64_t TestSeed() {
  const char* given = std::getenv("JIZI_TEST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

ParameterSpec Real(std::string name, double min, double max, Scale scale, double quantum) {
  return {std::move(name), NumericDomain{Uniform{min, max, scale}, quantum, false}, {}};
}
ParameterSpec Int(std::string name, double min, double max, double step) {
  return {std::move(name), NumericDomain{Uniform{min, max, Scale::kLinear}, step, true}, {}};
}
ParameterSpec Choice(std::string name, std::vector<ParamValue> values,
                     std::vector<double> probabilities) {
  return {std::move(name), CategoricalDomain{std::move(values), std::move(probabilities)}, {}};
}
ParameterSpec Fixed(std::string name, ParamValue value) {
  return {std::move(name), ConstantDomain{std::move(value)}, {}};
}
ParameterSpec When(ParameterSpec parameter, std::string parent, std::vector<ParamValue> any_of) {
  parameter.when.push_back({std::move(parent), std::move(any_of)});
  return parameter;
}

Space RandomSpace(Rng& rng, bool finite) {
  Space space;
  const size_t count = 1 + rng.Below(5);
  for (size_t i = 0; i < count; ++i) {
    const std::string name = "p" + std::to_string(i);
    ParameterSpec parameter;
    switch (rng.Below(finite ? 5 : 9)) {
      case 0:
        parameter = Choice(name, {int64_t{1}, 1.0, std::string("1"), true});
        break;
      case 1:
        parameter = Choice(name, {std::string("a"), JsonText{"[1,2]"}}, {0.9, 0.1});
        break;
      case 2:
        parameter = Int(name, -2, static_cast<double>(rng.Below(4)));
        break;
      case 3:
        parameter = Real(name, 0.1, 0.5, Scale::kLog, 0.1);
        break;
      case 4:
        parameter = Fixed(name, 0.5);
        break;
      case 5:
        parameter = Real(name, 1e-5, 1e-1, Scale::kLog);
        break;
      case 6:
        parameter = {name, NumericDomain{Normal{1, 2, rng.Below(2) == 0}, 0, false}, {}};
        break;
      case 7:
        parameter = {name, NumericDomain{Beta{2, 0.5}, 0, false}, {}};
        break;
      default:
        parameter = {name, NumericDomain{Normal{0, 3, rng.Below(2) == 0}, 2, true}, {}};
    }
    for (int condition = 0; condition < 2 && i > 0 && rng.Below(2) == 0; ++condition) {
      const ParameterSpec& parent = space.parameters[rng.Below(i)];
      const auto values = GridValues(parent.domain);
      if (!values) continue;
      std::vector<ParamValue> any_of = {(*values)[rng.Below(values->size())],
                                        (*values)[rng.Below(values->size())]};
      parameter.when.push_back({parent.name, std::move(any_of)});
    }
    space.parameters.push_back(std::move(parameter));
  }
  return space;
}

StudySpec SpecOf(Space space, std::string method, std::string settings, uint64_t seed) {
  StudySpec spec;
  spec.name = "study";
  spec.space = std::move(space);
  spec.metrics = {{.name = "loss", .goal = Goal::kMinimize, .target = {}}};
  spec.method = std::move(method);
  spec.settings_json = std::move(settings);
  spec.seed = seed;
  return spec;
}

Study StudyOf(StudySpec spec) {
  Study study;
  study.spec = std::make_shared<const StudySpec>(std::move(spec));
  return study;
}

void Accept(Study& study, const std::vector<Proposal>& proposals, int64_t decision,
            TrialState state) {
  for (const Proposal& proposal : proposals) {
    Trial trial;
    trial.id = static_cast<TrialId>(study.trials.size()) + 1;
    trial.state = state;
    trial.params = proposal.params;
    trial.tags = proposal.tags;
    trial.why = proposal.why;
    trial.decision = decision;
    if (state == TrialState::kCompleted) {
      trial.measurements.push_back({.attempt = 1,
                                    .rollback = 0,
                                    .step = 1,
                                    .time = {},
                                    .metrics = {{"loss", static_cast<double>(trial.id % 5)}},
                                    .gradient = {}});
      trial.objective = ObjectiveOf(*study.spec, trial);
    }
    ++study.counts[state];
    study.trials.push_back(Cow<Trial>(std::move(trial)));
  }
}

void Enqueue(Study& study, Params params) {
  Proposal by_hand;
  by_hand.params = std::move(params);
  Accept(study, {by_hand}, 0, TrialState::kQueued);
}

std::vector<Params> AllPoints(const Space& space) {
  std::vector<Params> points = {{}};
  for (const ParameterSpec& parameter : space.parameters) {
    const std::vector<ParamValue> values = GridValues(parameter.domain).value();
    std::vector<Params> longer;
    for (const Params& point : points) {
      if (!IsActive(parameter, point)) {
        longer.push_back(point);
        continue;
      }
      for (const ParamValue& value : values) {
        longer.push_back(point);
        longer.back()[parameter.name] = value;
      }
    }
    points = std::move(longer);
  }
  return points;
}

}  // namespace jizi::tuner
