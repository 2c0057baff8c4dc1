// What ends a run before its end. Private to the room.
#pragma once

#include <cstdint>
#include <string>

namespace orrery::simulate {

// Something that cannot be simulated showed while the machine ran.
struct Stop {
  std::uint32_t rank = 0;
  std::uint64_t node = 0;
  std::string why;
};

}  // namespace orrery::simulate
