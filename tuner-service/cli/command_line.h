#pragma once
// command_line.h - what the parts of the command line share: the options' own state, which the
// chosen command reads, and the options that many commands have. CLI11 is called by main.cc and
// command_line*.cc alone. Threads: from the main thread.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tuner-service/cli/commands.h"

namespace jizi::tuner {

// The command line's own state: options fill it, the chosen command reads it.
struct Line {
  RunOptions run;
  ServeOptions serve{"jizi.db", "127.0.0.1:8470", "", "", false, ""};
  CheckOptions check;
  QueryOptions query;
  TrialsOptions trials;
  int64_t trial = 0;
  std::vector<int64_t> retry;
  std::vector<std::string> assignments;
  std::string format = "csv";
  std::string timeout;
  CreateOptions create;
  AskTellOptions ask_tell;
  SuggestOptions suggest;
  ScriptTrial script;
  CompleteOptions complete;
  std::string shell;
  std::string lease;
  std::string wait;
};

// In place of CLI11's, whose messages print bounds of doubles with 309 digits.
CLI::Validator WholeNumber(int64_t min, int64_t max = INT64_MAX);

void AddServer(CLI::App& command, Target& target);

enum class About { kStudy, kAll };
// A command with --db, --server and --json, of a study or of none.
CLI::App* AddQuery(CLI::App& app, Line& line, const std::string& name, const std::string& about,
                   const std::string& examples, About what = About::kStudy);

// command_line_scripts.cc: create, suggest, report, complete, release; ask-tell.
void AddScripts(CLI::App& app, Line& line);
void AddAskTell(CLI::App& app, Line& line);

}  // namespace jizi::tuner
