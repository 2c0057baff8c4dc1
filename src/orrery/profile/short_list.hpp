// A list of which most have one item: one needs no memory of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace orrery::profile {

// `Item`: trivially copyable.
template <class Item>
class ShortList {
 public:
  ShortList() : one_{} {}
  ShortList(ShortList&& other) noexcept : ShortList() { swap(other); }
  ShortList& operator=(ShortList&& other) noexcept {
    swap(other);
    return *this;
  }
  ShortList(const ShortList&) = delete;
  ShortList& operator=(const ShortList&) = delete;
  ~ShortList() {
    if (capacity_ > 1) { delete[] many_; }
  }

  void push_back(const Item& item) {
    if (size_ == capacity_) { grow(); }
    begin()[size_++] = item;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] Item* begin() { return capacity_ > 1 ? many_ : &one_; }
  [[nodiscard]] Item* end() { return begin() + size_; }
  [[nodiscard]] const Item* begin() const { return capacity_ > 1 ? many_ : &one_; }
  [[nodiscard]] const Item* end() const { return begin() + size_; }
  [[nodiscard]] const Item& front() const { return *begin(); }

 private:
  void grow() {
    auto* const more = new Item[2 * std::size_t{capacity_}];
    std::copy(begin(), end(), more);
    if (capacity_ > 1) { delete[] many_; }
    many_ = more;
    capacity_ *= 2;
  }

  void swap(ShortList& other) noexcept {
    const bool mine = capacity_ > 1;
    const bool others = other.capacity_ > 1;
    Item* const my_many = mine ? many_ : nullptr;
    const Item my_one = mine ? Item{} : one_;
    if (others) {
      many_ = other.many_;
    } else {
      one_ = other.one_;
    }
    if (mine) {
      other.many_ = my_many;
    } else {
      other.one_ = my_one;
    }
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  union {
    Item one_;
    Item* many_;
  };
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = 1;  // of many_ if more than one
};

}  // namespace orrery::profile
