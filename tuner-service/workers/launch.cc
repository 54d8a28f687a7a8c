#include "tuner-service/workers/launch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "proto/client.h"

namespace jizi::tuner {
namespace {

using ParamMap = google::protobuf::Map<std::string, v1::Value>;

constexpr char kEnvProgram[] = "/usr/bin/env";

std::vector<std::string> CommandOf(const Launch& launch) {
  if (!launch.command.empty()) return launch.command;
  // W&B's default wraps everything in Python; a program of another kind would only fail there.
  if (launch.program.ends_with(".py")) {
    return {"${env}", "${interpreter}", "${program}", "${args}"};
  }
  return {"${env}", "${program}", "${args}"};
}

bool IsListMacro(const std::string& word) {
  return word == "${args}" || word == "${args_no_boolean_flags}" || word == "${args_no_hyphens}";
}

bool IsFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

std::string Beneath(const Launch& launch, const std::string& word) {
  const std::filesystem::path folder = launch.folder.empty() ? "." : launch.folder;
  return std::filesystem::absolute(folder / word).lexically_normal().string();
}

std::string SearchPath(const Launch& launch) {
  if (const auto found = launch.environment.find("PATH"); found != launch.environment.end()) {
    return found->second;
  }
  const char* path = getenv("PATH");
  return path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
}

// As execvp would find it; empty if it would not.
std::string FindOnPath(const Launch& launch, const std::string& name) {
  const std::string path = SearchPath(launch);
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (IsFile(candidate) && access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return "";
}

// A program's own working folder is its trial's, so what is written relative to the sweep file is
// made absolute: the program, and literal words that look like a file and are one.
std::string Resolved(const Launch& launch, const std::string& word) {
  if (word.empty() || word.front() == '/' || word.front() == '-') return word;
  if (word.find_first_of("./") == std::string::npos) return word;
  const std::string absolute = Beneath(launch, word);
  return IsFile(absolute) ? absolute : word;
}

std::string ProgramPath(const Launch& launch) {
  if (launch.program.empty() || launch.program.front() == '/') return launch.program;
  const std::string absolute = Beneath(launch, launch.program);
  return IsFile(absolute) ? absolute : launch.program;
}

// Debian has python3 and no python; W&B's macro says python.
std::string Interpreter(const Launch& launch) {
  return FindOnPath(launch, "python").empty() && !FindOnPath(launch, "python3").empty() ? "python3"
                                                                                        : "python";
}

std::string ValueText(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kStringValue:
      return value.string_value();
    case v1::Value::kBoolValue:
      return value.bool_value() ? "True" : "False";
    default:
      return ToJsonText(value);
  }
}

std::vector<std::string> SortedNames(const ParamMap& params) {
  std::vector<std::string> names;
  for (const auto& [name, value] : params) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

void AppendArguments(const std::string& macro, const ParamMap& params,
                     std::vector<std::string>& argv) {
  for (const std::string& name : SortedNames(params)) {
    const v1::Value& value = params.at(name);
    if (macro == "${args_no_boolean_flags}" && value.kind_case() == v1::Value::kBoolValue) {
      if (value.bool_value()) argv.push_back("--" + name);
      continue;
    }
    argv.push_back((macro == "${args_no_hyphens}" ? "" : "--") + name + "=" + ValueText(value));
  }
}

// Replaces ${...} wherever it is ours; `expand` says what it becomes, nullopt leaves it.
Status ReplaceMacros(
    std::string& word,
    const std::function<StatusOr<std::optional<std::string>>(const std::string&)>& expand) {
  for (size_t begin = 0; (begin = word.find("${", begin)) != std::string::npos;) {
    const size_t end = word.find('}', begin);
    if (end == std::string::npos) break;
    const std::optional<std::string> text = TRY(expand(word.substr(begin + 2, end - begin - 2)));
    if (!text) {
      begin += 2;
      continue;
    }
    word.replace(begin, end + 1 - begin, *text);
    begin += text->size();  // What was put in is not looked at again.
  }
  return {};
}

StatusOr<std::optional<std::string>> EnvironmentMacro(const Launch& launch,
                                                      const std::string& name) {
  if (const auto found = launch.environment.find(name); found != launch.environment.end()) {
    return std::optional<std::string>(found->second);
  }
  const char* value = getenv(name.c_str());
  if (value == nullptr) {
    return Error(StatusCode::kInvalidArgument,
                 "the command names ${envvar:" + name + "}, which is not set",
                 {"VARIABLE_NOT_SET", name,
                  "export " + name + " before `jizi`, or write the value into the command"});
  }
  return std::optional<std::string>(value);
}

bool IsAssignment(const std::string& word) {
  const size_t equals = word.find('=');
  return equals != std::string::npos && equals > 0 && word.front() != '-' &&
         word.find("${") == std::string::npos;
}

// The place of the program's word in the command as written, past `env` and its assignments.
size_t ProgramIndex(const std::vector<std::string>& command) {
  size_t index = 0;
  const std::string& first = command.front();
  if (first == "${env}" || first == "env" || first.ends_with("/env")) {
    ++index;
    while (index < command.size() && IsAssignment(command[index])) ++index;
  }
  return index;
}

Status NoProgram(const std::string& what) {
  return Error(StatusCode::kInvalidArgument, "command holds no ${program}; " + what,
               {"COMMAND_WITHOUT_PROGRAM", "command",
                "put the program first: command: [\"./train\", \"${args}\"], or set `program:` and "
                "use [\"${env}\", \"${interpreter}\", \"${program}\", \"${args}\"]"});
}

Status CheckFile(const std::string& written, const std::string& path, bool must_execute) {
  if (!IsFile(path)) {
    std::error_code ignored;
    const bool folder = std::filesystem::is_directory(path, ignored);
    return Error(StatusCode::kInvalidArgument,
                 "the program '" + written + "' " + (folder ? "is a folder" : "does not exist") +
                     " (looked at " + path + ")",
                 {"PROGRAM_NOT_FOUND", written,
                  "write a path relative to the sweep file, an absolute one, or a name on PATH"});
  }
  if (must_execute && access(path.c_str(), X_OK) != 0) {
    return Error(StatusCode::kInvalidArgument, "the program '" + written + "' is not executable",
                 {"PROGRAM_NOT_EXECUTABLE", written,
                  "chmod +x " + path + ", or put its interpreter before it in `command`"});
  }
  return {};
}

}  // namespace

StatusOr<std::vector<std::string>> ExpandCommand(const Launch& launch, const ParamMap& params,
                                                 const std::string& args_json_file) {
  std::string json = "{";
  for (const std::string& name : SortedNames(params)) {
    v1::Value key;
    key.set_string_value(name);
    json += (json.size() > 1 ? ", " : "") + ToJsonText(key) + ": " + ToJsonText(params.at(name));
  }
  json += "}";
  const auto expand = [&](const std::string& name) -> StatusOr<std::optional<std::string>> {
    using Text = std::optional<std::string>;
    if (name == "env") return Text(kEnvProgram);
    if (name == "interpreter") return Text(Interpreter(launch));
    if (name == "program") return Text(ProgramPath(launch));
    if (name == "args_json") return Text(json);
    if (name == "args_json_file") return Text(args_json_file);
    if (name.starts_with("envvar:")) return EnvironmentMacro(launch, name.substr(7));
    return Text(std::nullopt);
  };
  std::vector<std::string> argv;
  for (const std::string& written : CommandOf(launch)) {
    if (IsListMacro(written)) {
      AppendArguments(written, params, argv);
      continue;
    }
    std::string word = Resolved(launch, written);
    if (word == written) TRY(ReplaceMacros(word, expand));
    argv.push_back(std::move(word));
  }
  for (const std::string& word : argv) {
    if (word.find('\0') == std::string::npos) continue;
    return Error(StatusCode::kInvalidArgument, "a parameter holds a zero byte, no argument can",
                 {"VALUE_WITH_ZERO_BYTE", word.substr(0, word.find('\0')),
                  "take it out of `values`, or read JIZI_PARAMS and leave ${args} out"});
  }
  // A bare name is looked for on PATH first, as a shell would, then beside the sweep file.
  if (!argv.empty() && argv[0].find('/') == std::string::npos &&
      FindOnPath(launch, argv[0]).empty() && IsFile(Beneath(launch, argv[0]))) {
    argv[0] = Beneath(launch, argv[0]);
  }
  return argv;
}

Status CheckCommand(const Launch& launch) {
  if (launch.command.empty() && launch.program.empty()) {
    return Error(StatusCode::kInvalidArgument, "there is neither `program` nor `command`",
                 {"COMMAND_EMPTY", "program", "add `program: train.py` or a `command` list"});
  }
  const std::vector<std::string> command = CommandOf(launch);
  for (std::string word : command) {
    TRY(ReplaceMacros(word, [&](const std::string& name) -> StatusOr<std::optional<std::string>> {
      if (name.starts_with("envvar:")) return EnvironmentMacro(launch, name.substr(7));
      return std::optional<std::string>();
    }));
  }
  const size_t index = ProgramIndex(command);
  if (index >= command.size()) return NoProgram("the command ends before any program");
  const std::string& word = command[index];
  if (word.starts_with("${args")) return NoProgram("'" + word + "' is not a program");
  if (word.starts_with("-") && index == 0) return NoProgram("'" + word + "' is not a program");
  const bool uses_program = std::any_of(command.begin(), command.end(), [](const std::string& w) {
    return w.find("${program}") != std::string::npos;
  });
  if (uses_program && launch.program.empty()) {
    return NoProgram("`command` uses ${program} and `program:` is missing");
  }
  if (word == "${program}") {
    if (launch.program.find('/') == std::string::npos && index > 0 &&
        !FindOnPath(launch, launch.program).empty()) {
      return {};  // env looks on PATH.
    }
    return CheckFile(launch.program, ProgramPath(launch), true);
  }
  if (word == "${interpreter}") {
    const std::string interpreter = Interpreter(launch);
    if (FindOnPath(launch, interpreter).empty()) return CheckFile(interpreter, interpreter, true);
    // `-m package.module` and the like are the interpreter's to judge.
    if (index + 1 < command.size() && command[index + 1] == "${program}") {
      return CheckFile(launch.program, ProgramPath(launch), false);
    }
    return {};
  }
  if (word.find("${") != std::string::npos || word.starts_with("-")) return {};
  if (word.find('/') == std::string::npos && !FindOnPath(launch, word).empty()) return {};
  return CheckFile(word, word.starts_with("/") ? word : Beneath(launch, word), true);
}

bool CarriesParameters(const Launch& launch) {
  const std::vector<std::string> command = CommandOf(launch);
  return std::any_of(command.begin(), command.end(), [](const std::string& word) {
    return word.find("${args") != std::string::npos;
  });
}

}  // namespace jizi::tuner
