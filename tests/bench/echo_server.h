#pragma once
// echo_server.h - the limit that the service is measured against: the same messages, the same
// kind of channel, and nothing behind them.
// Threads: gRPC's.

#include <memory>
#include <string>

namespace jizi::bench {

class EchoServer {
 public:
  static std::unique_ptr<EchoServer> Start(const std::string& listen);  // Null if it cannot listen.
  virtual ~EchoServer() = default;
  virtual std::string address() const = 0;
};

}  // namespace jizi::bench
