#include "examples/fashion_mnist/model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace fashion_mnist {
namespace {

constexpr int64_t kEvaluationBatch = 1000;

torch::nn::Sequential MakeCnn(int64_t width) {
  using torch::nn::Conv2d;
  using torch::nn::Conv2dOptions;
  const int64_t quarter = kSide / 4;  // Side after two poolings.
  return torch::nn::Sequential(Conv2d(Conv2dOptions(1, width, 3).padding(1)), torch::nn::ReLU(),
                               torch::nn::MaxPool2d(2),
                               Conv2d(Conv2dOptions(width, 2 * width, 3).padding(1)),
                               torch::nn::ReLU(), torch::nn::MaxPool2d(2), torch::nn::Flatten(),
                               torch::nn::Linear(2 * width * quarter * quarter, 8 * width),
                               torch::nn::ReLU(), torch::nn::Linear(8 * width, kClasses));
}

torch::nn::Sequential MakeMlp(int64_t width) {
  const int64_t hidden = 16 * width;
  return torch::nn::Sequential(torch::nn::Flatten(), torch::nn::Linear(kSide * kSide, hidden),
                               torch::nn::ReLU(), torch::nn::Linear(hidden, hidden),
                               torch::nn::ReLU(), torch::nn::Linear(hidden, kClasses));
}

}  // namespace

Tensors ToTensors(const Images& images, int64_t begin, int64_t end) {
  const int64_t count = end - begin;
  auto* pixels = const_cast<uint8_t*>(images.pixels.data()) + begin * kSide * kSide;
  auto* labels = const_cast<uint8_t*>(images.labels.data()) + begin;
  Tensors tensors;
  tensors.images = torch::from_blob(pixels, {count, 1, kSide, kSide}, torch::kUInt8)
                       .to(torch::kFloat32)
                       .div_(127.5)
                       .sub_(1.0);
  tensors.labels = torch::from_blob(labels, {count}, torch::kUInt8).to(torch::kInt64);
  return tensors;
}

torch::nn::Sequential MakeModel(const std::string& kind, int64_t width) {
  if (kind == "cnn") return MakeCnn(width);
  if (kind == "mlp") return MakeMlp(width);
  throw std::invalid_argument("model is '" + kind + "'; it can be cnn or mlp");
}

double TrainEpoch(torch::nn::Sequential& model, torch::optim::SGD& optimiser, const Tensors& data,
                  int64_t batch_size, uint64_t seed, int64_t epoch) {
  model->train();
  const int64_t count = data.labels.size(0);
  auto generator = at::detail::createCPUGenerator(seed * 1'000'003 + static_cast<uint64_t>(epoch));
  const torch::Tensor order = torch::randperm(count, generator);
  double sum = 0;
  for (int64_t begin = 0; begin < count; begin += batch_size) {
    const torch::Tensor batch = order.slice(0, begin, std::min(begin + batch_size, count));
    optimiser.zero_grad();
    const torch::Tensor loss = torch::nn::functional::cross_entropy(
        model->forward(data.images.index_select(0, batch)), data.labels.index_select(0, batch));
    const double value = loss.item<double>();
    if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
    loss.backward();
    optimiser.step();
    sum += value * static_cast<double>(batch.size(0));
  }
  return sum / static_cast<double>(count);
}

Score Evaluate(torch::nn::Sequential& model, const Tensors& data) {
  const torch::NoGradGuard no_gradients;
  model->eval();
  const int64_t count = data.labels.size(0);
  double loss = 0;
  int64_t right = 0;
  for (int64_t begin = 0; begin < count; begin += kEvaluationBatch) {
    const int64_t end = std::min(begin + kEvaluationBatch, count);
    const torch::Tensor labels = data.labels.slice(0, begin, end);
    const torch::Tensor logits = model->forward(data.images.slice(0, begin, end));
    loss += torch::nn::functional::cross_entropy(logits, labels).item<double>() *
            static_cast<double>(end - begin);
    right += logits.argmax(1).eq(labels).sum().item<int64_t>();
  }
  const auto n = static_cast<double>(count);
  return {loss / n, static_cast<double>(right) / n};
}

}  // namespace fashion_mnist
