// A hierarchical collective cut into chunks that choose the order of the dimensions (`collective --chunk-order`).
#pragma once

#include <cstdint>
#include <string>

#include "orrery/api/collective.hpp"
#include "orrery/core/error.hpp"
#include "orrery/network/chunk_order.hpp"
#include "orrery/results/collective.hpp"

namespace orrery::api {

struct ChunkChoice {
  network::ChunkOrder order = network::ChunkOrder::baseline;
  network::ChunkQueue queue = network::ChunkQueue::fifo;
  std::int64_t chunks = 64;
};

// Among all devices of a cluster. Fails for operations other than all_reduce, reduce_scatter and all_gather, and where
// a dimension shares the ports of another one (a tier of switches).
[[nodiscard]] Result<results::CollectiveTable> simulate_chunks(const std::string& data_directory,
                                                               const std::string& cluster, std::int64_t devices,
                                                               const CollectiveRequest& request,
                                                               const ChunkChoice& choice);

}  // namespace orrery::api
