#include "tuner-service/cli/sweep_file.h"

#include <cmath>

#include "tests/cli/sweep_testing.h"

namespace jizi::tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Domain DomainOf(const std::string& written) {
  const Sweep sweep = Parsed(With("  x: " + written + "\n"));
  if (sweep.study.space.parameters.size() != 1) {
    ADD_FAILURE() << written;
    return ConstantDomain{};
  }
  return sweep.study.space.parameters[0].domain;
}

NumericDomain Real(Uniform uniform, double quantum = 0, bool integral = false) {
  return {uniform, quantum, integral};
}

struct Accepted {
  const char* written;
  Domain domain;
};

TEST(SweepFile, EveryDistributionOfWandb) {
  const double e = std::exp(1.0);
  const std::vector<Accepted> table = {
      {"{value: 3}", ConstantDomain{int64_t{3}}},
      {"{value: sgd}", ConstantDomain{std::string("sgd")}},
      {"{distribution: constant, value: 0.5}", ConstantDomain{0.5}},
      {"{values: [1, 2.0, a, true]}",
       CategoricalDomain{{int64_t{1}, 2.0, std::string("a"), true}, {}}},
      {"{distribution: categorical, values: [a]}", CategoricalDomain{{std::string("a")}, {}}},
      {"{values: [a, b], probabilities: [0.25, 0.75]}",
       CategoricalDomain{{std::string("a"), std::string("b")}, {0.25, 0.75}}},
      {"{distribution: categorical_w_probabilities, values: [a, b], probabilities: [0.5, 0.5]}",
       CategoricalDomain{{std::string("a"), std::string("b")}, {0.5, 0.5}}},
      {"{min: 1, max: 8}", Real({1, 8, Scale::kLinear}, 1, true)},
      {"{min: 1, max: 8.0}", Real({1, 8, Scale::kLinear})},
      {"{min: 0.0, max: 1}", Real({0, 1, Scale::kLinear})},
      {"{distribution: uniform, min: 0, max: 1}", Real({0, 1, Scale::kLinear})},
      {"{distribution: int_uniform, min: 2, max: 4}", Real({2, 4, Scale::kLinear}, 1, true)},
      {"{distribution: q_uniform, min: 0, max: 1, q: 0.25}", Real({0, 1, Scale::kLinear}, 0.25)},
      {"{distribution: q_uniform, min: 0, max: 64, q: 16}",
       Real({0, 64, Scale::kLinear}, 16, true)},
      {"{distribution: q_uniform, min: 0, max: 9}", Real({0, 9, Scale::kLinear}, 1, true)},
      {"{distribution: log_uniform, min: 0, max: 1}", Real({1, e, Scale::kLog})},
      {"{distribution: log_uniform_values, min: 0.001, max: 0.1}", Real({0.001, 0.1, Scale::kLog})},
      {"{distribution: q_log_uniform, min: 0, max: 3, q: 2}",
       Real({1, std::exp(3.0), Scale::kLog}, 2, true)},
      {"{distribution: q_log_uniform_values, min: 16, max: 256, q: 8}",
       Real({16, 256, Scale::kLog}, 8, true)},
      {"{distribution: inv_log_uniform, min: 0, max: 1}", Real({1 / e, 1, Scale::kInverseLog})},
      {"{distribution: inv_log_uniform_values, min: 0.1, max: 0.9}",
       Real({0.1, 0.9, Scale::kInverseLog})},
      {"{distribution: normal}", NumericDomain{Normal{0, 1, false}, 0, false}},
      {"{distribution: normal, mu: 2, sigma: 0.5}", NumericDomain{Normal{2, 0.5, false}, 0, false}},
      {"{distribution: q_normal, mu: 2, sigma: 5, q: 0.5}",
       NumericDomain{Normal{2, 5, false}, 0.5, false}},
      {"{distribution: log_normal, mu: -3}", NumericDomain{Normal{-3, 1, true}, 0, false}},
      {"{distribution: q_log_normal}", NumericDomain{Normal{0, 1, true}, 1, true}},
      {"{distribution: beta, a: 2, b: 5}", NumericDomain{Beta{2, 5}, 0, false}},
      {"{distribution: q_beta, a: 2, b: 5, q: 0.1}", NumericDomain{Beta{2, 5}, 0.1, false}},
  };
  for (const Accepted& row : table) {
    const Domain domain = DomainOf(row.written);
    const auto* numeric = std::get_if<NumericDomain>(&row.domain);
    const auto* uniform =
        numeric == nullptr ? nullptr : std::get_if<Uniform>(&numeric->distribution);
    if (uniform == nullptr || uniform->scale == Scale::kLinear) {
      EXPECT_EQ(domain, row.domain) << row.written;
      continue;
    }
    // exp() of exponents: to the last digits.
    const auto& parsed = std::get<NumericDomain>(domain);
    EXPECT_EQ(parsed.quantum, numeric->quantum) << row.written;
    EXPECT_EQ(parsed.integral, numeric->integral) << row.written;
    EXPECT_EQ(std::get<Uniform>(parsed.distribution).scale, uniform->scale) << row.written;
    EXPECT_NEAR(std::get<Uniform>(parsed.distribution).min, uniform->min, 1e-12) << row.written;
    EXPECT_NEAR(std::get<Uniform>(parsed.distribution).max, uniform->max, 1e-12) << row.written;
  }
}

