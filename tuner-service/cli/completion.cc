#include "tuner-service/cli/completion.h"

#include <vector>

namespace jizi::tuner {
namespace {

std::vector<const CLI::App*> Commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<const CLI::Option*> Options(const CLI::App& command) {
  return command.get_options([](const CLI::Option*) { return true; });
}

// "--db", "-n": as they are typed.
std::vector<std::string> Flags(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : Options(command)) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
  }
  return flags;
}

std::string Words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<std::string> Names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : Commands(app)) names.push_back(command->get_name());
  return names;
}

std::string Bash(const CLI::App& app) {
  std::string text =
      "# bash completion of jizi; made by `jizi completion bash`\n_jizi() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} words= flags=\n  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    words=\"" +
      Words(Names(app)) + "\" flags=\"" + Words(Flags(app)) +
      "\"\n  else\n    case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* command : Commands(app)) {
    const std::string values = command->get_name() == "completion" ? "words=\"bash zsh\" " : "";
    text += "      " + command->get_name() + ") " + values + "flags=\"" + Words(Flags(*command)) +
            "\" ;;\n";
  }
  return text +
         "    esac\n  fi\n"
         "  case $word in\n    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "       [ \"$COMP_CWORD\" -gt 1 ] && COMPREPLY+=($(compgen -f -- \"$word\")) ;;\n"
         "  esac\n}\ncomplete -o filenames -F _jizi jizi\n";
}

// Within '...' of the shell, and within [...] or a : list of zsh.
std::string ZshText(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      quoted += std::string("\\") + c;
    } else {
      quoted += c == '\n' ? ' ' : c;
    }
  }
  return quoted;
}

std::string Zsh(const CLI::App& app) {
  std::string text =
      "#compdef jizi\n# zsh completion of jizi; made by `jizi completion zsh`\n_jizi() {\n"
      "  if (( CURRENT == 2 )); then\n    local -a commands=(\n";
  for (const CLI::App* command : Commands(app)) {
    text += "      '" + command->get_name() + ":" + ZshText(command->get_description()) + "'\n";
  }
  text += "    )\n    _describe command commands\n    return\n  fi\n  case $words[2] in\n";
  for (const CLI::App* command : Commands(app)) {
    text += "    " + command->get_name() + ")\n      _arguments -S \\\n";
    for (const CLI::Option* option : Options(*command)) {
      const std::string about = "[" + ZshText(option->get_description()) + "]";
      const std::string value = option->get_items_expected_max() > 0 ? ":value:_files" : "";
      for (const std::string& name : option->get_lnames()) {
        text += "        '--" + name + about + value + "' \\\n";
      }
    }
    text += command->get_name() == "completion" ? "        '*:shell:(bash zsh)'\n"
                                                : "        '*:file:_files'\n";
    text += "      ;;\n";
  }
  return text + "  esac\n}\n_jizi \"$@\"\n";
}

// A line of text for roff: backslashes and hyphens stay, and no line begins with a control mark.
std::string Roff(const std::string& text) {
  std::string safe;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) safe += "\\&";
    begins = c == '\n';
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string AsTyped(const CLI::App& command) {
  std::string usage = "jizi " + command.get_name();
  for (const CLI::Option* option : Options(command)) {
    if (option->get_positional()) usage += " " + option->get_name(/*positional=*/true);
  }
  return usage;
}

std::string Literal(const std::string& text) {
  return ".PP\n.nf\n" + Roff(text) + "\n.fi\n";
}

}  // namespace

std::string CompletionScript(const CLI::App& app, const std::string& shell) {
  return shell == "bash" ? Bash(app) : Zsh(app);
}

std::string ManPage(const CLI::App& app, const std::string& version) {
  std::string text = ".TH JIZI 1 \"\" \"jizi " + Roff(version) + "\"\n.SH NAME\njizi \\- " +
                     Roff(app.get_description()) +
                     "\n.SH SYNOPSIS\n.B jizi\n.I COMMAND\n[OPTIONS]\n.SH COMMANDS\n";
  for (const CLI::App* command : Commands(app)) {
    text += ".SS " + Roff(AsTyped(*command)) + "\n" + Roff(command->get_description()) + ".\n";
    for (const CLI::Option* option : Options(*command)) {
      std::string name = option->get_name(option->get_positional(), /*all_options=*/true);
      text += ".TP\n.B " + Roff(name) + "\n" + Roff(option->get_description()) + "\n";
    }
    if (!command->get_footer().empty()) text += Literal(command->get_footer());
  }
  return text + ".SH NOTES\n" + Literal(app.get_footer());
}

}  // namespace jizi::tuner
