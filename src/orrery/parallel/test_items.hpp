// Accessors of items, for tests.
#pragma once

#include "orrery/parallel/program.hpp"

namespace orrery::parallel::test {

// Empty kernel if the item is not a kernel.
inline const hardware::Kernel& kernel_of(const Item& item) {
  static const hardware::Kernel none{};
  return item.kernel() != nullptr ? item.kernel()->kernel : none;
}

inline bool is_collective(const Item& item) { return item.collective() != nullptr; }

// Requires is_collective(item).
inline const CollectiveCall& call_of(const Item& item) { return item.collective()->call; }

inline bool is_asynchronous(const Item& item) { return is_collective(item) && item.collective()->asynchronous; }

}  // namespace orrery::parallel::test
