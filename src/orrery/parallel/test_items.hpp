// What an item is, for tests that look at one after the other.
#pragma once

#include "orrery/parallel/program.hpp"

namespace orrery::parallel::test {

// No kernel where the item is none.
inline const hardware::Kernel& kernel_of(const Item& item) {
  static const hardware::Kernel none{};
  return item.kernel() != nullptr ? item.kernel()->kernel : none;
}

inline bool is_collective(const Item& item) { return item.collective() != nullptr; }

// Needs is_collective(item).
inline const CollectiveCall& call_of(const Item& item) { return item.collective()->call; }

inline bool is_asynchronous(const Item& item) { return is_collective(item) && item.collective()->asynchronous; }

}  // namespace orrery::parallel::test
