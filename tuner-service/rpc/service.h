#pragma once
// service.h - the gRPC service in front of the handlers: one wrapper for every call (version,
// token, deadline, answer, log, counters), and the watch streams. The subclass of the generated
// service is compiled in service.cc alone: it takes half a minute. Threads: see server.h.

#include <grpcpp/impl/service_type.h>

#include <chrono>
#include <memory>

#include "tuner-service/rpc/accounts.h"
#include "tuner-service/rpc/aside.h"
#include "tuner-service/rpc/gate.h"
#include "tuner-service/rpc/handlers.h"

namespace jizi::tuner {

class TuneGrpcService {
 public:
  static std::unique_ptr<TuneGrpcService> Make(Engine& engine, std::shared_ptr<const Gate> gate,
                                               std::shared_ptr<Accounts> accounts,
                                               std::shared_ptr<Aside> aside);
  virtual ~TuneGrpcService() = default;
  virtual grpc::Service* service() = 0;
  virtual void EndStreams() = 0;  // And take no new ones.
  // Once gRPC is done with every call; false if it kept some longer.
  virtual bool WaitForStreams(std::chrono::steady_clock::time_point deadline) = 0;
};

}  // namespace jizi::tuner
