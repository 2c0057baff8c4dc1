// An allocator for arrays of many megabytes that are accessed at random: it asks the system for large pages, so that an
// access does not also miss the cache of page addresses. Smaller arrays are allocated as usual.
#pragma once

#include <cstddef>
#include <limits>
#include <new>

namespace orrery {

// Memory with the alignment; of 2 MiB or more, in large pages if the system has them. Throws std::bad_alloc.
[[nodiscard]] void* allocate_in_large_pages(std::size_t bytes, std::size_t alignment);
void deallocate_large_pages(void* given, std::size_t bytes, std::size_t alignment);

template <class T>
class LargePages {
 public:
  using value_type = T;

  LargePages() = default;
  template <class U>
  LargePages(const LargePages<U>& /*other*/) {}  // NOLINT(*-explicit-*)

  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / 2 / sizeof(T)) { throw std::bad_array_new_length(); }
    return static_cast<T*>(allocate_in_large_pages(count * sizeof(T), alignof(T)));
  }
  void deallocate(T* given, std::size_t count) { deallocate_large_pages(given, count * sizeof(T), alignof(T)); }

  friend bool operator==(const LargePages&, const LargePages&) { return true; }
};

}  // namespace orrery
