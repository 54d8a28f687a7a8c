#pragma once
// completion.h - completion scripts and the manual page, made from the tree of commands: what is
// said once in --help is said there too. Threads: pure functions.

#include <CLI/CLI.hpp>
#include <string>

namespace jizi::tuner {

// `shell`: bash or zsh. Commands and options complete to their names, options of a fixed set to its
// values, all else to files.
std::string CompletionScript(const CLI::App& app, const std::string& shell);

// jizi(1) in roff, one section a command.
std::string ManPage(const CLI::App& app, const std::string& version);

}  // namespace jizi::tuner
