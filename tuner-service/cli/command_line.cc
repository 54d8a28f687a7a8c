#include "tuner-service/cli/command_line.h"

#include <charconv>

namespace jizi::tuner {

CLI::Validator WholeNumber(int64_t min, int64_t max) {
  const std::string fault =
      "must be a whole number " +
      (max == INT64_MAX ? "of at least " + std::to_string(min)
                        : "from " + std::to_string(min) + " to " + std::to_string(max));
  return CLI::Validator(
      [=](const std::string& text) {
        int64_t value = 0;
        const char* const end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, value);
        const bool good = read.ec == std::errc() && read.ptr == end && value >= min && value <= max;
        return good ? std::string() : fault;
      },
      "");
}

void AddServer(CLI::App& command, Target& target) {
  command.add_option("--server", target.server, "Work with a server: HOST:PORT or unix:/path");
  command.add_option("--token-file", target.token_file, "Its token (else JIZI_TOKEN_FILE)");
  command.add_option("--ca-file", target.ca_file,
                     "PEM that its TLS certificate is checked with (else JIZI_CA_FILE)");
}

CLI::App* AddQuery(CLI::App& app, Line& line, const std::string& name, const std::string& about,
                   const std::string& examples, About what) {
  const bool study = what == About::kStudy;
  CLI::App* command = app.add_subcommand(name, about);
  command->footer("Examples:\n" + examples);
  if (study) command->add_option("STUDY", line.query.study, "The study's name")->required();
  auto* database =
      command->add_option("--db", line.query.target.database,
                          "Work with this database, or with the `run` or `serve` that owns it");
  AddServer(*command, line.query.target);
  command->get_option("--server")->excludes(database);
  command->add_flag("--json", line.query.json,
                    "One JSON object a line, with the proto's field names");
  return command;
}

}  // namespace jizi::tuner
