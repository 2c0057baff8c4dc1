// How tables of DeepEP count dispatch and combine.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "orrery/workload/operators.hpp"

namespace orrery::validate {

struct ExpertAllToAll {
  double element = 2.0;        // bytes per number
  bool once_per_node = false;  // one copy of a token per node, and there one per rank; else one per expert
  bool as_a_rate = false;      // the table has bytes (of once_per_node) per second instead of a time
};

// `dispatch_latency`, `combine_latency`: low-latency kernels, one copy per expert; `dispatch_bottleneck_bw`,
// `combine_bottleneck_bw`: normal kernels. Dispatch is in fp8 with a scale of four bytes per 128 numbers, combine in
// bf16 (deepseek-ai/DeepEP README.md and docs/legacy.md@dd758caf45, read 2026-11).
[[nodiscard]] std::optional<ExpertAllToAll> all_to_all_named(std::string_view metric);

// In those tests a token is sent to at most four nodes, as in DeepSeek-V3.
[[nodiscard]] workload::NodeDispatch node_dispatch(double copies, std::int64_t devices, std::int64_t per_node);

// The bytes that a rate of such a table counts: one copy of a token for every node that it is sent to, or for every
// rank where there is one node, its own included.
[[nodiscard]] double counted_bytes(const ExpertAllToAll& exchange, double tokens, double hidden, double copies,
                                   std::int64_t devices, std::int64_t per_node);

}  // namespace orrery::validate
