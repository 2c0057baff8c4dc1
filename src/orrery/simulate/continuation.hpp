// Which sender or receiver continues when a message has arrived. Private to the room.
#pragma once

#include <cstdint>

namespace orrery::simulate {

// The sender or the receiver of a message.
struct Continuation {
  enum class Kind : std::uint8_t { none, chunk, node, custom_step };
  Kind kind = Kind::none;
  std::uint32_t rank = 0;
  std::uint32_t ref = 0;    // chunk; node; custom run
  std::uint32_t extra = 0;  // of a custom run: its step
};

}  // namespace orrery::simulate
