// The exception that ends a run with an error. Private to the room.
#pragma once

#include <cstdint>
#include <string>

namespace orrery::simulate {

// The machine reached a node that cannot be simulated.
struct Stop {
  std::uint32_t rank = 0;
  std::uint64_t node = 0;
  std::string why;
};

}  // namespace orrery::simulate