TEST(SweepFile, NumbersAsPeopleWriteThem) {
  EXPECT_EQ(DomainOf("{values: [1e-5, 1e-6]}"), Domain(CategoricalDomain{{1e-5, 1e-6}, {}}));
  EXPECT_EQ(DomainOf("{value: !!float 1}"), Domain(ConstantDomain{1.0}));
  EXPECT_EQ(DomainOf("{value: !!float 1e-5}"), Domain(ConstantDomain{1e-5}));
  EXPECT_EQ(DomainOf("{value: !!str 12}"), Domain(ConstantDomain{std::string("12")}));
  EXPECT_EQ(DomainOf("{value: \"12\"}"), Domain(ConstantDomain{std::string("12")}));
  EXPECT_EQ(DomainOf("{value: 0x10}"), Domain(ConstantDomain{int64_t{16}}));
  EXPECT_EQ(DomainOf("{value: 1_000}"), Domain(ConstantDomain{int64_t{1000}}));
  EXPECT_EQ(DomainOf("{value: -9223372036854775808}"), Domain(ConstantDomain{INT64_MIN}));
  EXPECT_EQ(DomainOf("{values: [-1, 0.1, 1]}"),
            Domain(CategoricalDomain{{int64_t{-1}, 0.1, int64_t{1}}, {}}));
  EXPECT_EQ(DomainOf("{values: [True, False]}"), Domain(CategoricalDomain{{true, false}, {}}));
  EXPECT_EQ(DomainOf("{min: !!float 1e-5, max: 0.1}"), Domain(Real({1e-5, 0.1, Scale::kLinear})));
  EXPECT_EQ(DomainOf("{value: 1.2.3}"), Domain(ConstantDomain{std::string("1.2.3")}));
  EXPECT_EQ(DomainOf("{value: \"$(rm -rf /); \\n\"}"),
            Domain(ConstantDomain{std::string("$(rm -rf /); \n")}));
}

TEST(SweepFile, ListsAndDictionariesAreValues) {
  EXPECT_EQ(DomainOf("{values: [[32, 64], [64, 128]]}"),
            Domain(CategoricalDomain{{JsonText{"[32,64]"}, JsonText{"[64,128]"}}, {}}));
  EXPECT_EQ(DomainOf("{value: {b: 1.0, a: [true, null, \"x\"]}}"),
            Domain(ConstantDomain{JsonText{"{\"a\":[true,null,\"x\"],\"b\":1.0}"}}));
  EXPECT_EQ(DomainOf("{values: [null, a]}"),
            Domain(CategoricalDomain{{JsonText{"null"}, std::string("a")}, {}}));
}

TEST(SweepFile, AValueThatStandsTwiceHasTheWeightOfBoth) {
  const Sweep sweep = Parsed(With("  x: {values: [a, b, a]}\n"));
  const auto& domain = std::get<CategoricalDomain>(sweep.study.space.parameters[0].domain);
  ASSERT_EQ(domain.values.size(), 2u);
  EXPECT_DOUBLE_EQ(domain.probabilities[0], 2.0 / 3);
  EXPECT_EQ(sweep.notes.size(), 1u);
}

