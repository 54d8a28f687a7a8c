// The few lines that make a program a trial: parameters in, measurements out, directives back.
// What stands for the training is a curve that ends highest near lr = 0.1.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "trial-helper/jizi_trial_helper.h"

namespace {

struct Model {
  double accuracy = 0.1;
  void TrainOneEpoch(double lr) {
    const double best = 0.95 - 0.2 * std::abs(std::log10(lr / 0.1));
    accuracy += 0.5 * (std::max(0.1, best) - accuracy);
  }
  void Save(const std::string& path) const {
    std::ofstream file(path);
    file.exceptions(std::ios::failbit | std::ios::badbit);  // A full disk throws, as it should.
    file << accuracy << std::endl;
  }
  void Load(const std::string& path) { std::ifstream(path) >> accuracy; }
};

}  // namespace

int main() {
  const int64_t epochs = 10;
  jizi::HelperOptions options;
  options.can_pause = true;  // It saves checkpoints and starts from them.
  jizi::JiziTrialHelper helper = jizi::JiziTrialHelper::FromEnvironment(options);
  while (auto trial = helper.NextTrial()) {
    const double lr = trial->Get<double>("lr", 0.05);  // 0.05 when run by hand.
    Model model;
    if (!trial->WarmStart().empty()) model.Load(trial->WarmStart());
    trial->PlanSteps(epochs);
    for (int64_t epoch = trial->StartStep() + 1; epoch <= epochs; ++epoch) {
      model.TrainOneEpoch(lr);
      const auto result = trial->Report(epoch, {{"val_accuracy", model.accuracy}});
      std::printf("epoch %d: val_accuracy %.4f\n", static_cast<int>(epoch), model.accuracy);
      trial->Checkpoint(epoch, [&](const std::string& path) { model.Save(path); });
      if (result.should_stop()) break;
    }
  }
}
