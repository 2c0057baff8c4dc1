// Events of a machine under physical rules. Private to the room.
#pragma once

#include <cstdint>

#include "orrery/engine/rounds.hpp"

namespace orrery::simulate {

enum class PhysicalEventKind : std::uint8_t {
  ask,              // packet `ref` requests its next link
  delivered,        // packet `ref` is at its target, endpoint passed
  reduced,          // packet `ref` is reduced
  wake,             // link `ref` is free
  left,             // seat `extra` of collective `ref`: what it sent has left
  node_end,         // node `extra` of rank `ref`
  custom_step_end,  // step `extra` of custom run `ref`
  memory_request,   // memory request `ref` is at its server
  memory_end        // server `ref` may have served a request; `extra`: version of what it expects
};

struct PhysicalEvent {
  PhysicalEventKind kind = PhysicalEventKind::ask;
  std::uint32_t ref = 0;
  std::uint32_t extra = 0;
};

using PhysicalRounds = engine::Rounds<PhysicalEvent>;

}  // namespace orrery::simulate
