// An allocator for arrays of many megabytes that are accessed at random: it asks the system for large pages, so that an
// access does not also miss the cache of page addresses. Smaller arrays are allocated as usual.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace orrery::engine {

template <class T>
class LargePages {
 public:
  using value_type = T;

  LargePages() = default;
  template <class U>
  LargePages(const LargePages<U>& /*other*/) {}  // NOLINT(*-explicit-*)

  [[nodiscard]] T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kPage) { return static_cast<T*>(::operator new(bytes, std::align_val_t{alignof(T)})); }
    if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) { throw std::bad_array_new_length(); }
    void* const made = ::operator new((bytes + kPage - 1) / kPage * kPage, std::align_val_t{kPage});
#ifdef __linux__
    (void)::madvise(made, (bytes + kPage - 1) / kPage * kPage, MADV_HUGEPAGE);  // advice: it may fail
#endif
    return static_cast<T*>(made);
  }
  void deallocate(T* given, std::size_t count) {
    const std::size_t align = count * sizeof(T) < kPage ? alignof(T) : kPage;
    ::operator delete(given, std::align_val_t{align});
  }

  friend bool operator==(const LargePages&, const LargePages&) { return true; }

 private:
  static constexpr std::size_t kPage = std::size_t{1} << 21;  // x86-64, arm64
};

}  // namespace orrery::engine
