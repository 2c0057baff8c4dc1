// Sizes and bandwidths as NVIDIA's nccl-tests report them, so that tables can be compared.
// Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md (bandwidths), src/all_gather.cu and its neighbours (counts).
#pragma once

#include <cstdint>

#include "orrery/core/collective.hpp"

namespace orrery::network {

// busbw = algbw x factor: the rate of the busiest link of a ring, which is comparable with the link's bandwidth for any
// n. n: members, at least 2.
//   all_reduce 2 (n - 1) / n;  broadcast, reduce, barrier 1;  all others (n - 1) / n
[[nodiscard]] double bus_bandwidth_factor(Collective collective, std::int64_t members);

// Elements in the column `count`: of the whole buffer, or of one member's shard where the buffer is n of them.
[[nodiscard]] std::uint64_t element_count(Collective collective, std::uint64_t size_B, std::int64_t members,
                                          std::uint64_t element_B = 4);

}  // namespace orrery::network
