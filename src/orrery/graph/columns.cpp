#include "orrery/graph/columns.hpp"

#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace orrery::graph {

namespace {

constexpr std::size_t kHugePage = std::size_t{1} << 21;

// A large column uses its last huge page only in part: the unused part is at most an eighth of the column.
constexpr std::size_t kLarge = 8 * kHugePage;

}  // namespace

void* allocate_column(std::size_t bytes) {
  if (bytes < kLarge) { return ::operator new(bytes); }
  const std::size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* const memory = std::aligned_alloc(kHugePage, whole);
  if (memory == nullptr) { throw std::bad_alloc(); }
  // Only a hint: without huge pages the column is slower to fill and otherwise equal.
  static_cast<void>(::madvise(memory, whole, MADV_HUGEPAGE));
  return memory;
}

void release_column(void* memory, std::size_t bytes) {
  if (bytes < kLarge) {
    ::operator delete(memory);
  } else {
    std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc)
  }
}

}  // namespace orrery::graph
