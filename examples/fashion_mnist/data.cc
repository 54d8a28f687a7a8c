#include "examples/fashion_mnist/data.h"

#include <zlib.h>

#include <stdexcept>

namespace fashion_mnist {
namespace {

constexpr uint32_t kImagesMagic = 2051;
constexpr uint32_t kLabelsMagic = 2049;
constexpr uint32_t kMaxItems = 1'000'000;  // A damaged header must not ask for all memory.

[[noreturn]] void Fail(const std::string& path, const std::string& what) {
  throw std::runtime_error(path + ": " + what +
                           "; install it with: apt-get install dataset-fashion-mnist");
}

class GzipFile {
 public:
  explicit GzipFile(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (file_ == nullptr) Fail(path_, "cannot be opened");
  }
  ~GzipFile() { gzclose(file_); }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  uint32_t ReadBigEndian() {
    uint8_t bytes[4];
    Read(bytes, sizeof(bytes));
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
  }
  void Read(uint8_t* to, size_t size) {
    if (gzread(file_, to, static_cast<unsigned>(size)) != static_cast<int>(size)) {
      Fail(path_, "is cut short");
    }
  }
  uint32_t ReadHeader(uint32_t magic) {
    if (ReadBigEndian() != magic) Fail(path_, "is no IDX file of the right kind");
    const uint32_t count = ReadBigEndian();
    if (count > kMaxItems) Fail(path_, "has a damaged header");
    return count;
  }

 private:
  std::string path_;
  gzFile file_;
};

Images Load(const std::string& folder, const std::string& stem) {
  Images images;
  {
    const std::string path = folder + "/" + stem + "-images-idx3-ubyte.gz";
    GzipFile file(path);
    const uint32_t count = file.ReadHeader(kImagesMagic);
    if (file.ReadBigEndian() != kSide || file.ReadBigEndian() != kSide) {
      Fail(path, "does not hold 28 x 28 images");
    }
    images.pixels.resize(size_t{count} * kSide * kSide);
    file.Read(images.pixels.data(), images.pixels.size());
  }
  const std::string path = folder + "/" + stem + "-labels-idx1-ubyte.gz";
  GzipFile file(path);
  images.labels.resize(file.ReadHeader(kLabelsMagic));
  file.Read(images.labels.data(), images.labels.size());
  if (images.pixels.size() != images.labels.size() * kSide * kSide) {
    Fail(path, "does not hold as many labels as there are images");
  }
  return images;
}

}  // namespace

Images LoadTraining(const std::string& folder) {
  return Load(folder, "train");
}
Images LoadTest(const std::string& folder) {
  return Load(folder, "t10k");
}

}  // namespace fashion_mnist
