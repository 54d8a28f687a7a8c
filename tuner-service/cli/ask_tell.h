#pragma once
// ask_tell.h - one line of JSON in, one line of JSON out: a study served to a program in any
// language (docs/ask-tell.md has the protocol). Every error is an answer, and the session goes on.
// Threads: from one thread.   Cost: one call of the service a line.

#include <map>
#include <string>

#include "base/status.h"
#include "proto/client.h"
#include "tuner-service/cli/script_calls.h"

namespace jizi::tuner {

inline constexpr size_t kMaxAskTellLine = 16 << 20;

class AskTell {
 public:
  // `client` outlives it. `metric`: the study's first; empty if it has none.
  AskTell(Client& client, std::string study, std::string metric, std::string worker);

  // What this worker still held from a session that did not end properly is queued again.
  StatusOr<int> Begin();

  // The answer of one line, without line ends.
  std::string Answer(const std::string& line);

  // Renews what was asked for and not told. Lost leases are found out by the next line about them.
  Status Renew();

  // What was asked for and not told is queued again. Returns how many.
  StatusOr<int> End();

  // {"error":{"code":...,"message":...,"mend":...}}
  static std::string ErrorLine(const Status& status);

 private:
  struct Held {
    HeldTrial trial;
    bool measured = false;  // The study's metric was reported.
  };
  class Request;
  StatusOr<std::string> Serve(const std::string& line);
  StatusOr<std::string> Ask(const Request& request);
  StatusOr<std::string> Report(const Request& request);
  StatusOr<std::string> Tell(const Request& request);
  StatusOr<Held*> Find(int64_t id);
  // A trial that the service took back is no longer ours.
  void Forget(int64_t id, const Status& status);

  Client& client_;
  const std::string study_;
  const std::string metric_;
  const std::string worker_;
  int64_t sequence_ = 1;
  std::map<int64_t, Held> held_;
};

}  // namespace jizi::tuner
