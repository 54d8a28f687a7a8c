#include "tuner-service/store/words.h"

#include "base/status.h"

namespace jizi::tuner {

const char* Name(StudyState state) {
  switch (state) {
    case StudyState::kActive:
      return "Active";
    case StudyState::kPaused:
      return "Paused";
    case StudyState::kStopped:
      return "Stopped";
    case StudyState::kFinished:
      return "Finished";
  }
  CHECK(false);
}

const char* Name(TrialState state) {
  switch (state) {
    case TrialState::kQueued:
      return "Queued";
    case TrialState::kRunning:
      return "Running";
    case TrialState::kPaused:
      return "Paused";
    case TrialState::kCompleted:
      return "Completed";
    case TrialState::kStopped:
      return "Stopped";
    case TrialState::kInfeasible:
      return "Infeasible";
    case TrialState::kFailed:
      return "Failed";
  }
  CHECK(false);
}

const char* Name(AttemptEnd end) {
  switch (end) {
    case AttemptEnd::kRunning:
      return "Running";
    case AttemptEnd::kFinished:
      return "Finished";
    case AttemptEnd::kStopped:
      return "Stopped";
    case AttemptEnd::kPaused:
      return "Paused";
    case AttemptEnd::kFailed:
      return "Failed";
    case AttemptEnd::kLost:
      return "Lost";
    case AttemptEnd::kReleased:
      return "Released";
  }
  CHECK(false);
}

}  // namespace jizi::tuner
