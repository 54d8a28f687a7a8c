#pragma once
// local_service.h - a real service (gRPC over a Unix socket, engine, SQLite) in this process, that
// a test can end and start again on the same file, and the environment of a worker around a trial.
// Threads: the test's.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "proto/client.h"
#include "schedulers/scheduler.h"
#include "tuner-service/engine/engine.h"
#include "tuner-service/rpc/server.h"

namespace jizi::testing {

class LocalService {
 public:
  LocalService();  // Started.
  ~LocalService();

  void Stop();
  void Start();

  // Random search for lr (0.001 to 0.1) and layers (1 to 4); metric val.
  void CreateStudy(int64_t run_cap);
  v1::Assignment Suggest(double lease_s = 0);  // Of "worker", numbered as an executor would.
  v1::Trial TrialOf(int64_t trial);            // With its measurements.
  // value of "val" by step, of the measurements that count. Fails the test if one is there twice.
  std::map<int64_t, double> ValuesOf(int64_t trial);
  v1::Study StudyNow();
  Client& client() { return *client_; }

  // What the scheduler says to each measurement, from now on.
  void Tell(std::function<std::optional<tuner::Directive>(const tuner::Measurement&)> tell);

  // The environment that a worker gives to its program, in this process or for a child.
  std::map<std::string, std::string> EnvironmentOf(const v1::Assignment& assignment) const;
  void Enter(const v1::Assignment& assignment) const;

  const std::string& folder() const { return folder_; }
  std::string outbox() const { return folder_ + "/outbox"; }

 private:
  struct Voice {
    std::mutex mutex;
    std::function<std::optional<tuner::Directive>(const tuner::Measurement&)> tell;
  };
  std::string folder_;
  std::shared_ptr<Voice> voice_ = std::make_shared<Voice>();
  std::unique_ptr<tuner::Engine> engine_;
  std::unique_ptr<tuner::Server> server_;
  std::unique_ptr<Client> client_;
  int64_t worker_sequence_ = 1;
  friend class Telling;
};

// Removes the variables of a worker and of torchrun.
void LeaveEnvironment();

// Waits, generously, until it holds.
bool Eventually(const std::function<bool()>& condition);

}  // namespace jizi::testing
