// Shapes of sweep files that people have published, small ones of the same kind: each is accepted
// as it is, and its first point reaches the program as W&B would give it.

#include <numeric>

#include "tests/cli/sweep_testing.h"
#include "tuner-service/rpc/convert.h"
#include "tuner-service/workers/launch.h"

namespace jizi::tuner {
namespace {

struct PublishedShape {
  const char* about;
  const char* text;
  const char* names;  // Of the parameters, in the space's order.
  const char* argv;   // Of the point where every list gives its first value, every range its least;
                      // empty: not looked at. Of a program on PATH the path is left out.
};

// clang-format off
const PublishedShape kShapes[] = {
    {"bayes, dashes in lists, a name with a slash",
     "program: train.py\nmethod: bayes\nmetric:\n  name: val/loss\n  goal: minimize\nparameters:\n  depth:\n    values:\n      - 2\n      - 4\n",
     "depth", "/usr/bin/env python train.py --depth=2"},
    {"the method in capitals, no metric with grid",
     "method: GRID\nprogram: a.py\nparameters: {x: {values: [3, 1, 2]}}\n", "x", "/usr/bin/env python a.py --x=3"},
    {"no program: an agent calls a function",
     "method: random\nmetric: {goal: minimize, name: loss}\nparameters:\n  lr: {min: 0.001, max: 0.1}\n", "lr", ""},
    {"${program} in the command, and none named (their web page fills it in)",
     "command: [poetry, run, python, -m, \"${program}\", \"${args}\"]\nmethod: random\nmetric: {goal: maximize, name: val/r2}\nparameters: {beta: {min: 0.9, max: 1.0}}\n",
     "beta", ""},
    {"numbers that YAML 1.1 reads as text",
     "program: t.py\nmethod: random\nparameters:\n  lr: {values: [1e-5, 3e-4]}\n  wd: {distribution: log_uniform_values, min: 6.e-5, max: 5.e-3}\n",
     "lr,wd", ""},
    {"the tag !!float",
     "program: main.py\nmethod: grid\nparameters:\n  optimizer.config.learning_rate: {value: !!float 1e-5}\n  experiment: {values: [expt001, expt002]}\ncommand:\n- ${env}\n- ${interpreter}\n- ${program}\n- ${args_no_hyphens}\n",
     "optimizer.config.learning_rate,experiment", "/usr/bin/env python main.py experiment=expt001 optimizer.config.learning_rate=1e-05"},
    {"whole numbers and fractions in one list",
     "program: t.py\nmethod: grid\nparameters: {margin: {values: [-1, 0.1, 1]}}\n", "margin", "/usr/bin/env python t.py --margin=-1"},
    {"True, false, and the text \"false\"",
     "program: t.py\nmethod: grid\nparameters:\n  a: {values: [True, False]}\n  b: {values: [\"false\", false]}\n", "a,b",
     "/usr/bin/env python t.py --a=True --b=false"},
    {"flags that are there or not",
     "program: t.py\nmethod: grid\nparameters: {amp: {values: [true, false]}, n: {value: 3}, off: {value: false}}\ncommand: [\"${interpreter}\", \"${program}\", --iterations, \"3000\", \"${args_no_boolean_flags}\"]\n",
     "amp,n,off", "python t.py --iterations 3000 --amp --n=3"},
    {"null and None",
     "program: t.py\nmethod: grid\nparameters: {pre: {values: [null, None, imagenet]}}\n", "pre", ""},
    {"sentences as values",
     "program: t.py\nmethod: grid\nparameters: {prompt: {values: [\"a photo of a {}.\", 'it''s $HOME; `ls`']}}\n", "prompt",
     "/usr/bin/env python t.py --prompt=a photo of a {}."},
    {"lists as values", "program: t.py\nmethod: grid\nparameters: {sizes: {values: [[32, 64], [64, 128]]}}\n", "sizes",
     "/usr/bin/env python t.py --sizes=[32,64]"},
    {"dictionaries as values", "program: t.py\nmethod: grid\nparameters: {opt: {value: {name: adam, betas: [0.9, 0.999]}}}\n", "opt", ""},
    {"groups within groups",
     "program: t.py\nmethod: grid\nparameters:\n  optimizer:\n    parameters:\n      lr: {value: 1}\n      sched:\n        parameters: {gamma: {values: [0.5]}}\n",
     "optimizer.lr,optimizer.sched.gamma", "/usr/bin/env python t.py --optimizer.lr=1 --optimizer.sched.gamma=0.5"},
    {"Hydra: words of its own before the overrides",
     "program: train.py\nmethod: grid\nmetric: {goal: maximize, name: ELBO/Validation}\nparameters:\n  params.beta: {values: [1, 4]}\ncommand:\n  - ${env}\n  - ${interpreter}\n  - ${program}\n  - +experiment=VAE       # a comment\n  - +trainer.max_epochs=10\n  - hydra.run.dir=out/${now:%Y-%m-%d}\n  - ${args_no_hyphens}\n",
     "params.beta", "/usr/bin/env python train.py +experiment=VAE +trainer.max_epochs=10 hydra.run.dir=out/${now:%Y-%m-%d} params.beta=1"},
    {"log_uniform with exponents", "program: t.py\nmethod: random\nparameters: {beta: {distribution: log_uniform, min: -20, max: 2}}\n", "beta", ""},
    {"inverse log", "program: t.py\nmethod: random\nparameters: {b1: {distribution: inv_log_uniform_values, max: 1, min: 0.9}, b2: {distribution: inv_log_uniform, min: 1, max: 3}}\n", "b1,b2", ""},
    {"steps", "program: t.py\nmethod: random\nmetric: {name: loss}\nparameters:\n  batch_size: {distribution: q_log_uniform_values, max: 256, min: 32, q: 8}\n  dropout: {distribution: q_uniform, min: 0.1, max: 0.5, q: 0.1}\n  warm: {distribution: q_log_uniform, min: 0, max: 3}\n", "batch_size,dropout,warm", ""},
    {"bells", "program: t.py\nmethod: random\nparameters: {a: {distribution: normal, mu: 100, sigma: 10}, b: {distribution: q_normal, mu: 5, sigma: 2, q: 1}, c: {distribution: log_normal}, d: {distribution: q_log_normal, q: 0.5}, e: {distribution: beta, a: 2, b: 5}, f: {distribution: q_beta, q: 0.1}}\n", "a,b,c,d,e,f", ""},
    {"the distribution said beside what says it already", "program: t.py\nmethod: grid\nparameters: {a: {distribution: categorical, values: [x, y]}, b: {distribution: constant, value: 7}, c: {distribution: int_uniform, min: 1, max: 3}}\n", "a,b,c", "/usr/bin/env python t.py --a=x --b=7 --c=1"},
    {"weights", "program: t.py\nmethod: random\nparameters: {a: {distribution: categorical, values: [x, y, z], probabilities: [0.33, 0.33, 0.34]}}\n", "a", "/usr/bin/env python t.py --a=x"},
    {"the same value often", "program: t.py\nmethod: random\nparameters: {seed: {values: [0, 0, 0]}}\n", "seed", "/usr/bin/env python t.py --seed=0"},
    {"hyperband by min_iter", "program: t.py\nmethod: random\nmetric: {name: val_loss}\nearly_terminate: {type: hyperband, min_iter: 10, s: 2}\nparameters: {x: {min: 1, max: 9}}\n", "x", "/usr/bin/env python t.py --x=1"},
    {"hyperband by max_iter and s", "program: t.py\nmethod: random\nmetric: {name: val_loss}\nearly_terminate:\n  type: hyperband\n  max_iter: 27\n  s: 2\n  eta: 3\n  strict: True\nparameters: {epochs: {value: 27}}\nrun_cap: 50\n", "epochs", "/usr/bin/env python t.py --epochs=27"},
    {"a target, imputing", "program: t.py\nmethod: random\nmetric: {name: accuracy, goal: maximize, target: 0.99, impute: worst, impute_while_running: latest}\nparameters: {x: {value: 1}}\n", "x", "/usr/bin/env python t.py --x=1"},
    {"several metrics", "program: t.py\nmethod: random\nmetrics:\n  - {name: loss, goal: minimize}\n  - {name: f1, goal: maximize}\nparameters: {x: {value: 1}}\n", "x", ""},
    {"whose project it is", "entity: me\nproject: p\nname: n\ndescription: >\n  two\n  lines\nprogram: t.py\nmethod: random\nparameters: {x: {value: 1}}\n", "x", ""},
    {"a controller of one's own", "controller:\n  type: local\nprogram: t.py\nmethod: random\nparameters: {x: {value: 1}}\n", "x", ""},
    {"jobs and images of a launch queue", "job: me/p/job:latest\nimage_uri: repo/i:1\nscheduler:\n  engine: optuna\n  optimizer: {sampler: TPESampler}\nlaunch: {queue: q, resource: kubernetes}\nprogram: t.py\nmethod: custom\nmetric: {name: m}\nparameters: {x: {value: 1}}\n", "x", ""},
    {"a Kubernetes head", "apiVersion: v1\nkind: Sweep\nprogram: t.py\nmethod: random\nparameters: {x: {value: 1}}\n", "x", ""},
    {"keys that only their author knows", "program: t.py\nmethod: random\nnotes_for_me: [a, b]\nhardware: {gpu: a100}\nparameters: {x: {value: 1}}\n", "x", ""},
    {"all parameters as one JSON word", "program: t.py\nmethod: grid\nparameters: {a: {value: 1}, b.c: {value: x}}\ncommand: [python3, \"${program}\", --config, \"${args_json}\"]\n", "a,b.c", "python3 t.py --config {\"a\": 1, \"b.c\": \"x\"}"},
    {"all parameters in a JSON file", "program: t.py\nmethod: grid\nparameters: {a: {value: 1}}\ncommand: [\"${env}\", \"${interpreter}\", \"${program}\", --file_path, \"${args_json_file}\"]\n", "a", "/usr/bin/env python t.py --file_path args.json"},
    {"a variable of the environment", "program: t.py\nmethod: grid\nparameters: {a: {value: 1}}\ncommand: [\"${program}\", \"--home=${envvar:HOME}/data\", \"${args}\"]\n", "a", ""},
    {"no parameters on the command line", "program: t.py\nmethod: random\nparameters: {a: {min: 0.0, max: 1.0}}\ncommand:\n  - python\n  - train.py\n  - --config\n  - swav_cpu_0.yaml\n  - --sweep\n", "a", "python train.py --config swav_cpu_0.yaml --sweep"},
    {"torchrun", "program: t.py\nmethod: grid\nparameters: {lr: {value: 1}}\ncommand:\n- ${env}\n- torchrun\n- --nproc_per_node=2\n- ${program}\n- ${args}\n", "lr", "/usr/bin/env torchrun --nproc_per_node=2 t.py --lr=1"},
    {"a module", "program: pkg.train\nmethod: grid\nparameters: {lr: {value: 1}}\ncommand: [\"${env}\", python, -m, pkg.train, \"${args}\"]\n", "lr", "/usr/bin/env python -m pkg.train --lr=1"},
    {"a shell script as the program", "program: ./run.sh\nmethod: grid\nparameters: {lr: {value: 1}}\n", "lr", "/usr/bin/env ./run.sh --lr=1"},
    {"anchors and merge keys", "program: t.py\nmethod: random\nparameters:\n  a: &r {distribution: uniform, min: 0, max: 1}\n  b: {<<: *r, max: 2}\n", "a,b", ""},
    {"a document's begin, comments, no last newline", "# mine\n---\nprogram: t.py # here\nmethod: random\nparameters:\n  # learning\n  x:\n    value: 1", "x", "/usr/bin/env python t.py --x=1"},
    {"a byte-order mark, Windows line ends, tabs after colons", "\xEF\xBB\xBFprogram:\tt.py\r\nmethod:\tgrid\r\nparameters:\r\n  x:\r\n    values:\t[1,\t2]\r\n", "x", "/usr/bin/env python t.py --x=1"},
    {"JSON", "{\"program\": \"t.py\", \"method\": \"grid\", \"parameters\": {\"x\": {\"values\": [1, 2]}}}", "x", "/usr/bin/env python t.py --x=1"},
    {"dashes, slashes and blanks in names", "program: t.py\nmethod: grid\nparameters: {learning-rate: {value: 1}, a/b: {value: 2}, \"my name\": {value: 3}}\n", "learning-rate,a/b,my name", "/usr/bin/env python t.py --a/b=2 --learning-rate=1 --my name=3"},
    {"names that are numbers or words of YAML", "program: t.py\nmethod: grid\nparameters: {1: {value: 1}, yes: {value: 2}}\n", "1,yes", "/usr/bin/env python t.py --1=1 --yes=2"},
    {"a range of one value", "program: t.py\nmethod: random\nparameters: {x: {min: 5, max: 5}, y: {min: 0.5, max: 0.5}}\n", "x,y", "/usr/bin/env python t.py --x=5 --y=0.5"},
    {"keys that are empty", "program: t.py\nmethod: grid\nname:\nmetric:\nearly_terminate:\nrun_cap:\nparameters: {x: {values: [1]}}\n", "x", "/usr/bin/env python t.py --x=1"},
};
// clang-format on

std::string NamesOf(const Space& space) {
  std::string names;
  for (const ParameterSpec& spec : space.parameters) {
    names += (names.empty() ? "" : ",") + spec.name;
  }
  return names;
}

TEST(PublishedSweeps, EachShapeIsAcceptedAsItIs) {
  ASSERT_GE(std::size(kShapes), 30u);
  for (const PublishedShape& shape : kShapes) {
    const auto sweep = ParseSweep(shape.text, "sweep.yaml");
    if (!sweep.ok()) {
      ADD_FAILURE() << shape.about << ": " << ForPeople(sweep.status());
      continue;
    }
    EXPECT_EQ(NamesOf(sweep->study.space), shape.names) << shape.about;
    EXPECT_TRUE(Validate(sweep->study).ok()) << shape.about;
  }
}

TEST(PublishedSweeps, ValuesReachTheProgramAsTheirsDo) {
  for (const PublishedShape& shape : kShapes) {
    if (*shape.argv == '\0') continue;
    Sweep sweep = Parsed(shape.text);
    const std::vector<double> least(sweep.study.space.parameters.size(), 0.0);
    google::protobuf::Map<std::string, v1::Value> params;
    for (const auto& [name, value] : FromUnit(sweep.study.space, least))
      params[name] = ToWire(value);
    // Paths and the interpreter are of the machine, and tested with the workers.
    for (std::string& word : sweep.launch.command) {
      if (word == "${program}") word = sweep.launch.program;
      if (word == "${interpreter}") word = "python";
    }
    const auto argv = ExpandCommand(sweep.launch, params, "args.json");
    ASSERT_TRUE(argv.ok()) << shape.about << ": " << ForPeople(argv.status());
    const std::string line =
        std::accumulate(argv->begin() + 1, argv->end(), argv->front(),
                        [](const std::string& a, const std::string& b) { return a + " " + b; });
    EXPECT_EQ(line, shape.argv) << shape.about;
  }
}

TEST(PublishedSweeps, WhatIsLeftAloneIsSaidOnce) {
  const Sweep sweep = Parsed(
      "entity: me\nlaunch: {queue: q}\nprogram: t.py\nmethod: random\nparameters: {x: {value: "
      "1}}\n");
  ASSERT_EQ(sweep.notes.size(), 2u);
  EXPECT_EQ(sweep.notes[0].text, "`entity` has no meaning here and is left alone");
  EXPECT_EQ(sweep.notes[1].text, "`launch` is not known and is left alone");
}

// `jizi: {when: ...}` and defaults (docs/design.md).
struct Conditional {
  const char* about;
  const char* parameters;
  const char* ours;
  int64_t points;  // Of the grid: those that can be reached.
};

TEST(ConditionalParameters, AGridCountsOnlyReachablePoints) {
  const Conditional table[] = {
      {"none", "{a: {values: [1, 2, 3]}, b: {values: [1, 2]}}", "{}", 6},
      {"one child", "{a: {values: [sgd, adam, lamb]}, m: {values: [0.5, 0.9]}}",
       "{when: {m: {a: [sgd]}}}", 4},
      {"one value without a list", "{a: {values: [sgd, adam]}, m: {values: [0.5, 0.9]}}",
       "{when: {m: {a: sgd}}}", 3},
      {"a child above its parent", "{m: {values: [1, 2, 3]}, a: {values: [x, y]}}",
       "{when: {m: {a: y}}}", 4},
      {"a grandchild", "{a: {values: [x, y]}, b: {values: [1, 2]}, c: {values: [3, 4, 5]}}",
       "{when: {b: {a: x}, c: {b: 2}}}", 5},
      {"two parents", "{a: {values: [x, y]}, b: {values: [1, 2]}, c: {values: [3, 4, 5]}}",
       "{when: {c: {a: x, b: [2]}}}", 6},
      {"true and false", "{nesterov: {values: [true, false]}, m: {min: 1, max: 4}}",
       "{when: {m: {nesterov: true}}}", 5},
      {"of an int", "{n: {min: 1, max: 3}, m: {values: [1, 2]}}", "{when: {m: {n: [2, 3]}}}", 5},
      {"names of a group", "{opt: {parameters: {name: {values: [x, y]}, m: {values: [1, 2]}}}}",
       "{when: {opt.m: {opt.name: x}}}", 3},
  };
  for (const Conditional& row : table) {
    const Sweep sweep =
        Parsed("program: t.py\nmethod: grid\nparameters: " + std::string(row.parameters) +
               "\njizi: " + row.ours + "\n");
    EXPECT_EQ(CountPoints(sweep.study.space), row.points) << row.about;
  }
}

TEST(ConditionalParameters, DefaultsLeaveOutWhatIsNotThere) {
  const std::string head =
      "program: t.py\nmethod: random\nparameters: {opt: {values: [sgd, adam]}, m: {min: 0.0, max: "
      "1.0}, k: {value: 3}}\njizi:\n  when: {m: {opt: sgd}}\n  defaults: ";
  const Sweep sweep = Parsed(head + "[{opt: adam}, {opt: sgd, m: 1}]\n");
  ASSERT_EQ(sweep.first_trials.size(), 2u);
  EXPECT_EQ(sweep.first_trials[0], (Params{{"opt", std::string("adam")}, {"k", int64_t{3}}}));
  EXPECT_EQ(sweep.first_trials[1],
            (Params{{"opt", std::string("sgd")}, {"m", 1.0}, {"k", int64_t{3}}}));
  EXPECT_THAT(FaultOf(head + "{opt: adam, m: 0.5}\n"), testing::HasSubstr("sweep.yaml:6: "));
  EXPECT_THAT(FaultOf(head + "{opt: sgd}\n"), testing::HasSubstr("sweep.yaml:6: "));
}

}  // namespace
}  // namespace jizi::tuner
