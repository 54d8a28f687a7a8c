#include "tuner-service/cli/closing.h"

#include "tuner-service/cli/show.h"
#include "tuner-service/cli/text.h"

namespace jizi::tuner {

bool AllFailed(const v1::Study& study) {
  return study.counts().failed() > 0 && study.counts().failed() == EndedTrials(study.counts());
}

std::string OutcomeText(const v1::Study& study, const v1::Trial* best, const v1::Trial* failed,
                        const std::string& target_words) {
  std::string text;
  if (best != nullptr) {
    text = BestTrial(study, *best);
  } else if (study.spec().metrics_size() > 0) {
    text = "no trial has a result\n";
  }
  if (failed != nullptr) {
    const std::string id = std::to_string(failed->id());
    text += "every trial failed; trial " + id + ": " + ReasonLine(failed->end_why()) +
            "\nall that it said: jizi show " + ForShell(study.spec().name()) + " " + id +
            target_words + "\n";
  }
  text += Fit(study.spec().name(), 60) + " is " + StateName(study.state());
  if (!study.state_why().empty()) text += ": " + Fit(study.state_why(), 300);
  text += "; " + TrialsHave(EndedTrials(study.counts())) + " ended";
  if (study.counts().failed() > 0)
    text += ", " + std::to_string(study.counts().failed()) + " of them failed";
  return Printable(text + "\n");
}

std::string Closing(const v1::Study& study, const v1::Trial* best, const v1::Trial* failed,
                    const ClosingWords& words) {
  const std::string on_it = ForShell(study.spec().name()) + words.target_words;
  std::string text = OutcomeText(study, best, failed, words.target_words);
  if (!words.database.empty()) text += "everything is in " + words.database + "\n";
  text += "to look at it: jizi trials " + on_it + "\n";
  if (study.state() != v1::STUDY_STATE_FINISHED) {
    text += "to go on: " + words.how_to_go_on + "\n";
  } else if (study.counts().failed() > 0) {
    text +=
        "to try the failed ones again: jizi retry " + on_it + ", then " + words.how_to_go_on + "\n";
  }
  return Printable(text);
}

}  // namespace jizi::tuner
