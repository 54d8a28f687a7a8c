#include "tuner-service/engine/engine.h"

namespace jizi::tuner {
namespace {

class RealClock final : public Clock {
 public:
  Timestamp Now() override {
    return std::chrono::time_point_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now());
  }
  SteadyTime SteadyNow() override { return std::chrono::steady_clock::now(); }
};

}  // namespace

Clock& SystemClock() {
  static RealClock clock;  // Has no state: shared by every engine of the process.
  return clock;
}

}  // namespace jizi::tuner
