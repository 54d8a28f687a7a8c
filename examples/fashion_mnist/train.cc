// train.cc - trains a small network on Fashion-MNIST, one trial after another, and lets Jizi choose
// its parameters. By hand: fashion_mnist --lr=0.05 --epochs=2. Under `jizi run sweep.yaml` the same
// program takes its parameters from the service.
#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <exception>

#include "examples/fashion_mnist/model.h"
#include "trial-helper/jizi_trial_helper.h"

namespace fashion_mnist {
namespace {

struct Settings {  // Defaults serve a run by hand.
  std::string data = kDefaultFolder;
  std::string model = "cnn";
  double lr = 0.05;
  double momentum = 0.9;
  double weight_decay = 1e-4;
  int64_t batch_size = 128;
  int64_t width = 8;
  int64_t epochs = 3;
  int64_t train_examples = 54'000;  // Of 60,000; the last 6,000 are for validation.
  uint64_t seed = 1;
  bool test = false;
};

constexpr int64_t kValidationExamples = 6'000;

Settings ForTrial(const jizi::Trial& trial, Settings by_hand) {
  Settings settings = by_hand;
  settings.model = trial.Get("model", by_hand.model);
  settings.lr = trial.Get("lr", by_hand.lr);
  settings.momentum = trial.Get("momentum", by_hand.momentum);
  settings.weight_decay = trial.Get("weight_decay", by_hand.weight_decay);
  settings.batch_size = trial.Get("batch_size", by_hand.batch_size);
  settings.width = trial.Get("width", by_hand.width);
  settings.epochs = trial.Get("epochs", by_hand.epochs);
  settings.train_examples = trial.Get("train_examples", by_hand.train_examples);
  return settings;
}

class Run {
 public:
  explicit Run(const Settings& settings)
      : settings_(settings), model_(Seeded(settings)), optimiser_(MakeOptimiser()) {}

  void Load(const std::string& path) {
    torch::serialize::InputArchive archive;
    archive.load_from(path);
    torch::serialize::InputArchive model;
    torch::serialize::InputArchive optimiser;
    archive.read("model", model);
    archive.read("optimiser", optimiser);
    model_->load(model);
    optimiser_.load(optimiser);
  }
  void Save(const std::string& path) const {
    torch::serialize::OutputArchive archive;
    torch::serialize::OutputArchive model;
    torch::serialize::OutputArchive optimiser;
    model_->save(model);
    optimiser_.save(optimiser);
    archive.write("model", model);
    archive.write("optimiser", optimiser);
    archive.save_to(path);
  }

  double TrainEpoch(const Tensors& data, int64_t epoch) {
    return fashion_mnist::TrainEpoch(model_, optimiser_, data, settings_.batch_size, settings_.seed,
                                     epoch);
  }
  Score Evaluate(const Tensors& data) { return fashion_mnist::Evaluate(model_, data); }

 private:
  static torch::nn::Sequential Seeded(const Settings& settings) {
    torch::manual_seed(settings.seed);
    return MakeModel(settings.model, settings.width);
  }
  torch::optim::SGD MakeOptimiser() {
    const auto options = torch::optim::SGDOptions(settings_.lr)
                             .momentum(settings_.momentum)
                             .weight_decay(settings_.weight_decay);
    return torch::optim::SGD(model_->parameters(), options);
  }

  Settings settings_;
  torch::nn::Sequential model_;
  torch::optim::SGD optimiser_;
};

void RunTrial(jizi::Trial& trial, const Settings& settings, const Images& images) {
  const int64_t held_out = images.count() - kValidationExamples;
  const Tensors training = ToTensors(images, 0, std::min(settings.train_examples, held_out));
  const Tensors validation = ToTensors(images, held_out, images.count());

  Run run(settings);
  if (!trial.WarmStart().empty()) run.Load(trial.WarmStart());
  trial.PlanSteps(settings.epochs);
  for (int64_t epoch = trial.StartStep(); epoch < settings.epochs; ++epoch) {
    const double loss = run.TrainEpoch(training, epoch);
    if (!std::isfinite(loss)) {
      const std::string why = "the loss became NaN in epoch " + std::to_string(epoch + 1);
      std::printf("epoch %ld: %s\n", static_cast<long>(epoch + 1), why.c_str());
      trial.Infeasible(why);
      return;
    }
    const Score score = run.Evaluate(validation);
    std::printf("epoch %ld: loss %.4f, validation loss %.4f, validation accuracy %.4f\n",
                static_cast<long>(epoch + 1), loss, score.loss, score.accuracy);
    std::fflush(stdout);
    const auto answer = trial.Report(
        epoch + 1, {{"val_accuracy", score.accuracy}, {"val_loss", score.loss}, {"loss", loss}});
    if (trial.id() != 0) {  // By hand nobody would take it up.
      trial.Checkpoint(epoch + 1, [&run](const std::string& path) { run.Save(path); });
    }
    if (answer.should_stop()) return;
  }
  if (settings.test) {
    const Images test = LoadTest(settings.data);
    const Score score = run.Evaluate(ToTensors(test, 0, test.count()));
    std::printf("test accuracy %.4f\n", score.accuracy);
  }
}

int Main(int argc, char** argv) {
  Settings by_hand;
  CLI::App app(
      "Trains a small network on Fashion-MNIST. Started by jizi, the study's parameters win.");
  app.add_option("--data", by_hand.data, "Folder of the data set's files")->capture_default_str();
  app.add_option("--model", by_hand.model, "cnn or mlp")->capture_default_str();
  app.add_option("--lr", by_hand.lr, "Learning rate of SGD")->capture_default_str();
  app.add_option("--momentum", by_hand.momentum)->capture_default_str();
  app.add_option("--weight_decay", by_hand.weight_decay)->capture_default_str();
  app.add_option("--batch_size", by_hand.batch_size)->capture_default_str();
  app.add_option("--width", by_hand.width, "Channels of the first convolution")
      ->capture_default_str();
  app.add_option("--epochs", by_hand.epochs)->capture_default_str();
  app.add_option("--train_examples", by_hand.train_examples, "Train on fewer examples")
      ->capture_default_str();
  app.add_option("--seed", by_hand.seed)->capture_default_str();
  app.add_flag("--test", by_hand.test, "Print the test accuracy at the end");
  CLI11_PARSE(app, argc, argv);

  // OpenMP's threads spin: more of them than free cores make an epoch several times slower.
  torch::set_num_threads(1);
  const Images images = LoadTraining(by_hand.data);
  jizi::JiziTrialHelper helper = jizi::JiziTrialHelper::FromEnvironment();
  while (auto trial = helper.NextTrial()) {
    RunTrial(*trial, ForTrial(*trial, by_hand), images);
  }
  return 0;
}

}  // namespace
}  // namespace fashion_mnist

int main(int argc, char** argv) {
  try {
    return fashion_mnist::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fashion_mnist: %s\n", error.what());
    return 1;
  }
}
