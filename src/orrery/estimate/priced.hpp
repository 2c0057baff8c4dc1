// Prices of a program: blocks, segments, and the stages' streams. Each level uses only the level below.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/estimate/port_sharing.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/price_cache.hpp"
#include "orrery/parallel/calls.hpp"
#include "orrery/parallel/item_times.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::estimate {

// Time of the communication of one kind of group.
struct CommunicationTime {
  Seconds busy;     // time of the collectives, overlapped or exposed
  Seconds exposed;  // time for which the compute stream waits
};

// How reports combine process groups.
enum class TrafficKind : std::uint8_t {
  tp,    // tensor parallelism, of layers and of experts
  cp,    // context parallelism
  ep,    // expert dispatch and combine
  emb,   // embedding shards and their replicas
  dp,    // gradient reduction, weight gathers and all other groups
  host,  // second memory tier
};
inline constexpr std::size_t kTrafficKinds = 6;
[[nodiscard]] TrafficKind traffic_kind(parallel::GroupKind group);

// Time of a block or segment on its rank: time = compute + recompute + optimizer + launch + exposed communication of
// every kind.
struct Cost {
  Seconds time;
  Seconds compute;          // kernels of the forward and backward pass
  Seconds recompute;        // kernels of recomputation, and exposed communication among them
  Seconds recompute_waits;  // the exposed communication in it
  Seconds optimizer;
  Seconds launch;                                        // waiting for the host to launch kernels
  std::array<CommunicationTime, kTrafficKinds> traffic;  // [TrafficKind]
  Flops recompute_flops;

  [[nodiscard]] const CommunicationTime& of(TrafficKind kind) const { return traffic[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] CommunicationTime& of(TrafficKind kind) { return traffic[static_cast<std::size_t>(kind)]; }

  Cost& operator+=(const Cost& other) { return add(1.0, other); }
  Cost& add(double count, const Cost& other);
  friend Cost operator*(double count, Cost cost);
};

using parallel::Route;
using parallel::route_of;

using parallel::price_call;
using parallel::price_kernel;

// Time to send a micro-batch's activations (or gradients) to a neighbouring stage over `dimension`.
[[nodiscard]] Seconds price_hop(const parallel::Program& program, const network::Fabric& fabric, int dimension);

// Time of parallel::input_gather(); 0 if inputs arrive whole.
[[nodiscard]] Seconds price_input_gather(const parallel::Program& program, const network::Fabric& fabric);

// Runs a block's items on the compute stream and the collectives' stream of a rank. `cache` belongs to `fabric`.
[[nodiscard]] Cost price_block(const parallel::Block& block, const network::Fabric& fabric, const parallel::Mesh& mesh,
                               network::PriceCache* cache = nullptr);

// The passes to which the work of a step belongs.
enum class Pass : std::uint8_t { forward, input_gradient, weight_gradient };
inline constexpr std::size_t kPasses = 3;

// Kernels and exposed communication of a block, by pass; the sums are Cost::compute and Cost::traffic.
struct BlockPasses {
  struct Part {
    Seconds compute;
    std::array<Seconds, kTrafficKinds> exposed;  // [TrafficKind]
  };
  std::array<Part, kPasses> passes;  // [Pass]
};

// `cost`: of the block. `own`: the pass of its segment, to which work belongs that is neither forward nor a gradient,
// as collectives of replicas; input_gradient is a backward pass whose blocks may make weight gradients, too.
[[nodiscard]] BlockPasses block_passes(const parallel::Block& block, const Cost& cost, Pass own,
                                       const network::Fabric& fabric, const parallel::Mesh& mesh);

// What a block needs of ports, without PortUse::contended. `time`: of the block.
[[nodiscard]] PortUses port_uses(const parallel::Block& block, Seconds time, const parallel::Mesh& mesh,
                                 network::PriceCache& cache);

// Sets PortUse::contended, of the same block.
void find_contended_times(PortUses& uses, unsigned dimensions, const parallel::Block& block, const parallel::Mesh& mesh,
                          network::PriceCache& cache);

// When each stream of a rank is free.
struct Streams {
  Seconds compute;  // when the compute stream is free
  Seconds side;     // side stream: gathers and reductions of data-parallel groups and transfers of the second tier
  Seconds slowed;   // sum of the time that interference has added to compute
};

// What gathers and reductions do to concurrent blocks. None: both run as if alone.
struct Concurrency {
  double interference = 0.0;  // the fraction of its speed that an execution loses while they run
  const std::vector<const PortUses*>* ports = nullptr;  // [block]; null: shares no port with others
};

// Runs a segment on both streams. The gather of the next execution is issued when an execution starts.
[[nodiscard]] Streams run_segment(const parallel::Segment& segment, const std::vector<Cost>& blocks, Streams streams,
                                  Concurrency concurrency = {});

// Lower bound of a segment's end when all its gathers are issued at once: after each gather, the executions that use it
// and later ones still have to run. `side`: when the side stream is free; updated.
[[nodiscard]] Seconds earliest_end(const parallel::Segment& segment, const std::vector<Cost>& blocks, Seconds& side);

// Sum of the times of a segment's blocks, without its gathers and reductions on the side stream.
[[nodiscard]] Seconds segment_time(const parallel::Segment& segment, const std::vector<Cost>& blocks);

// Sum of a segment's blocks, without its gathers and reductions on the side stream.
[[nodiscard]] Cost segment_work(const parallel::Segment& segment, const std::vector<Cost>& blocks);

// Time of a segment's gathers and reductions on the side stream, by destination.
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

// Network time of a segment's reductions.
[[nodiscard]] Seconds segment_reductions(const parallel::Segment& segment, const std::vector<Cost>& blocks);

}  // namespace orrery::estimate