TEST(SweepFile, NestedGroupsAndDotsMakeOneName) {
  const Sweep sweep =
      Parsed(With("  optimizer:\n    parameters:\n      lr: {value: 1}\n      inner:\n        "
                  "parameters:\n          b: {value: 2}\n"
                  "  trainer.lr: {value: 3}\n"));
  std::vector<std::string> names;
  for (const auto& spec : sweep.study.space.parameters) names.push_back(spec.name);
  EXPECT_THAT(names, ElementsAre("optimizer.lr", "optimizer.inner.b", "trainer.lr"));
}

TEST(SweepFile, TopLevelKeys) {
  const Sweep sweep = Parsed(
      "name: résumé sweep\ndescription: a try\nproject: p\nwhatever_else: 3\nprogram: "
      "t.py\nmethod: RANDOM\nrun_cap: 12\n"
      "metric: {name: val/acc, goal: maximize, target: 0.95, impute: worst, impute_while_running: "
      "latest}\n"
      "early_terminate: {type: hyperband, min_iter: 3, eta: 2.5, strict: true}\nparameters: {x: "
      "{value: 1}}\n");
  EXPECT_EQ(sweep.study.name, "résumé sweep");
  EXPECT_EQ(sweep.study.method, "random");
  EXPECT_EQ(sweep.study.budget.run_cap, 12);
  EXPECT_EQ(sweep.study.attributes.at("description"), "a try");
  EXPECT_EQ(sweep.study.metrics, (std::vector{MetricSpec{"val/acc", Goal::kMaximize, 0.95}}));
  std::string notes;
  for (const SweepNote& note : sweep.notes)
    notes += std::to_string(note.line) + " " + note.text + "\n";
  EXPECT_THAT(notes, HasSubstr("3 `project` has no meaning here"));
  EXPECT_THAT(notes, HasSubstr("4 `whatever_else` is not known and is left alone"));
  EXPECT_THAT(notes, HasSubstr("9 early_terminate is read, but not yet in force"));
}

TEST(SweepFile, NameIsTheStemUnlessSaid) {
  const auto sweep = ParseSweep(With("  x: {value: 1}\n"), "/a/b/mnist.v2.yaml");
  ASSERT_TRUE(sweep.ok());
  EXPECT_EQ(sweep->study.name, "mnist.v2");
  EXPECT_EQ(sweep->launch.folder, "/a/b");
}

TEST(SweepFile, MetricIsMinimizedAsInWandbAndMayBeMissing) {
  EXPECT_EQ(Parsed(With("  x: {value: 1}\n", "metric: {name: loss}\n")).study.metrics[0].goal,
            Goal::kMinimize);
  EXPECT_TRUE(Parsed(With("  x: {value: 1}\n")).study.metrics.empty());
  const Sweep several =
      Parsed(With("  x: {value: 1}\n", "metrics: [{name: a}, {name: b, goal: maximize}]\n"));
  ASSERT_EQ(several.study.metrics.size(), 2u);
  EXPECT_EQ(several.study.metrics[0].name, "a");
}

TEST(SweepFile, Commands) {
  const auto command = [](const std::string& text) {
    return Parsed(text + "method: random\nparameters: {x: {value: 1}}\n").launch;
  };
  EXPECT_THAT(command("program: a.py\n").command,
              ElementsAre("${env}", "${interpreter}", "${program}", "${args}"));
  EXPECT_THAT(command("program: ./train\n").command,
              ElementsAre("${env}", "${program}", "${args}"));
  EXPECT_THAT(
      command("command: [\"./train\", -1, 1e-5, \"${now:%Y}\", \"\", \"${args_no_hyphens}\", "
              "+experiment=x]\n")
          .command,
      ElementsAre("./train", "-1", "1e-5", "${now:%Y}", "", "${args_no_hyphens}", "+experiment=x"));
}

