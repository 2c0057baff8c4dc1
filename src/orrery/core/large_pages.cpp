#include "orrery/core/large_pages.hpp"

#include <algorithm>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace orrery {

namespace {

constexpr std::size_t kPage = std::size_t{1} << 21U;  // x86-64, arm64

std::align_val_t alignment_of(std::size_t bytes, std::size_t alignment) {
  return std::align_val_t{bytes < kPage ? alignment : std::max(alignment, kPage)};
}

}  // namespace

void* allocate_in_large_pages(std::size_t bytes, std::size_t alignment) {
  const std::size_t whole = bytes < kPage ? bytes : (bytes + kPage - 1) / kPage * kPage;
  void* const made = ::operator new(whole, alignment_of(bytes, alignment));
#ifdef MADV_HUGEPAGE
  if (bytes >= kPage) { (void)::madvise(made, whole, MADV_HUGEPAGE); }  // advice: it may fail
#endif
  return made;
}

void deallocate_large_pages(void* given, std::size_t bytes, std::size_t alignment) {
  ::operator delete(given, alignment_of(bytes, alignment));
}

}  // namespace orrery
