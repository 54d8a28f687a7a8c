#pragma once
// persistent_vector.h - a vector whose copy is O(1) and shares all elements until one side writes
// (a radix tree of shared chunks). Why: a snapshot of a study must not grow with the study, and a
// scheduler reads it while the engine goes on writing. Threads: distinct copies may be used from
// distinct threads; one copy is like any value. Cost: copy O(1); push_back and Mutable O(log32 n),
// copying at most one path of chunks of kFanout elements; read O(log32 n). Source: Bagwell & Rompf
// 2011 (without relaxation).

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "schedulers/model/cow.h"

namespace jizi::tuner {

template <typename T>
class PersistentVector {
 public:
  static constexpr size_t kFanout = 32;

  PersistentVector() = default;
  PersistentVector(const PersistentVector&) = default;
  PersistentVector& operator=(const PersistentVector&) = default;
  // What was moved from is empty, not a size without elements.
  PersistentVector(PersistentVector&& other) noexcept
      : root_(std::move(other.root_)),
        size_(std::exchange(other.size_, 0)),
        height_(std::exchange(other.height_, 0)) {}
  PersistentVector& operator=(PersistentVector&& other) noexcept {
    PersistentVector taken(std::move(other));
    std::swap(root_, taken.root_);
    std::swap(size_, taken.size_);
    std::swap(height_, taken.height_);
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t index) const {
    const Cow<Node>* node = &root_;
    for (int level = height_; level > 0; --level) node = &(*node)->children[Slot(index, level)];
    return (*node)->elements[index % kFanout];
  }
  const T& back() const { return (*this)[size_ - 1]; }

  void push_back(T value) {
    if (root_ && size_ == Capacity()) {
      Node grown;
      grown.children.push_back(std::move(root_));
      root_ = Cow<Node>(std::move(grown));
      ++height_;
    }
    MutableLeaf(size_).elements.push_back(std::move(value));
    ++size_;
  }

  // The element, for writing; shared chunks on its path are copied first.
  T& Mutable(size_t index) { return MutableLeaf(index).elements[index % kFanout]; }

  // Drops the elements from `size` on. Cost: O(size), for it is rare (a roll-back).
  void Truncate(size_t size) {
    if (size >= size_) return;
    PersistentVector kept;
    for (size_t i = 0; i < size; ++i) kept.push_back((*this)[i]);
    *this = std::move(kept);
  }

  class const_iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using reference = const T&;
    using pointer = const T*;
    using iterator_category = std::forward_iterator_tag;
    const_iterator() = default;
    const_iterator(const PersistentVector* of, size_t index) : of_(of), index_(index) {}
    const T& operator*() const { return (*of_)[index_]; }
    const T* operator->() const { return &(*of_)[index_]; }
    const_iterator& operator++() {
      ++index_;
      return *this;
    }
    const_iterator operator++(int) {
      const_iterator before = *this;
      ++index_;
      return before;
    }
    bool operator==(const const_iterator&) const = default;

   private:
    const PersistentVector* of_ = nullptr;
    size_t index_ = 0;
  };
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size_}; }

  bool operator==(const PersistentVector& other) const {
    if (size_ != other.size_) return false;
    if (root_.SharesWith(other.root_)) return true;
    for (size_t i = 0; i < size_; ++i) {
      if (!((*this)[i] == other[i])) return false;
    }
    return true;
  }

 private:
  struct Node {  // A leaf (level 0) has elements, an inner node children.
    std::vector<Cow<Node>> children;
    std::vector<T> elements;
  };

  size_t Capacity() const {
    size_t capacity = kFanout;
    for (int level = 0; level < height_; ++level) capacity *= kFanout;
    return capacity;
  }
  static size_t Slot(size_t index, int level) {
    for (int i = 0; i < level; ++i) index /= kFanout;
    return index % kFanout;
  }
  Node& MutableLeaf(size_t index) {
    Node* node = &root_.Mutable();
    for (int level = height_; level > 0; --level) {
      const size_t slot = Slot(index, level);
      if (slot == node->children.size()) node->children.emplace_back();
      node = &node->children[slot].Mutable();
    }
    return *node;
  }

  Cow<Node> root_;
  size_t size_ = 0;
  int height_ = 0;
};

}  // namespace jizi::tuner
