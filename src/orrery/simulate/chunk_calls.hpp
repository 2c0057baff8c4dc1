// Collectives of graphs and plans whose chunks choose the order of the dimensions (network/chunk_order.hpp), each as
// one call. Private to the room.
#pragma once

#include <optional>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/core/units.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/network/chunk_order.hpp"
#include "orrery/network/group.hpp"

namespace orrery::simulate {

struct ChunkedCall {
  struct Load {
    int dimension = 0;
    Seconds busy;  // of a device's port, in each direction
    Bytes sent;
  };
  Seconds time, latency;  // alone; the base of the library included in both
  std::vector<Load> loads;
};

// `bytes`: the whole buffer; 64 chunks. Nothing: the operation has no such order, or the group does not fill several
// dimensions with ports of their own.
[[nodiscard]] std::optional<ChunkedCall> chunked_call(const hardware::Cluster& cluster, network::ChunkOrder order,
                                                      Collective collective, Bytes bytes, const network::Group& shape);

}  // namespace orrery::simulate
