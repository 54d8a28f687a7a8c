#include "trial-helper/environment.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <stdexcept>

#include "trial-helper/params.h"

namespace jizi::helper {
namespace {

namespace fs = std::filesystem;

std::string Read(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

[[noreturn]] void Refuse(const char* name, const std::string& value, const std::string& mend) {
  throw std::invalid_argument(std::string("jizi: the environment variable ") + name + " holds \"" +
                              value.substr(0, 80) + "\": " + mend);
}

int64_t ReadNumber(const char* name, int64_t otherwise, int64_t smallest) {
  const std::string text = Read(name);
  if (text.empty()) return otherwise;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < smallest ||
      number > INT32_MAX * int64_t{1'000'000}) {
    Refuse(name, text, "it must be a whole number of at least " + std::to_string(smallest));
  }
  return number;
}

std::string ReadToken() {
  const std::string hex = Read("JIZI_LEASE");
  std::string token;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned byte = 0;
    const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    if (error != std::errc() || end != hex.data() + i + 2) break;
    token += static_cast<char>(byte);
  }
  if (hex.size() != 32 || token.size() != 16) {
    Refuse("JIZI_LEASE", hex,
           "it must be the 32 hex digits of the lease's token, as its worker sets it");
  }
  return token;
}

std::string MakeUpWorker() {
  char host[64] = "host";
  gethostname(host, sizeof(host) - 1);
  char name[128];
  std::snprintf(name, sizeof(name), "hand/%.63s/%d/%08x", host, static_cast<int>(getpid()),
                std::random_device{}());
  return name;
}

}  // namespace

std::string FolderOf(const std::string& trials_folder, int64_t trial) {
  char name[32];
  std::snprintf(name, sizeof(name), "/%06lld", static_cast<long long>(trial));
  return trials_folder + name;
}

std::string WhyNotConnected(const Status& status) {
  const ErrorDetail detail = DetailOf(status);
  const char* name = detail.code == "TOKEN_FILE" ? "JIZI_TOKEN_FILE"
                     : detail.code == "CA_FILE"  ? "JIZI_CA_FILE"
                                                 : "JIZI_ENDPOINT";
  std::string why =
      std::string("jizi: the environment variable ") + name + ": " + ForPeople(status);
  if (detail.code != "ADDRESS" && fs::path(detail.subject).is_relative()) {
    why += "; " + detail.subject + " is looked for in " + fs::current_path().string() +
           ", where this program runs: give its whole path";
  }
  return why;
}

// A socket's path that is not whole is another's in a program that its worker starts in a folder of
// its own: the service would seem to be away for ever.
static void CheckSocket(const std::string& endpoint) {
  if (!endpoint.starts_with("unix:")) return;
  const fs::path path = endpoint.substr(5);
  std::error_code ignored;
  if (path.is_absolute() || fs::exists(path, ignored)) return;
  Refuse("JIZI_ENDPOINT", endpoint,
         "there is no such socket in " + fs::current_path().string() +
             ", where this program runs: give its whole path, unix:/...");
}

Environment ReadEnvironment() {
  Environment env;
  env.rank = static_cast<int>(ReadNumber("RANK", 0, 0));
  env.world_size = static_cast<int>(ReadNumber("WORLD_SIZE", 1, 1));
  if (const std::string json = Read("JIZI_PARAMS"); !json.empty()) {
    env.params = ParseParams(json);
  }
  env.warm_start = Read("JIZI_WARM_START");
  env.warm_start_step = ReadNumber("JIZI_WARM_START_STEP", 0, 0);
  if (const std::string folder = Read("JIZI_CHECKPOINT_DIR"); !folder.empty()) {
    env.trial_folder = fs::absolute(folder).lexically_normal().parent_path().string();
    env.trials_folder = fs::path(env.trial_folder).parent_path().string();
  } else {
    env.trials_folder = (fs::current_path() / "jizi-trials").string();
  }
  env.endpoint = Read("JIZI_ENDPOINT");
  if (env.endpoint.empty()) return env;
  CheckSocket(env.endpoint);

  env.study = Read("JIZI_STUDY");
  if (env.study.empty()) {
    Refuse("JIZI_STUDY", "", "name the study that JIZI_ENDPOINT serves, or unset JIZI_ENDPOINT");
  }
  env.worker = Read("JIZI_WORKER");
  env.outbox = Read("JIZI_OUTBOX");
  env.output_mark = Read("JIZI_OUTPUT_MARK");
  const std::string one = Read("JIZI_ONE_TRIAL");
  env.one_trial = !one.empty() && one != "0";
  if (!Read("JIZI_TRIAL").empty()) {
    v1::Lease& lease = env.lease.emplace();
    lease.set_study(env.study);
    lease.set_trial(ReadNumber("JIZI_TRIAL", 0, 1));
    lease.set_attempt(static_cast<int>(ReadNumber("JIZI_ATTEMPT", 0, 1)));
    if (lease.attempt() < 1) Refuse("JIZI_ATTEMPT", "", "set it beside JIZI_TRIAL");
    lease.set_token(ReadToken());
    // A lease without its worker: other trials would go to a worker that nobody knows.
    if (env.worker.empty()) env.one_trial = true;
  } else if (env.worker.empty()) {
    env.worker = MakeUpWorker();
  }
  return env;
}

}  // namespace jizi::helper
