#pragma once
// environment.h - what the worker that started this program says to it (docs/design.md, "A trial's
// contract with its program"). The one place of the helper that reads the environment.
// Fails: std::invalid_argument naming the variable, what it holds and the mend.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/status.h"
#include "jizi/v1/types.pb.h"

namespace jizi::helper {

using Params = std::map<std::string, v1::Value>;

struct Environment {
  std::string endpoint;  // Empty: run by hand, without a service.
  std::string study;
  std::string worker;              // Given, or made up for a program started by hand.
  std::optional<v1::Lease> lease;  // Of the first trial; none: ask for one.
  Params params;                   // Of the first trial, for when the service is away at the start.
  std::string trial_folder;        // Of the first trial; empty where nobody says.
  std::string trials_folder;       // Where trials' folders stand: <trials_folder>/<id, 6 digits>.
  std::string warm_start;
  int64_t warm_start_step = 0;
  std::string outbox;
  std::string output_mark;  // Of output.h; empty: none.
  bool one_trial = false;
  int rank = 0;
  int world_size = 1;
};

Environment ReadEnvironment();

// Why the environment's address, token or authority cannot be used, naming its variable.
std::string WhyNotConnected(const Status& status);

// The folder of a trial beside the others.
std::string FolderOf(const std::string& trials_folder, int64_t trial);

}  // namespace jizi::helper
