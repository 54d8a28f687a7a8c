#pragma once
// model.h - the networks of the example and one pass of training or evaluation over a set of
// images. Shapes: images n x 1 x 28 x 28 float in [-1, 1]; labels n int64. Threads: one.

#include <torch/torch.h>

#include <cstdint>
#include <string>

#include "examples/fashion_mnist/data.h"

namespace fashion_mnist {

struct Tensors {
  torch::Tensor images;
  torch::Tensor labels;
};
// The images [begin, end) of a set, normalised.
Tensors ToTensors(const Images& images, int64_t begin, int64_t end);

// "cnn": two 3 x 3 convolutions of `width` and 2 x `width` channels, each with 2 x 2 pooling, then
// 8 x `width` hidden units. "mlp": two hidden layers of 16 x `width` units. Throws
// std::invalid_argument for another kind.
torch::nn::Sequential MakeModel(const std::string& kind, int64_t width);

struct Score {
  double loss = 0;      // Mean cross-entropy; NaN once training has diverged.
  double accuracy = 0;  // Share of right answers in [0, 1].
};

// One epoch of SGD in a random order that `seed` and `epoch` fix alone, so that a resumed run sees
// the same batches. Stops early, with a NaN loss, at the first batch whose loss is not finite.
double TrainEpoch(torch::nn::Sequential& model, torch::optim::SGD& optimiser, const Tensors& data,
                  int64_t batch_size, uint64_t seed, int64_t epoch);
Score Evaluate(torch::nn::Sequential& model, const Tensors& data);

}  // namespace fashion_mnist
