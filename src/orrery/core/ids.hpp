// Typed indices: an Id<Block> is the position of a block in a list of blocks, and no position in any other list.
//
// An Id always names an element. A position that may be absent is an OptionalId, which takes no more space.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "orrery/core/error.hpp"

namespace orrery {

// `Tag`: the type of the elements; it may be incomplete.
template <class Tag>
class Id {
 public:
  explicit constexpr Id(std::size_t index) : index_(static_cast<std::uint32_t>(index)) {}

  [[nodiscard]] constexpr std::size_t index() const { return index_; }

  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  std::uint32_t index_;
};

template <class Tag>
class OptionalId {
 public:
  constexpr OptionalId() = default;
  constexpr OptionalId(std::nullopt_t) {}  // NOLINT(google-explicit-constructor): as std::optional
  constexpr OptionalId(Id<Tag> id)         // NOLINT(google-explicit-constructor): as std::optional
      : index_(static_cast<std::uint32_t>(id.index())) {}

  [[nodiscard]] constexpr bool has_value() const { return index_ != kAbsent; }
  explicit constexpr operator bool() const { return has_value(); }

  // Needs has_value().
  [[nodiscard]] constexpr Id<Tag> operator*() const {
    ORRERY_ASSERT(has_value());
    return Id<Tag>(index_);
  }

  friend constexpr bool operator==(OptionalId, OptionalId) = default;

 private:
  static constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t index_ = kAbsent;
};

// A vector whose elements are named by an id.
template <class Key, class T>
class IdVector : private std::vector<T> {
  using Base = std::vector<T>;

 public:
  using Base::Base;
  using typename Base::const_iterator;
  using typename Base::iterator;
  using typename Base::value_type;

  using Base::assign;
  using Base::back;
  using Base::begin;
  using Base::clear;
  using Base::emplace_back;
  using Base::empty;
  using Base::end;
  using Base::front;
  using Base::push_back;
  using Base::reserve;
  using Base::size;

  [[nodiscard]] T& operator[](Key id) { return Base::operator[](id.index()); }
  [[nodiscard]] const T& operator[](Key id) const { return Base::operator[](id.index()); }

  // The ids of the last element and of the one to be added next.
  [[nodiscard]] Key last_id() const { return Key(size() - 1); }
  [[nodiscard]] Key next_id() const { return Key(size()); }
};

}  // namespace orrery
