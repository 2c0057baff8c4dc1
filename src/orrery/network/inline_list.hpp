// A short list with a fixed capacity and inline storage: pricing a collective allocates nothing, and an empty list
// costs nothing to construct.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <new>
#include <type_traits>

#include "orrery/core/error.hpp"

namespace orrery::network {

template <class T, std::size_t Capacity>
class InlineList {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  InlineList() {}  // NOLINT(modernize-use-equals-default): leaves the storage as it is
  InlineList(std::initializer_list<T> items) {
    for (const T& item : items) { push_back(item); }
  }
  InlineList(const InlineList& other) { append(other); }
  InlineList& operator=(const InlineList& other) {
    if (this != &other) {
      clear();
      append(other);
    }
    return *this;
  }
  ~InlineList() = default;

  void push_back(const T& item) {
    ORRERY_ASSERT(size_ < Capacity);
    std::construct_at(reinterpret_cast<T*>(storage_) + size_, item);
    ++size_;
  }
  void clear() { size_ = 0; }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const T* begin() const { return std::launder(reinterpret_cast<const T*>(storage_)); }
  [[nodiscard]] const T* end() const { return begin() + size_; }
  [[nodiscard]] const T& operator[](std::size_t index) const { return begin()[index]; }
  [[nodiscard]] T& operator[](std::size_t index) { return std::launder(reinterpret_cast<T*>(storage_))[index]; }
  [[nodiscard]] const T& back() const { return (*this)[size_ - 1]; }
  [[nodiscard]] T& back() { return (*this)[size_ - 1]; }
  [[nodiscard]] T* begin() { return std::launder(reinterpret_cast<T*>(storage_)); }
  [[nodiscard]] T* end() { return begin() + size_; }

  friend bool operator==(const InlineList& a, const InlineList& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  void append(const InlineList& other) {
    for (const T& item : other) { push_back(item); }
  }

  alignas(T) std::byte storage_[sizeof(T) * Capacity];  // NOLINT(modernize-avoid-c-arrays)
  std::size_t size_ = 0;
};

}  // namespace orrery::network
