// The lowered program: what every rank of a job does in one training step, as data.
//
// A program is what a model and a plan mean. `estimate` prices it in closed form; graph generation unrolls it; both
// read nothing else. Ranks that do the same thing share a class; layers that are the same share a block.
//
//   step of a rank = forward and backward segments of its chunks, micro-batch by micro-batch, in pipeline order;
//                    when its own reductions have ended, finish_reduce (gradient synchronisation that is left);
//                    when everybody has got there, finish (gradient norm, optimizer, weights gathered)
//   segment        = blocks with repeat counts
//   block          = kernels and collectives in program order
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/hardware/kernel.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/network/collective.hpp"
#include "orrery/parallel/mesh.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::parallel {

enum class Purpose : std::uint8_t { forward, backward, recompute, optimizer };

struct CollectiveCall {
  network::Collective collective = network::Collective::all_reduce;
  GroupKind group = GroupKind::tp;
  Bytes bytes;  // nccl-tests size: the whole buffer
};

// One thing a rank does. Kernels run on the compute stream, in order. A collective blocks the compute stream, unless it
// is asynchronous: then it runs on the group's own stream and the item that names it in `waits_for` waits.
struct Item {
  std::string_view name;
  Purpose purpose = Purpose::forward;
  bool is_collective = false;
  hardware::Kernel kernel;      // when not a collective
  CollectiveCall call;          // when a collective
  bool asynchronous = false;    // collectives only
  std::int32_t waits_for = -1;  // index in this block of an asynchronous collective that must have ended
};

struct Block {
  std::string_view name;
  std::vector<Item> items;  // what is still in flight at the block's end is waited for there
};

// `repeat` executions of block `work`, with data-parallel collectives around them on the data-parallel stream:
// `gather` must have ended before an execution starts. It is issued when the execution before it in the segment starts,
// that of the first one when the segment does; but gathers of a first_forward whose chunk's forward has none are all
// issued when the step starts, chunk after chunk. `reduce` is issued when an execution ends, and nobody in this segment
// waits for it.
struct BlockUse {
  std::int32_t work = 0;
  std::int64_t repeat = 1;
  std::int32_t gather = -1;
  std::int32_t reduce = -1;
};

using Segment = std::vector<BlockUse>;

// A chunk of consecutive layers on one stage.
struct ChunkProgram {
  std::int64_t layers = 0;
  bool has_embedding = false, has_head = false;
  Segment forward;        // of every micro-batch
  Segment backward;       // of every micro-batch but, where different, the last
  Segment last_backward;  // of the last micro-batch: carries the gradient reduction when it is overlapped
  Segment first_forward;  // of the first micro-batch: gathers updated weights when that is overlapped; else as forward
  bool waits_for_reduce = false;  // backward ends only when its reductions have (sharded gradients)
};

// Memory of one rank, bytes.
struct MemoryNeed {
  Bytes weights, gradients, optimizer, activations, buffers;
  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + activations + buffers; }
};

// Stages of the same shape.
struct RankClass {
  std::int64_t first_stage = 0;
  std::int64_t stages = 0;
  std::vector<ChunkProgram> chunks;
  Segment finish_reduce;  // gradient synchronisation that was not overlapped
  Segment finish;         // gradient norm, optimizer, weights gathered if not overlapped
  double parameters = 0;  // weights of one rank before any sharding over dp
};

struct Program {
  Job job;
  Plan plan;
  Mesh mesh;
  PipelineShape pipeline;
  Bytes transfer_bytes;  // activations of a micro-batch between stages, per rank
  std::vector<Block> blocks;
  std::vector<RankClass> classes;
  std::vector<std::int32_t> class_of_stage;  // [stage]
  std::vector<MemoryNeed> memory;            // [stage]
};

// Layers per virtual stage q = chunk * stages + stage. As even as possible; what is left over goes to the latest
// virtual stages but the last, so that the first and last, which hold embedding and head, come short first.
[[nodiscard]] std::vector<std::int64_t> layers_per_virtual_stage(std::int64_t layers, std::int64_t stages,
                                                                 std::int64_t chunks);

// Needs is_valid(model, job, plan, cluster.devices).
[[nodiscard]] Program lower(const workload::Model& model, const Job& job, const Plan& plan,
                            const hardware::Cluster& cluster, const hardware::Stack& stack);

}  // namespace orrery::parallel
