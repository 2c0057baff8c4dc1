// The price of a program's pieces: blocks, then segments, then one pipeline step. Each level reads only the one below.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/network/collective.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::estimate {

// Communication of one kind of group.
struct Traffic {
  Seconds busy;     // links at work, hidden or not
  Seconds exposed;  // the compute stream waits
};

// Time that a piece takes on its rank, taken apart: time = compute + recompute + optimizer + exposed of both groups.
struct Cost {
  Seconds time;
  Seconds compute;    // kernels of the forward and backward pass
  Seconds recompute;  // kernels run again, and what is waited for on the way
  Seconds optimizer;
  Traffic tensor_parallel;
  Traffic data_parallel;  // and every group that is not tensor-parallel
  Flops recompute_flops;

  Cost& operator+=(const Cost& other);
  friend Cost operator*(double count, Cost cost);
};

// One block on its rank, by walking its items over the compute stream and the group's stream.
[[nodiscard]] Cost price_block(const parallel::Block& block, const network::Fabric& fabric, const parallel::Mesh& mesh);

// Where the two streams of a rank stand.
struct Streams {
  Seconds compute;        // when the compute stream is free
  Seconds data_parallel;  // when the data-parallel stream is free
};

// Runs a segment's block executions over the two streams, in order, gathers one execution ahead.
[[nodiscard]] Streams run_segment(const parallel::Segment& segment, const std::vector<Cost>& blocks, Streams streams);

// When a segment whose gathers are all issued at once can have ended, if nothing but them holds it up: after each has
// arrived, the executions from there on are still to run. `data_parallel`: when their stream is free, before and after.
[[nodiscard]] Seconds earliest_end(const parallel::Segment& segment, const std::vector<Cost>& blocks,
                                   Seconds& data_parallel);

// Sum of a segment's blocks, without its data-parallel gathers and reductions.
[[nodiscard]] Cost segment_work(const parallel::Segment& segment, const std::vector<Cost>& blocks);

// Data-parallel collectives that a segment issues beside its work.
[[nodiscard]] Seconds segment_data_parallel(const parallel::Segment& segment, const std::vector<Cost>& blocks);

}  // namespace orrery::estimate
