// A short list with a fixed capacity that lives where it is declared: pricing a collective allocates nothing.
#pragma once

#include <array>
#include <cstddef>

#include "orrery/core/error.hpp"

namespace orrery::network {

template <class T, std::size_t Capacity>
class InlineList {
 public:
  void push_back(const T& item) {
    ORRERY_ASSERT(size_ < Capacity);
    items_[size_++] = item;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const T& operator[](std::size_t index) const { return items_[index]; }
  [[nodiscard]] T& operator[](std::size_t index) { return items_[index]; }
  [[nodiscard]] const T& back() const { return items_[size_ - 1]; }
  [[nodiscard]] T& back() { return items_[size_ - 1]; }
  [[nodiscard]] const T* begin() const { return items_.data(); }
  [[nodiscard]] const T* end() const { return items_.data() + size_; }

 private:
  std::array<T, Capacity> items_;
  std::size_t size_ = 0;
};

}  // namespace orrery::network
