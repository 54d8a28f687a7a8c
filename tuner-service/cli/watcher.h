#pragma once
// watcher.h - WatchStudy on a thread of its own; what came is taken from another.
// When the service goes away it is asked again until the destructor; a missed stretch arrives as a
// snapshot. Bound: above 1,000 messages that nobody takes, no more are read from the stream.
// Threads: one of its own; Take from any.

#include <grpcpp/client_context.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "proto/client.h"

namespace jizi::tuner {

class StudyWatcher {
 public:
  StudyWatcher(Client& client, std::string study);
  ~StudyWatcher();
  StudyWatcher(const StudyWatcher&) = delete;
  StudyWatcher& operator=(const StudyWatcher&) = delete;

  std::vector<v1::WatchStudyResponse> Take() EXCLUDES(mutex_);

  // Why nothing comes any more: NotFound for a deleted study; OK while it goes on or is tried
  // again.
  Status ended() EXCLUDES(mutex_);
  // The service did not answer at the last try.
  bool away() EXCLUDES(mutex_);

 private:
  void Run();
  bool Stream(int64_t& position);                               // False: no further try.
  bool Sleep(std::chrono::milliseconds time) EXCLUDES(mutex_);  // False: stopped.

  Client& client_;
  const std::string study_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<v1::WatchStudyResponse> arrived_ GUARDED_BY(mutex_);
  Status ended_ GUARDED_BY(mutex_);
  bool away_ GUARDED_BY(mutex_) = false;
  bool stopped_ GUARDED_BY(mutex_) = false;
  grpc::ClientContext* context_ GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace jizi::tuner
