#pragma once
// cow.h - a shared immutable value that becomes private when written (copy on write).
// Why not shared_ptr::use_count() == 1: its load is relaxed, so a reader's last access on another
// thread would race with the write. Threads: distinct handles may be used from distinct threads,
// also of one value.   Cost: copy one atomic increment.

#include <atomic>
#include <cstdint>
#include <utility>

namespace jizi::tuner {

template <typename T>
class Cow {
 public:
  Cow() = default;  // Empty; reading it is a bug.
  explicit Cow(T value) : box_(new Box(std::move(value))) {}
  Cow(const Cow& other) : box_(other.box_) {
    if (box_ != nullptr) box_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  Cow(Cow&& other) noexcept : box_(std::exchange(other.box_, nullptr)) {}
  Cow& operator=(Cow other) noexcept {
    std::swap(box_, other.box_);
    return *this;
  }
  ~Cow() {
    if (box_ != nullptr && box_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete box_;
  }

  explicit operator bool() const { return box_ != nullptr; }
  const T& operator*() const { return box_->value; }
  const T* operator->() const { return &box_->value; }

  // For writing: this handle's own copy from here on.
  T& Mutable() {
    if (box_ == nullptr) {
      box_ = new Box(T());
    } else if (box_->owners.load(std::memory_order_acquire) > 1) {
      *this = Cow(box_->value);
    }
    return box_->value;
  }

  bool SharesWith(const Cow& other) const { return box_ == other.box_; }
  bool operator==(const Cow& other) const {
    return box_ == other.box_ ||
           (box_ != nullptr && other.box_ != nullptr && box_->value == other.box_->value);
  }

 private:
  struct Box {
    explicit Box(T initial) : value(std::move(initial)) {}
    std::atomic<int64_t> owners{1};
    T value;
  };
  Box* box_ = nullptr;
};

}  // namespace jizi::tuner
