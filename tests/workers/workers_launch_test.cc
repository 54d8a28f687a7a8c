#include "tuner-service/workers/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/temp_folder.h"
#include "tuner-service/workers/attempt_environment.h"

namespace jizi::tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Params = google::protobuf::Map<std::string, v1::Value>;

v1::Value Text(const std::string& text) {
  v1::Value value;
  value.set_string_value(text);
  return value;
}
v1::Value Number(double number) {
  v1::Value value;
  value.set_float_value(number);
  return value;
}
v1::Value Whole(int64_t number) {
  v1::Value value;
  value.set_int_value(number);
  return value;
}
v1::Value Truth(bool truth) {
  v1::Value value;
  value.set_bool_value(truth);
  return value;
}

struct Written {  // What a sweep file says.
  std::vector<std::string> command;
  std::string program = "";
  std::string folder = "";
  std::map<std::string, std::string> environment = {};
};
Launch Of(const Written& written) {
  Launch launch;
  launch.command = written.command;
  launch.program = written.program;
  launch.folder = written.folder;
  launch.environment = written.environment;
  return launch;
}

std::vector<std::string> Expand(const Written& launch, const Params& params) {
  const auto argv = ExpandCommand(Of(launch), params, "/f/params.json");
  EXPECT_TRUE(argv.ok()) << argv.status();
  return argv.value_or(std::vector<std::string>());
}

Params Filled(const std::map<std::string, v1::Value>& values) {
  Params params;
  for (const auto& [name, value] : values) params[name] = value;
  return params;
}

const Params kParams = Filled({{"lr", Number(0.1)},
                               {"batch", Whole(64)},
                               {"amp", Truth(true)},
                               {"nesterov", Truth(false)},
                               {"opt.name", Text("sgd")}});

TEST(ExpandCommand, ArgsAreOneArgumentEach) {
  EXPECT_THAT(Expand({.command = {"/bin/train", "${args}"}}, kParams),
              ElementsAre("/bin/train", "--amp=True", "--batch=64", "--lr=0.1", "--nesterov=False",
                          "--opt.name=sgd"));
  EXPECT_THAT(Expand({.command = {"/bin/train", "${args_no_hyphens}", "+experiment=x"}}, kParams),
              ElementsAre("/bin/train", "amp=True", "batch=64", "lr=0.1", "nesterov=False",
                          "opt.name=sgd", "+experiment=x"));
  EXPECT_THAT(Expand({.command = {"/bin/train", "${args_no_boolean_flags}"}}, kParams),
              ElementsAre("/bin/train", "--amp", "--batch=64", "--lr=0.1", "--opt.name=sgd"));
}

TEST(ExpandCommand, JsonAndItsFile) {
  EXPECT_THAT(
      Expand({.command = {"/bin/train", "${args_json}", "--config=${args_json_file}"}}, kParams),
      ElementsAre("/bin/train",
                  R"({"amp": true, "batch": 64, "lr": 0.1, "nesterov": false, "opt.name": "sgd"})",
                  "--config=/f/params.json"));
}

TEST(ExpandCommand, WhatIsNotOursStays) {
  EXPECT_THAT(
      Expand({.command = {"/bin/train", "dir=${now:%Y}", "${x", "$y", "${args}z"}}, kParams),
      ElementsAre("/bin/train", "dir=${now:%Y}", "${x", "$y", "${args}z"));
}

TEST(ExpandCommand, EnvironmentVariables) {
  const Written launch{.command = {"/bin/train", "${envvar:A}"}, .environment = {{"A", "${args}"}}};
  EXPECT_THAT(Expand(launch, kParams), ElementsAre("/bin/train", "${args}"));
  const auto missing =
      ExpandCommand(Of({.command = {"/bin/train", "${envvar:JIZI_NOT_SET_X}"}}), kParams, "");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(DetailOf(missing.status()).code, "VARIABLE_NOT_SET");
}

TEST(ExpandCommand, TheDefaultWrapsOnlyPython) {
  TempFolder folder;
  folder.Script("train.py", "");
  folder.Script("train", "");
  const auto python = Expand({.command = {}, .program = "train.py", .folder = folder.path()}, {});
  ASSERT_EQ(python.size(), 3U);
  EXPECT_EQ(python[0], "/usr/bin/env");
  EXPECT_THAT(python[1], testing::StartsWith("python"));
  EXPECT_EQ(python[2], folder / "train.py");  // Absolute: the trial runs in its own folder.
  EXPECT_THAT(Expand({.command = {}, .program = "train", .folder = folder.path()}, {}),
              ElementsAre("/usr/bin/env", folder / "train"));
}

TEST(ExpandCommand, FilesBesideTheSweepBecomeAbsolute) {
  TempFolder folder;
  folder.Script("train.sh", "");
  const Written launch{.command = {"./train.sh", "train.sh", "other.sh", "-f=train.sh"},
                       .folder = folder.path()};
  EXPECT_THAT(Expand(launch, {}),
              ElementsAre(folder / "train.sh", folder / "train.sh", "other.sh", "-f=train.sh"));
}

