// The price of a program's pieces: blocks, then segments, then one pipeline step. Each level reads only the one below.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/price_cache.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::estimate {

// Communication of one kind of group.
struct Traffic {
  Seconds busy;     // links at work, hidden or not
  Seconds exposed;  // the compute stream waits
};

// What groups are reported together.
enum class TrafficKind : std::uint8_t {
  tp,    // slices of layers and of experts
  cp,    // parts of a sequence
  ep,    // dispatch to experts and back
  emb,   // ranks that share out embedding tables, and copies of these
  dp,    // replicas, shards and every other group of ranks
  host,  // second memory tier
};
inline constexpr std::size_t kTrafficKinds = 6;
[[nodiscard]] TrafficKind traffic_kind(parallel::GroupKind group);

// Time that a piece takes on its rank, taken apart: time = compute + recompute + optimizer + exposed of every kind.
struct Cost {
  Seconds time;
  Seconds compute;    // kernels of the forward and backward pass
  Seconds recompute;  // kernels run again, and what is waited for on the way
  Seconds optimizer;
  Seconds launch;                              // waiting for the host to launch what there is to do
  std::array<Traffic, kTrafficKinds> traffic;  // [TrafficKind]
  Flops recompute_flops;

  [[nodiscard]] const Traffic& of(TrafficKind kind) const { return traffic[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] Traffic& of(TrafficKind kind) { return traffic[static_cast<std::size_t>(kind)]; }

  Cost& operator+=(const Cost& other);
  friend Cost operator*(double count, Cost cost);
};

// How a call travels, and so how it is priced.
enum class Way : std::uint8_t {
  collective,  // by the cheapest schedule of its group
  rounds,      // ring attention: n - 1 rounds to the next rank, each as slow as the outermost hop
  per_node,    // tokens to experts, once to every node that has some for them, and on from there
  host,        // to or from the second tier
};
[[nodiscard]] Way way_of(const parallel::CollectiveCall& call, const parallel::Mesh& mesh);

// One call on its group's links, or on the link to the second tier.
[[nodiscard]] Seconds price_call(const parallel::CollectiveCall& call, const network::Fabric& fabric,
                                 const parallel::Mesh& mesh);

// What a stage hands to the next one (or back) over `dimension`, until every rank has it.
[[nodiscard]] Seconds price_hop(const parallel::Program& program, const network::Fabric& fabric, int dimension);

// A kernel after the cache has grown by `grown` tokens since it was lowered.
[[nodiscard]] Seconds price_kernel(const parallel::KernelLaunch& launch, const network::Fabric& fabric,
                                   std::int64_t grown = 0);

// One block on its rank, by walking its items over the compute stream and the group's stream. `cache`: of the fabric.
[[nodiscard]] Cost price_block(const parallel::Block& block, const network::Fabric& fabric, const parallel::Mesh& mesh,
                               network::PriceCache* cache = nullptr);

// Where the two streams of a rank stand.
struct Streams {
  Seconds compute;  // when the compute stream is free
  Seconds side;     // when the stream of gathers and reductions beside it is free
};

// Runs a segment's block executions over the two streams, in order, gathers one execution ahead. `interference`: part
// of its rate that an execution loses beside the next one's gather and the last one's reduction.
[[nodiscard]] Streams run_segment(const parallel::Segment& segment, const std::vector<Cost>& blocks, Streams streams,
                                  double interference = 0.0);

// When a segment whose gathers are all issued at once can have ended, if nothing but them holds it up: after each has
// arrived, the executions from there on are still to run. `side`: when their stream is free, before and after.
[[nodiscard]] Seconds earliest_end(const parallel::Segment& segment, const std::vector<Cost>& blocks, Seconds& side);

// Sum of a segment's blocks, without the gathers and reductions beside them.
[[nodiscard]] Cost segment_work(const parallel::Segment& segment, const std::vector<Cost>& blocks);

// What a segment's gathers and reductions beside its work keep busy.
struct Side {
  Seconds dp, host;

  [[nodiscard]] Seconds total() const { return dp + host; }
  Side& operator+=(const Side& other) {
    dp += other.dp;
    host += other.host;
    return *this;
  }
  friend Side operator*(double count, const Side& side) { return {count * side.dp, count * side.host}; }
};
[[nodiscard]] Side segment_side(const parallel::Segment& segment, const std::vector<Cost>& blocks);

// Of a segment's reductions, what the network takes for them.
[[nodiscard]] Seconds segment_reductions(const parallel::Segment& segment, const std::vector<Cost>& blocks);

}  // namespace orrery::estimate
