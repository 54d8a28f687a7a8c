#include "tuner-service/workers/attempt_environment.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "tuner-service/workers/random_hex.h"

namespace jizi::tuner {
namespace {

constexpr std::array<std::string_view, 7> kTorchrun = {
    "RANK",       "WORLD_SIZE",  "LOCAL_RANK", "LOCAL_WORLD_SIZE",
    "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT"};

std::map<std::string, std::string> Inherited() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || text.starts_with("JIZI_")) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  for (const std::string_view name : kTorchrun) variables.erase(std::string(name));
  return variables;
}

}  // namespace

std::string ParamsJson(const v1::Trial& trial) {
  const std::map<std::string, v1::Value> sorted(trial.params().begin(), trial.params().end());
  std::string json = "{";
  for (const auto& [name, value] : sorted) {
    v1::Value key;
    key.set_string_value(name);
    json += (json.size() > 1 ? ", " : "") + ToJsonText(key) + ": " + ToJsonText(value);
  }
  return json + "}";
}

std::optional<std::vector<std::string>> GpuIds(const Launch& launch) {
  if (!launch.gpu_ids.empty()) return launch.gpu_ids;
  std::map<std::string, std::string> variables = Inherited();
  for (const auto& [name, value] : launch.environment) variables[name] = value;
  const auto found = variables.find("CUDA_VISIBLE_DEVICES");
  if (found == variables.end()) return std::nullopt;
  std::vector<std::string> ids;
  std::istringstream text(found->second);
  for (std::string id; std::getline(text, id, ',');) {
    std::erase(id, ' ');
    if (id == "-1") break;
    if (!id.empty()) ids.push_back(id);
  }
  return ids;
}

std::map<std::string, std::string> AttemptEnvironment(const WorkerOptions& options,
                                                      const v1::Assignment& assignment,
                                                      const AttemptPlace& place) {
  std::map<std::string, std::string> variables = Inherited();
  variables["OMP_NUM_THREADS"] = std::to_string(options.launch.threads);
  variables.emplace("PYTHONUNBUFFERED", "1");
  std::error_code ignored;
  const std::string sweep_folder =
      std::filesystem::absolute(options.launch.folder.empty() ? "." : options.launch.folder,
                                ignored)
          .lexically_normal()
          .string();
  std::string& python_path = variables["PYTHONPATH"];
  python_path += (python_path.empty() ? "" : ":") + sweep_folder;
  for (const auto& [name, value] : options.launch.environment) variables[name] = value;

  const v1::Trial& trial = assignment.trial();
  variables["JIZI_ENDPOINT"] = options.service.address;
  variables["JIZI_STUDY"] = options.study;
  variables["JIZI_WORKER"] = place.worker;
  variables["JIZI_TRIAL"] = std::to_string(trial.id());
  variables["JIZI_ATTEMPT"] = std::to_string(assignment.lease().attempt());
  variables["JIZI_LEASE"] = HexOf(assignment.lease().token());
  variables["JIZI_PARAMS"] = ParamsJson(trial);
  variables["JIZI_CHECKPOINT_DIR"] = place.folder + "/checkpoints";
  variables["JIZI_OUTBOX"] = place.outbox;
  if (!place.warm_start.empty()) {
    variables["JIZI_WARM_START"] = place.warm_start;
    variables["JIZI_WARM_START_STEP"] = std::to_string(assignment.warm_start().checkpoint().step());
  }
  if (place.one_trial) variables["JIZI_ONE_TRIAL"] = "1";
  if (!place.output_mark.empty()) variables["JIZI_OUTPUT_MARK"] = place.output_mark;
  if (!options.service.token_file.empty()) {
    variables["JIZI_TOKEN_FILE"] = options.service.token_file;
  }
  if (!options.service.ca_file.empty()) variables["JIZI_CA_FILE"] = options.service.ca_file;
  return variables;
}

}  // namespace jizi::tuner
