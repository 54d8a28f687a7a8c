// What a wrong sweep file gets: file, line, what is wrong and the mend; all faults at once.

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/cli/sweep_testing.h"
#include "tuner-service/cli/yaml_tree.h"

namespace jizi::tuner {
namespace {

using testing::HasSubstr;

struct Refused {
  const char* text;
  const char* fault;  // Exactly.
};

TEST(SweepFaults, FaultsNameLineAndMend) {
  const std::vector<Refused> table = {
      {"metod: random\nprogram: t.py\nmethod: random\nparameters: {x: {value: 1}}\n",
       "sweep.yaml:1: `metod` is not a key; did you mean `method`?"},
      {"program: t.py\nparameters: {x: {value: 1}}\n",
       "sweep.yaml:1: `method` is missing; add `method: random`, or a metric for bayes; here are "
       "bayes, grid, random, tpe"},
      {"program: t.py\nmethod: rndom\nparameters: {x: {value: 1}}\n",
       "sweep.yaml:2: there is no method `rndom`; did you mean `random`?"},
      {"program: t.py\nmethod: random\n",
       "sweep.yaml:1: `parameters` is missing; name what to vary: parameters: {lr: {min: 0.001, "
       "max: 0.1}}"},
      {"program: t.py\nmethod: random\nrun_cap: many\nparameters: {x: {value: 1}}\n",
       "sweep.yaml:3: run_cap is the text \"many\", a whole number is needed; write a whole number "
       "from 1 on"},
      {"program: t.py\nmethod: random\nrun_cap: 0\nparameters: {x: {value: 1}}\n",
       "sweep.yaml:3: run_cap is 0; it may be 1 to 1000000"},
      {"program: t.py\nmethod: random\nmetric: loss\nparameters: {x: {value: 1}}\n",
       "sweep.yaml:3: metric is the text \"loss\", a group of keys is needed; for example metric: "
       "{name: val_accuracy, goal: "
       "maximize}"},
      {"program: t.py\nmethod: random\nmetric: {name: a, goal: max}\nparameters: {x: {value: 1}}\n",
       "sweep.yaml:3: metric: goal is the text \"max\"; did you mean `maximize`?"},
      {"program: t.py\nmethod: random\nmetric: {nme: a}\nparameters: {x: {value: 1}}\n",
       "sweep.yaml:3: metric: `nme` is not a key here; did you mean `name`?\n"
       "sweep.yaml:3: metric: `name` is missing; for example metric: {name: val_accuracy, goal: "
       "maximize}"},
      {"program: t.py\nmethod: random\nearly_terminate: {type: hyperband, min_itr: 3}\nparameters: "
       "{x: {value: 1}}\n",
       "sweep.yaml:3: early_terminate: `min_itr` is not a key here; did you mean `min_iter`?"},
      {"program: t.py\nmethod: random\njizi: {worker: 3}\nparameters: {x: {value: 1}}\n",
       "sweep.yaml:3: jizi: `worker` is not a key here; did you mean `workers`?"},
      {"program: t.py\nmethod: random\njizi: {timeout: 3h}\nparameters: {x: {value: 1}}\n",
       "sweep.yaml:3: jizi: `timeout` is not a key here; `time_limit` is for one trial, "
       "`wall_clock` for the whole study"},
      {"program: t.py\nmethod: random\njizi: {lease: 0.5s}\nparameters: {x: {value: 1}}\n",
       "sweep.yaml:3: jizi: lease is 0.5s; it may be 1s to 7d; 60s is usual"},
      {"program: t.py\nmethod: random\nmetric: {name: a}\njizi: {objective: {kind: time_to_target, "
       "threshold: 0.9}}\nparameters: {x: "
       "{value: 1}}\n",
       "sweep.yaml:4: jizi: objective: time_to_target is not in this version; write best, last, or "
       "{mean_of_last: 5}"},
      {"method: random\nparameters: {x: {value: 1}}\ncommand:\n  - ${env}\n  - ${interpreter}\n  - "
       "${args}\n",
       "sweep.yaml:6: command: the program is missing before `${args}`; add `- ${program}` there "
       "and the key `program:`, or "
       "the program itself"},
      {"method: random\nparameters: {x: {value: 1}}\nprogram: t.py\ncommand: [python3, "
       "\"${args}\"]\nprogam: x\n",
       "sweep.yaml:5: `progam` is not a key; did you mean `program`?"},
      {"method: random\nparameters: {x: {value: 1}}\ncommand: python train.py\n",
       "sweep.yaml:3: command is the text \"python train.py\"; give a list with one word an item, "
       "such as [\"${program}\", "
       "\"${args}\"]"},
      {"program: t.py\nmethod: grid\nparameters:\n  x: {min: 0.0, max: 1.0}\n",
       "sweep.yaml:4: x: a grid needs values to count, this one is continuous; give `values`, a "
       "step (`distribution: "
       "q_uniform`), or use `method: random`"},
      {"- a\n",
       "sweep.yaml:1: a sweep file is a group of keys, this is a list; begin with `method: "
       "random`"},
      {"",
       "sweep.yaml:1: a sweep file is a group of keys, this is empty; begin with `method: random`"},
      {"a: 1\na: 2\n",
       "sweep.yaml:2: `a` stands here for the second time; remove one of the two (the other is at "
       "line 1)"},
      {"a: [1, 2\n",
       "sweep.yaml:2: this is not YAML: end of sequence flow not found; mend the line, or the one "
       "before it"},
      {"method: random\nparameters:\n\tlr: {value: 1}\n",
       "sweep.yaml:3: this line is indented with a tab; YAML takes spaces alone: put them in its "
       "place"},
      {"method: random\n---\nmethod: grid\n",
       "sweep.yaml:3: a second document begins here; put each sweep into a file of its own"},
      {"a: \xff\n", "sweep.yaml:1: this is not UTF-8; save the file as UTF-8"},
  };
  for (const Refused& row : table) EXPECT_EQ(FaultOf(row.text), row.fault) << row.text;
}

TEST(SweepFaults, FaultsOfParametersNameLineAndMend) {
  const std::vector<Refused> table = {
      {"  x: {min: 2, max: 1}\n", "sweep.yaml:4: x: min 2 is above max 1; swap them"},
      {"  x: {minn: 2, max: 1}\n",
       "sweep.yaml:4: x: `minn` is not a key here; did you mean `min`?\nsweep.yaml:4: x: `min` is "
       "missing; give both min and max"},
      {"  x: {min: a, max: 1}\n",
       "sweep.yaml:4: x: min is the text \"a\", a number is needed; write a number, such as 0.1 or "
       "1e-5"},
      {"  x: {min: \"0.1\", max: 1}\n",
       "sweep.yaml:4: x: min is the text \"0.1\", a number is needed; write it without quotes"},
      {"  x:\n    distribution: log_uniform_values\n    min: 0\n    max: 1\n",
       "sweep.yaml:6: x: min is 0, and a logarithm needs values above 0; give a small number such "
       "as 1e-6, or use uniform"},
      {"  x: {distribution: log_uniform, min: 1, max: 1000}\n",
       "sweep.yaml:4: x: log_uniform takes exponents: e^1 to e^1000 is out of range; use "
       "log_uniform_values to give the values "
       "themselves"},
      {"  x: {values: []}\n",
       "sweep.yaml:4: x: `values` is an empty list; give a list, such as [16, 32, 64]"},
      {"  x: {values: 3}\n",
       "sweep.yaml:4: x: `values` is the number 3; give a list, such as [16, 32, 64]"},
      {"  x: {distribution: q_uniform, min: 0.1, max: 0.4, q: 0.5}\n",
       "sweep.yaml:4: x: no multiple of the step 0.5 lies between 0.1 and 0.4; give a smaller q, "
       "or wider bounds"},
      {"  x: {distribution: q_uniform, min: 0, max: 4, q: 0}\n",
       "sweep.yaml:4: x: q is 0; a step is above 0"},
      {"  x: {distribution: unifrm, min: 0, max: 4}\n",
       "sweep.yaml:4: x: there is no distribution `unifrm`; did you mean `uniform`?"},
      {"  x: {distribution: uniform, min: 0, max: 4, q: 2}\n",
       "sweep.yaml:4: x: `q` has no meaning with the distribution uniform; use q_uniform, or take "
       "`q` out"},
      {"  x: {distribution: int_uniform, min: 0, max: 4.5}\n",
       "sweep.yaml:4: x: max of int_uniform is 4.5; write a whole number, or use uniform"},
      {"  x: {distribution: normal, sigma: -1}\n",
       "sweep.yaml:4: x: sigma is -1; a standard deviation is above 0"},
      {"  x: {values: [a, b], probabilities: [0.5]}\n",
       "sweep.yaml:4: x: probabilities is a list of 1, values has 2; give one probability for each "
       "value"},
      {"  x: {values: [a, b], probabilities: [0.5, 0.9]}\n",
       "sweep.yaml:4: x: the probabilities sum to 1.4; make them sum to 1"},
      {"  x: 3\n",
       "sweep.yaml:4: x is the number 3, a group of keys is needed; for a constant write `x: "
       "{value: 3}`"},
      {"  x: [1, 2]\n",
       "sweep.yaml:4: x is a list, a group of keys is needed; for a choice write `x: {values: "
       "[...]}`"},
      {"  x: {}\n",
       "sweep.yaml:4: x: nothing says what it may be; give value, values, or min and max"},
      {"  x: {mu: 0}\n",
       "sweep.yaml:4: x: `distribution` is missing; add `distribution: normal` or `log_normal`"},
      {"  x: {value: .nan}\n",
       "sweep.yaml:4: x: value: `.nan` is not finite; give a finite number"},
      {"  x: {value: !!float abc}\n",
       "sweep.yaml:4: x: value: `abc` does not fit its tag !!float; change one of them"},
      {"  x: {value: \"a\\0b\"}\n",
       "sweep.yaml:4: x: value: a value holds a zero byte; no program can be given one; take it "
       "out"},
      {"  a.b: {value: 1}\n  a: {parameters: {b: {value: 2}}}\n",
       "sweep.yaml:5: the parameter a.b is there twice; rename one (the other is at line 4)"},
  };
  for (const Refused& row : table) {
    EXPECT_EQ(FaultOf("program: train.py\nmethod: random\nparameters:\n" + std::string(row.text)),
              row.fault)
        << row.text;
  }
}

TEST(SweepFaults, AllFaultsAreSaidAtOnceInTheOrderOfTheFile) {
  const std::string faults = FaultOf(
      "program: t.py\nmethod: random\nparameters:\n  a: {min: 2, max: 1}\n  b: {values: "
      "[]}\nrun_cap: x\n");
  EXPECT_THAT(faults, HasSubstr("sweep.yaml:4: a:"));
  EXPECT_THAT(faults, HasSubstr("\nsweep.yaml:5: b:"));
  EXPECT_THAT(faults, HasSubstr("\nsweep.yaml:6: run_cap"));
}

TEST(SweepFaults, ASchedulersSettingIsJudgedByItAndHasItsLine) {
  const std::string fault = FaultOf(
      "program: t.py\nmethod: random\nparameters: {x: {min: 0.0, max: 1.0}}\njizi:\n  seed: 1\n  "
      "smapler: sobol\n");
  EXPECT_THAT(fault, HasSubstr("sweep.yaml:6: "));
  EXPECT_THAT(fault, HasSubstr("sampler"));
}

TEST(SweepFaults, ConditionsAndDefaultsAreChecked) {
  const std::string head =
      "program: t.py\nmethod: random\nparameters:\n  a: {values: [1, 2]}\n  b: {min: 0.0, max: "
      "1.0}\njizi:\n";
  EXPECT_THAT(FaultOf(head + "  when: {b: {c: [1]}}\n"),
              HasSubstr("sweep.yaml:7: jizi: when: b: there is no parameter `c`"));
  EXPECT_THAT(FaultOf(head + "  when: {b: {a: [3]}}\n"),
              HasSubstr("a is never 3; name values that it can have"));
  EXPECT_THAT(FaultOf(head + "  when: {b: {a: [1]}, a: {b: [0.5]}}\n"),
              HasSubstr("go in a circle"));
  EXPECT_THAT(FaultOf(head + "  defaults: {a: 1}\n"), HasSubstr("sweep.yaml:7: jizi: defaults"));
  EXPECT_THAT(FaultOf(head + "  defaults: {a: 1, b: 7}\n"),
              HasSubstr("sweep.yaml:7: jizi: defaults"));
  EXPECT_EQ(Parsed(head + "  defaults: [{a: 1, b: 0}, {a: 2.0, b: 1}]\n").first_trials.size(), 2u);
}

TEST(SweepFaults, AProgramThatIsNotThereIsToldWithTheOthers) {
  char folder[] = "/tmp/jizi-sweep-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/s.yaml";
  std::ofstream(path) << "method: random\nprogram: gone.py\nmetric: {name: a, goal: up}\n"
                         "parameters: {x: {min: 2, max: 1}}\n";
  const std::string faults =
      ForPeople(ReadSweepFile(path, [](const Launch& launch) {
                  return Error(StatusCode::kInvalidArgument,
                               "the program '" + launch.program + "' is not in " + launch.folder,
                               {"PROGRAM_NOT_FOUND", launch.program, "write another"});
                }).status());
  std::filesystem::remove_all(folder);
  EXPECT_THAT(faults, HasSubstr("s.yaml:2: the program 'gone.py' is not in " + std::string(folder) +
                                "; write another"));
  EXPECT_THAT(faults, HasSubstr("s.yaml:3: "));
  EXPECT_THAT(faults, HasSubstr("s.yaml:4: "));
}

TEST(SweepFaults, TooDeepAndTooLargeAreRefused) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'j'; ++c) {
    const std::string before = "*" + std::string(1, static_cast<char>(c - 1)) + ", ";
    std::string list;
    for (int i = 0; i < 10; ++i) list += before;
    bomb += std::string(1, c) + ": &" + std::string(1, c) + " [" + list + "]\n";
  }
  EXPECT_THAT(FaultOf(bomb), HasSubstr("too large once its aliases are followed"));
  EXPECT_THAT(FaultOf("a: &a [*a]\n"), HasSubstr("sweep.yaml:1: "));
  EXPECT_THAT(FaultOf(std::string(100'000, '[')), HasSubstr("this is not YAML"));
  EXPECT_THAT(FaultOf("a: " + std::string(70, '[') + std::string(70, ']') + "\n"),
              HasSubstr("nested too deeply"));
  EXPECT_THAT(FaultOf(std::string(kMaxYamlBytes + 1, 'a')), HasSubstr("bytes"));
}

TEST(SweepFaults, AFileThatCannotBeReadIsSaid) {
  const auto missing = ReadSweepFile("/nowhere/sweep.yaml");
  EXPECT_EQ(ForPeople(missing.status()),
            "cannot read the sweep file /nowhere/sweep.yaml: No such file or directory; give the "
            "path of a sweep's YAML file");
  EXPECT_THAT(ForPeople(ReadSweepFile("/tmp").status()), HasSubstr("it is a folder"));
}

TEST(SweepFaults, ABlankNameIsNone) {
  for (const char* name : {"\" \"", "\"\\t\""}) {
    EXPECT_THAT(FaultOf(With("  x: {min: 0.0, max: 1.0}\n", "name: " + std::string(name) + "\n")),
                HasSubstr("sweep.yaml:3: name is blank; give it a name"));
  }
}

TEST(SweepFaults, AGridThatIsTooLargeIsNotCalledContinuous) {
  const auto grid = [](const std::string& x) {
    return FaultOf("program: train.py\nmethod: grid\nparameters:\n  x: " + x + "\n");
  };
  EXPECT_THAT(grid("{min: 1, max: 9007199254740990}"),
              HasSubstr("sweep.yaml:4: x: a grid needs values to count, and from 1 to 9.0072e+15 "
                        "there are too many; bring min and max together"));
  EXPECT_THAT(grid("{min: 0.0, max: 1.0}"), HasSubstr("this one is continuous"));
}

}  // namespace
}  // namespace jizi::tuner
