// Events of a machine under physical rules. Private to the room.
#pragma once

#include <cstdint>

#include "orrery/engine/rounds.hpp"

namespace orrery::simulate {

enum class PhysicalEventKind : std::uint8_t {
  request,          // transfer `ref` requests its next link
  delivered,        // transfer `ref` has arrived and passed the endpoint
  reduced,          // transfer `ref` is reduced
  wake,             // link `ref` is free
  step_end,         // collective `ref`: progress[`extra`] has received all of a step
  sent,             // collective `ref`: all transfers of its progress[`extra`] have left
  node_end,         // node `extra` of rank `ref`
  custom_step_end,  // step `extra` of custom run `ref`
  memory_request,   // memory request `ref` is at its server
  memory_end,       // server `ref`, at its version `extra`, has served a request
  flow_end,         // flow `ref`, at its version `extra`
  kernel_end,       // kernel of rank `ref`, at its version `extra`
  rank_start,       // rank `ref` starts
  link_change,      // change `ref` of the bandwidth of a link
  departure         // message `ref` of a collective leaves
};

struct PhysicalEvent {
  PhysicalEventKind kind = PhysicalEventKind::request;
  std::uint32_t ref = 0;
  std::uint32_t extra = 0;
};

using PhysicalRounds = engine::Rounds<PhysicalEvent>;

}  // namespace orrery::simulate
