// The lowered program: what every rank of a job does in one training step, as data.
//
// A program is what a model, a job and a plan mean. `estimate` prices it in closed form; graph generation unrolls it;
// both read nothing else. Ranks that do the same thing share a class; layers that are the same share a block.
//
//   step of a rank = forward and backward segments of its chunks, micro-batch by micro-batch, in pipeline order;
//                    when its own reductions have ended, finish_reduce (gradient synchronisation that is left);
//                    when everybody has got there, finish (gradient norm, optimizer, weights gathered)
//   batch of requests = prefill segment of its chunks, micro-batch by micro-batch; then, for every further token,
//   decode
//                       segments, each growing with the cache (Item::growth)
//   segment        = blocks with repeat counts
//   block          = kernels and collectives in program order, and what the host takes to launch them
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/core/units.hpp"
#include "orrery/hardware/kernel.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/mesh.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/workload/model.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::parallel {

enum class Purpose : std::uint8_t { forward, backward, recompute, optimizer };

// A collective, or, over GroupKind::host, `bytes` between the device and its second memory tier.
struct CollectiveCall {
  Collective collective = Collective::all_reduce;
  GroupKind group = GroupKind::tp;
  Bytes bytes;                   // nccl-tests size: the whole buffer
  workload::Spread spread = {};  // of an all-to-all over ep
};

// One thing a rank does. Kernels run on the compute stream, in order. A collective blocks the compute stream, unless it
// is asynchronous: then it runs on the group's own stream and the item that names it in `waits_for` waits.
struct Item {
  std::string_view name;
  Purpose purpose = Purpose::forward;
  bool is_collective = false;
  hardware::Kernel kernel;      // when not a collective
  workload::Growth growth;      // of the kernel, with every token generated
  CollectiveCall call;          // when a collective
  bool asynchronous = false;    // collectives only
  std::int32_t waits_for = -1;  // index in this block of an asynchronous collective that must have ended
};

struct Block {
  std::string_view name;
  std::vector<Item> items;  // what is still in flight at the block's end is waited for there
  Seconds launch = {};      // of the host, to issue all of it: a block takes no less
};

// A block that several programs may hold at once: a search lowers what a slice of the model computes once, and every
// plan of that slice shares it.
class SharedBlock {
 public:
  SharedBlock(Block block)  // NOLINT(google-explicit-constructor): a block is one that nobody shares yet
      : block_(std::make_shared<const Block>(std::move(block))) {}

  const Block& operator*() const { return *block_; }
  const Block* operator->() const { return block_.get(); }

 private:
  std::shared_ptr<const Block> block_;
};

// `repeat` executions of block `work`, with collectives around them on a stream beside the work (data-parallel ones,
// and transfers to and from the second memory tier; they take turns): `gather` must have ended before an execution
// starts. It is issued when the execution before it in the segment starts, that of the first one when the segment does;
// but gathers of a first_forward whose chunk's forward has none are all issued when the step starts, chunk after chunk.
// `reduce` is issued when an execution ends, and nobody in this segment waits for it.
struct BlockUse {
  std::int32_t work = 0;
  std::int64_t repeat = 1;
  std::int32_t gather = -1;
  std::int32_t reduce = -1;
};

using Segment = std::vector<BlockUse>;

// What a chunk of consecutive layers does.
//
// Under a schedule with weight-gradient tasks (zero_bubble, dualpipe), `backward` makes input gradients, `weight` the
// rest, and `last_backward` is the weight task of the last micro-batch; under the others `weight` is empty and
// `backward` does both.
struct ChunkProgram {
  bool has_embedding = false, has_head = false;
  Segment forward;        // of every micro-batch
  Segment backward;       // of every micro-batch but, where different, the last
  Segment weight;         // of every micro-batch but, where different, the last
  Segment last_backward;  // what completes the last micro-batch's gradients, reducing them when that is overlapped
  Segment first_forward;  // of the first micro-batch: gathers updated weights when that is overlapped; else as forward
  Segment decode;         // inference: one generated token of a micro-batch
  bool waits_for_reduce = false;  // what makes gradients ends only when their reductions have (sharded gradients)
  bool waits_for_store = false;   // forward ends only when what it stores in the second tier has got there
};

// Where a chunk's layers stand in the model, and what it does: an index into Program::chunks.
struct Chunk {
  std::int64_t first_layer = 0, layers = 0;
  std::int32_t program = 0;
};

// Memory of one rank, bytes.
struct MemoryNeed {
  Bytes weights, gradients, optimizer, activations, buffers;
  Bytes kv_cache;   // inference: of the longest sequences
  Bytes tables;     // of all these, embedding tables with their optimizer state and gradients
  Bytes offloaded;  // in the second memory tier; not part of the total
  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + activations + buffers + kv_cache; }
};

// Stages of the same shape.
struct RankClass {
  std::int64_t first_stage = 0;
  std::int64_t stages = 0;
  std::vector<Chunk> chunks;
  Segment finish_reduce;  // gradient synchronisation that was not overlapped
  Segment finish;         // gradient norm, optimizer, weights gathered if not overlapped
  // Weights of one rank before any sharding over replicas, by what they are replicated over.
  double parameters = 0;         // trained, dense
  double expert_parameters = 0;  // trained, of routed experts
  double frozen = 0;             // not trained
  double frozen_expert = 0;
};

struct Program {
  Job job;
  Plan plan;
  Mesh mesh;
  PipelineShape pipeline;
  Bytes transfer_bytes;            // activations of a micro-batch between stages, per rank
  bool gathers_transfers = false;  // those are parts of 1 / tp, which the receiving ranks gather
  std::vector<SharedBlock> blocks;
  std::vector<ChunkProgram> chunks;  // chunks that are alike, of one stage or of several, share one
  std::vector<RankClass> classes;
  std::vector<std::int32_t> class_of_stage;  // [stage]
  std::vector<MemoryNeed> memory;            // [stage]

  [[nodiscard]] const Block& block(std::int32_t index) const { return *blocks[static_cast<std::size_t>(index)]; }
  [[nodiscard]] const ChunkProgram& program_of(const Chunk& chunk) const {
    return chunks[static_cast<std::size_t>(chunk.program)];
  }
  [[nodiscard]] const RankClass& class_of(std::int64_t stage) const {
    return classes[static_cast<std::size_t>(class_of_stage[static_cast<std::size_t>(stage)])];
  }
};

// Layers of each virtual stage, in the order of the model; one per stage and chunk, but under DualPipe, where chunk 1
// of stage i repeats chunk 0 of stage pp - 1 - i, one per stage. As even as possible; what is left over goes to the
// latest virtual stages but the last, so that the first and last, which hold embedding and head, come short first. Plan
// fields may count embedding or head as a layer, or set the first and last stage's share.
[[nodiscard]] std::vector<std::int64_t> layers_per_virtual_stage(const workload::Model& model, const Plan& plan);

// Index into layers_per_virtual_stage.
[[nodiscard]] std::int64_t virtual_stage(const Plan& plan, std::int64_t stage, std::int64_t chunk);

// Chunks that a rank holds: vpp, or 2 under DualPipe.
[[nodiscard]] std::int64_t chunks_of(const Plan& plan);

// Needs is_valid(model, job, plan, cluster.devices).
[[nodiscard]] Program lower(const workload::Model& model, const Job& job, const Plan& plan,
                            const hardware::Cluster& cluster, const hardware::Stack& stack);

}  // namespace orrery::parallel