TEST(SweepFile, TheKeyJizi) {
  const Sweep sweep = Parsed(
      With("  lr: {min: 0.001, max: 0.1}\n  momentum: {min: 0.0, max: 0.9}\n  optimizer: {values: "
           "[sgd, adam]}\n",
           "metric: {name: loss}\n"
           "jizi:\n  workers: 3\n  resources: {gpus: 2, threads: 4, gpu_ids: [3, 5]}\n  ranks: 2\n "
           " retries: 1\n  seed: 7\n"
           "  time_limit: 1h30m\n  grace: 5s\n  wall_clock: 2d\n  reuse: true\n  lease: 90s\n  "
           "sampler: sobol\n"
           "  objective: {mean_of_last: 5}\n  environment: {NCCL_DEBUG: WARN, N: 3}\n"
           "  when: {momentum: {optimizer: [sgd]}}\n  defaults: {lr: 0.01, optimizer: adam}\n"));
  EXPECT_EQ(sweep.workers, 3);
  EXPECT_EQ(sweep.launch.gpus_per_trial, 2);
  EXPECT_EQ(sweep.launch.threads, 4);
  EXPECT_THAT(sweep.launch.gpu_ids, ElementsAre("3", "5"));
  EXPECT_EQ(sweep.launch.ranks, 2);
  EXPECT_EQ(sweep.study.retries.max_retries, 1);
  EXPECT_EQ(sweep.study.seed, 7u);
  EXPECT_EQ(sweep.launch.time_limit->count(), 5400);
  EXPECT_EQ(sweep.launch.grace.count(), 5);
  EXPECT_EQ(sweep.lease.count(), 90);
  EXPECT_EQ(Parsed(With("  x: {value: 1}\n")).lease.count(), 60);
  EXPECT_EQ(sweep.study.budget.wall_clock->count(), 172800);
  EXPECT_TRUE(sweep.launch.reuse_process);
  EXPECT_EQ(sweep.study.settings_json, "{\"sampler\":\"sobol\"}");
  EXPECT_EQ(sweep.study.objective, (Objective{ObjectiveKind::kMeanOfLast, 5}));
  EXPECT_EQ(sweep.launch.environment.at("N"), "3");
  // The parent stands before its child now.
  ASSERT_EQ(sweep.study.space.parameters.size(), 3u);
  EXPECT_EQ(sweep.study.space.parameters[2].name, "momentum");
  EXPECT_EQ(sweep.study.space.parameters[2].when,
            (std::vector{Condition{"optimizer", {std::string("sgd")}}}));
  ASSERT_EQ(sweep.first_trials.size(), 1u);
  EXPECT_EQ(sweep.first_trials[0], (Params{{"lr", 0.01}, {"optimizer", std::string("adam")}}));
}

TEST(SweepFile, ByteOrderMarkWindowsLineEndsAndTabs) {
  const Sweep sweep = Parsed(
      "\xEF\xBB\xBFmethod:\tgrid\r\nprogram:\tt.py\r\nparameters:\r\n  x:\r\n    "
      "values:\t[1,\t2]\r\n");
  EXPECT_EQ(sweep.study.method, "grid");
  EXPECT_EQ(sweep.launch.program, "t.py");
}

TEST(SweepFile, AliasesAndMergeKeys) {
  const Sweep sweep =
      Parsed(With("  a: &base {min: 0.0, max: 1.0}\n  b: *base\n  c: {<<: *base, max: 2.0}\n"));
  ASSERT_EQ(sweep.study.space.parameters.size(), 3u);
  EXPECT_EQ(sweep.study.space.parameters[2].domain, Domain(Real({0, 2, Scale::kLinear})));
}

TEST(SweepFile, BayesIsTheMethodOfAMetricAlone) {
  const Sweep sweep = Parsed(
      "program: t.py\nmetric: {name: l}\nparameters: {x: {min: 0.0, max: 1.0}}\njizi: {initial: "
      "6, warp: half_rank}\n");
  EXPECT_EQ(sweep.study.method, "bayes");
  EXPECT_EQ(sweep.study.settings_json, R"({"initial":6,"warp":"half_rank"})");
  EXPECT_TRUE(sweep.notes.empty());
}

TEST(SweepFile, AMethodOfALaterVersionIsANote) {
  const Sweep sweep =
      Parsed("program: t.py\nmethod: PBT\nmetric: {name: l}\nparameters: {x: {value: 1}}\n");
  EXPECT_EQ(sweep.study.method, "pbt");
  ASSERT_EQ(sweep.notes.size(), 1u);
  EXPECT_EQ(sweep.notes[0].line, 2);
  EXPECT_THAT(sweep.notes[0].text, HasSubstr("grid, random"));
}

}  // namespace
}  // namespace jizi::tuner
