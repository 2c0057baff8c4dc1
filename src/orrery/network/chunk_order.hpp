// The order in which the chunks of a collective visit the dimensions of a hierarchical network, and the time that
// follows. Page: docs/models/chunk-order.md.
//
// A chunk of a reduce-scatter visits every dimension once; on one of n members its bytes c shrink to c / n, and the
// device sends c (n - 1) / n. An all-gather is the reverse: c grows to c n, c (n - 1) are sent. An all-reduce is both,
// the all-gather back along the same way. Dimensions work at the same time, each on one chunk after another.
//
// Left out: steps inside a phase as single messages, the time of reductions, other traffic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/core/collective.hpp"

namespace orrery::network {

enum class ChunkOrder : std::uint8_t {
  baseline,  // innermost dimension first (all-gather: last)
  greedy,    // at each step the dimension with the least work in its queue
  themis,    // by the loads of dimensions, balanced chunk by chunk before the start (arXiv:2110.04478)
};

enum class ChunkQueue : std::uint8_t { fifo, smallest_first };

struct ChunkDimension {
  std::int64_t members = 1;
  double bandwidth = 0;  // bytes/s of a device
  double latency = 0;    // seconds of a whole phase, during which the next chunk can already be sent
};

struct ChunkCall {
  Collective collective = Collective::all_reduce;  // or reduce_scatter, all_gather
  double bytes = 0;                                // as nccl-tests: the whole buffer
  std::int64_t chunks = 64;
  ChunkOrder order = ChunkOrder::baseline;
  ChunkQueue queue = ChunkQueue::fifo;
  // themis: the default order stays while the bytes that would close the gap between the most and the least loaded
  // dimension are fewer than those of a chunk / gap_denominator.
  double gap_denominator = 16;
};

// themis: the dimensions of each chunk in the order of its first half. Dimensions with one member are left out.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> themis_orders(const ChunkCall& call,
                                                                    std::span<const ChunkDimension> dimensions);

struct ChunkTimes {
  double finish = 0;
  std::vector<double> sent;  // bytes of a device, by dimension
  std::vector<double> busy;  // seconds, by dimension

  // Bytes sent / bytes that all dimensions could have sent until the end.
  [[nodiscard]] double bandwidth_use(std::span<const ChunkDimension> dimensions) const;
};
[[nodiscard]] ChunkTimes run_chunks(const ChunkCall& call, std::span<const ChunkDimension> dimensions);

}  // namespace orrery::network
