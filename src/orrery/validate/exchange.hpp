// How tables of DeepEP count the way of tokens to their experts (dispatch) and back (combine).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "orrery/workload/operators.hpp"

namespace orrery::validate {

struct Exchange {
  double element = 2.0;    // bytes of a number on its way
  bool once = false;       // a token goes once to a node, and there once to a rank; else every copy by itself
  bool as_a_rate = false;  // the table has the bytes of `once` per second, and not the time
};

// `dispatch_latency`, `combine_latency`: the low-latency kernels, which send every copy; `dispatch_bottleneck_bw`,
// `combine_bottleneck_bw`: the others. Tokens leave in fp8 with a scale of four bytes to 128 numbers, and come back in
// bf16 (deepseek-ai/DeepEP README.md and docs/legacy.md@dd758caf45, read 2026-11).
[[nodiscard]] std::optional<Exchange> exchange_named(std::string_view metric);

// A token of those tests goes to four nodes at most, as DeepSeek-V3's do.
[[nodiscard]] workload::NodeDispatch once_per_node(double copies, std::int64_t devices, std::int64_t per_node);

// What a rate of such a table counts: a token for every node that it goes to, or every rank where there is one node,
// its own included.
[[nodiscard]] double counted_bytes(const Exchange& exchange, double tokens, double hidden, double copies,
                                   std::int64_t devices, std::int64_t per_node);

}  // namespace orrery::validate
