#pragma once
// data.h - Fashion-MNIST (Xiao, Rasul & Vollgraf 2017) as Debian's package dataset-fashion-mnist
// installs it. Shapes: n images of kSide x kSide bytes, row by row; n labels 0..9. Fails:
// std::runtime_error naming the file and the mend (apt-get install dataset-fashion-mnist). Cost:
// 0.6 to 0.9 s for the training set (gzip).

#include <cstdint>
#include <string>
#include <vector>

namespace fashion_mnist {

inline constexpr int64_t kSide = 28;
inline constexpr int64_t kClasses = 10;
inline constexpr char kDefaultFolder[] = "/usr/share/datasets/fashion-mnist";

struct Images {
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> labels;
  int64_t count() const { return static_cast<int64_t>(labels.size()); }
};

Images LoadTraining(const std::string& folder);  // 60,000
Images LoadTest(const std::string& folder);      // 10,000

}  // namespace fashion_mnist