TEST(Contract25, ValuesArriveAsTheyAre) {
  const std::string evil[] = {
      "a;rm -rf /", "$(id)",       "`id`", "two\nlines", "-leading",      "--",
      "",           "quo\"te' \\", "*",    "${program}", "${envvar:HOME}"};
  for (const std::string& value : evil) {
    EXPECT_THAT(
        Expand({.command = {"/bin/t", "${args}"}, .program = "p"}, Filled({{"x", Text(value)}})),
        ElementsAre("/bin/t", "--x=" + value));
  }
  const auto zero = ExpandCommand(Of({.command = {"/bin/t", "${args}"}}),
                                  Filled({{"x", Text(std::string("a\0b", 3))}}), "");
  EXPECT_EQ(DetailOf(zero.status()).code, "VALUE_WITH_ZERO_BYTE");
}

TEST(CheckCommand, SaysWhatIsMissing) {
  TempFolder folder;
  folder.Script("train.py", "");
  folder.Script("run", "");
  std::ofstream(folder / "plain") << "";
  const auto code = [&](const Written& written) {
    Launch launch = Of(written);
    launch.folder = folder.path();
    const Status status = CheckCommand(launch);
    EXPECT_TRUE(status.ok() || !DetailOf(status).mend.empty()) << status;
    return status.ok() ? "OK" : DetailOf(status).code;
  };
  EXPECT_EQ(code({.command = {"run", "${envvar:JIZI_NOT_SET}"}}), "VARIABLE_NOT_SET");
  EXPECT_EQ(code({.command = {"./run", "--home=${envvar:PATH}", "${args}"}}), "OK");
  EXPECT_EQ(code(Written{}), "COMMAND_EMPTY");
  EXPECT_EQ(code({.command = {}, .program = "train.py"}), "OK");
  EXPECT_EQ(code({.command = {}, .program = "missing.py"}), "PROGRAM_NOT_FOUND");
  EXPECT_EQ(code({.command = {"${args}"}}), "COMMAND_WITHOUT_PROGRAM");
  EXPECT_EQ(code({.command = {"${env}", "${args}"}}), "COMMAND_WITHOUT_PROGRAM");
  EXPECT_EQ(code({.command = {"${env}", "A=1"}}), "COMMAND_WITHOUT_PROGRAM");
  EXPECT_EQ(code({.command = {"--lr=0.1"}}), "COMMAND_WITHOUT_PROGRAM");
  EXPECT_EQ(code({.command = {"${interpreter}", "${program}"}}), "COMMAND_WITHOUT_PROGRAM");
  EXPECT_EQ(code({.command = {"./run", "${args}"}}), "OK");
  EXPECT_EQ(code({.command = {"run"}}), "OK");
  EXPECT_EQ(code({.command = {"./plain"}}), "PROGRAM_NOT_EXECUTABLE");
  EXPECT_EQ(code({.command = {"/bin/sh", "-c", "true"}}), "OK");
  EXPECT_EQ(code({.command = {"env", "A=1", "sh"}}), "OK");
  EXPECT_EQ(code({.command = {"no-such-program-at-all"}}), "PROGRAM_NOT_FOUND");
  EXPECT_EQ(code({.command = {"${interpreter}", "-m", "${program}"}, .program = "a.b"}), "OK");
  EXPECT_THAT(std::string(CheckCommand(Of({.command = {"${args}"}})).message()),
              HasSubstr("command holds no ${program}"));
}

TEST(Contract19, ACommandWithAParameterMacroTakesOneTrial) {
  EXPECT_TRUE(CarriesParameters(Of(Written{.command = {}, .program = "a.py"})));
  EXPECT_TRUE(CarriesParameters(Of(Written{.command = {"x", "${args_json_file}"}})));
  EXPECT_TRUE(CarriesParameters(Of(Written{.command = {"x", "--c=${args_json}"}})));
  EXPECT_FALSE(CarriesParameters(Of(Written{.command = {"${env}", "${program}"}})));
}

TEST(GpuIds, AreThoseOfTheSweepElseThoseThatTheWorkerWasGiven) {
  using Ids = std::vector<std::string>;
  unsetenv("CUDA_VISIBLE_DEVICES");
  Launch launch;
  EXPECT_EQ(GpuIds(launch), std::nullopt);
  setenv("CUDA_VISIBLE_DEVICES", "4, GPU-b,-1,6", 1);
  EXPECT_EQ(GpuIds(launch), (Ids{"4", "GPU-b"}));
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_EQ(GpuIds(launch), Ids{});  // None: not all.
  launch.environment["CUDA_VISIBLE_DEVICES"] = "7";
  EXPECT_EQ(GpuIds(launch), Ids{"7"});
  launch.gpu_ids = {"1"};
  EXPECT_EQ(GpuIds(launch), Ids{"1"});
  unsetenv("CUDA_VISIBLE_DEVICES");
}

}  // namespace
}  // namespace jizi::tuner
