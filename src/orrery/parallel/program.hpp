// The lowered program: everything that the ranks of a job do in one training step, as data.
//
// A model, a job and a plan are lowered to a program. `estimate` prices it in closed form; graph generation unrolls it;
// both read nothing else. Identical ranks share a class; identical layers share a block.
//
//   step of a rank    = forward and backward segments of its chunks, micro-batch by micro-batch, in pipeline order;
//                       when its own reductions have ended, finish_reduce (the rest of gradient synchronisation);
//                       when all ranks have done so, finish (gradient norm, optimizer, gather of weights)
//   batch of requests = prefill segment of its chunks, micro-batch by micro-batch; then decode segments for every
//                       additional token, each growing with the KV cache (KernelLaunch::growth)
//   segment           = blocks with repeat counts
//   block             = kernels and collectives in program order, and the host time to launch them
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/core/ids.hpp"
#include "orrery/core/units.hpp"
#include "orrery/hardware/kernel.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/mesh.hpp"
#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/workload/model.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::parallel {

// backward: input gradients, and everything of the backward pass but kernels and gathers of weight gradients.
enum class Purpose : std::uint8_t { forward, backward, weight_gradient, recompute, optimizer };

// What happens between a device and its second memory tier.
enum class TierTransfer : std::uint8_t {
  load,
  store,
  both,    // `bytes` in each direction, at the same time
  update,  // an optimizer update by the host, of which `bytes` are read and written in the host's own memory
};

// Of a TierTransfer::update: gradients go to the host, and new weights come back, chunk by chunk while it updates.
struct HostUpdate {
  Bytes gradients, weights;
};

// A collective, or, over GroupKind::host, a transfer of `bytes`.
struct CollectiveCall {
  Collective collective = Collective::all_reduce;
  GroupKind group = GroupKind::tp;
  Bytes bytes;                                 // nccl-tests size: the whole buffer
  workload::NodeDispatch node_dispatch = {};   // of an all-to-all over ep
  TierTransfer transfer = TierTransfer::load;  // over GroupKind::host
  HostUpdate update = {};
  // The members of the group load, or store, the same bytes of a pool together: its switches multicast them, or reduce
  // them on the way. host: the rank has bytes of its own.
  GroupKind sharers = GroupKind::host;
};

struct Item;
struct Block;
struct ChunkProgram;
struct RankClass;

// Positions: of an item in its block; of the others in the lists of a Program.
using ItemId = Id<Item>;
using BlockId = Id<Block>;
using ChunkProgramId = Id<ChunkProgram>;
using RankClassId = Id<RankClass>;
using OptionalItemId = OptionalId<Item>;
using OptionalBlockId = OptionalId<Block>;

// A kernel on the compute stream, which runs its kernels in order.
struct KernelLaunch {
  hardware::Kernel kernel;
  workload::Growth growth = {};   // decode: of the kernel, with each generated token
  OptionalItemId waits_for = {};  // an asynchronous collective before it in the block
};

// A collective. It blocks the compute stream, unless it is asynchronous: then it runs on its group's own stream until
// the item that waits for it, or the end of the block.
struct CollectiveLaunch {
  CollectiveCall call;
  bool asynchronous = false;
};

// The compute stream waits for an asynchronous collective before it in the block.
struct CollectiveWait {
  ItemId collective;
};

// One action of a rank.
struct Item {
  std::string_view name;
  Purpose purpose = Purpose::forward;
  std::variant<KernelLaunch, CollectiveLaunch, CollectiveWait> action;

  [[nodiscard]] const KernelLaunch* kernel() const { return std::get_if<KernelLaunch>(&action); }
  [[nodiscard]] const CollectiveLaunch* collective() const { return std::get_if<CollectiveLaunch>(&action); }
  // The asynchronous collective that must have ended first.
  [[nodiscard]] OptionalItemId waits_for() const {
    if (const auto* wait = std::get_if<CollectiveWait>(&action)) { return wait->collective; }
    return kernel() != nullptr ? kernel()->waits_for : OptionalItemId();
  }
};

struct Block {
  std::string_view name;
  std::vector<Item> items;  // collectives still in flight after the last item are waited for at the end of the block
  Seconds launch = {};      // host time to launch all items: the block takes at least this long

  [[nodiscard]] const Item& item(ItemId id) const { return items[id.index()]; }
};

// A block that several programs share: a search lowers what a slice of the model computes once for all plans with that
// slice.
class SharedBlock {
 public:
  SharedBlock(Block block)  // NOLINT(google-explicit-constructor): a block that is not shared yet
      : block_(std::make_shared<const Block>(std::move(block))) {}

  const Block& operator*() const { return *block_; }
  const Block* operator->() const { return block_.get(); }

 private:
  std::shared_ptr<const Block> block_;
};

// `repeat` executions of block `work`, overlapped with data-parallel collectives and transfers to and from the second
// memory tier. Those share one communication stream, in order of issue.
//
// An execution starts when its `gather` has ended. A gather is issued when the execution before it in the segment
// starts; the first one when the segment starts. Exception: the gathers of a first_forward whose chunk has no gathers
// in `forward` are all issued when the step starts, chunk by chunk. `reduce` is issued when an execution ends; nothing
// in the segment waits for it.
struct BlockUse {
  BlockId work;
  std::int64_t repeat = 1;
  OptionalBlockId gather = {};
  OptionalBlockId reduce = {};
  bool is_blocking_gather = false;  // `work` is a collective of replicas: it waits for the stream of gathers and
                                    // reductions, as these do for each other, and nothing runs until it has ended
};

using Segment = std::vector<BlockUse>;

// The work of a chunk of consecutive layers.
//
// Under a schedule with weight-gradient tasks (zero_bubble, dualpipe), `backward` makes input gradients, `weight` the
// rest, and `last_backward` is the weight task of the last micro-batch; under the others `weight` is empty and
// `backward` does both.
struct ChunkProgram {
  bool has_embedding = false, has_head = false;
  Segment forward;   // of every micro-batch
  Segment backward;  // of every micro-batch; the last one has last_backward instead where weight is empty
  Segment weight;    // of every micro-batch but the last
  // Completes the gradients of the last micro-batch; with their reductions when overlapped. Aligned reductions slow all
  // stages at once. With one chunk, only stage 0 issues them during its last backward; the others, whose last backwards
  // have ended by then, when theirs have. With several, stage i issues all of a chunk when it has run i more backwards
  // after this one, or its last one: stage 0 has then run its last backward of the chunk.
  Segment last_backward;
  Segment first_forward;  // of the first micro-batch: with gathers of updated weights when overlapped; else as forward
  Segment decode;         // inference: one generated token of a micro-batch
  bool waits_for_reduce = false;  // segments that make gradients end when their reductions have (sharded gradients)
  bool waits_for_store = false;   // forward ends when the activations that it offloads are stored
};

// The layers of a chunk, and what it does.
struct Chunk {
  std::int64_t first_layer = 0, layers = 0;
  ChunkProgramId program;
};

// Memory of one rank, bytes.
struct MemoryNeed {
  Bytes weights, gradients, optimizer, activations, buffers;
  Bytes kv_cache;                         // inference: of the longest sequences
  Bytes tables;                           // of all these, embedding tables with their optimizer state and gradients
  Bytes table_weights, table_state;       // of `tables`; the rest are gradients
  Bytes offloaded;                        // in the second memory tier; not part of the total
  hardware::ByClass<Bytes> offloaded_by;  // the same by class
  void add_offloaded(hardware::TensorClass tensors, Bytes bytes) {
    offloaded += bytes;
    offloaded_by[tensors] += bytes;
  }
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
  Bytes transfer_bytes;             // activations of a micro-batch between stages, per rank
  bool aligned_reductions = false;  // see ChunkProgram::last_backward
  // Each rank sends 1 / tp of the tensor. The receiving ranks gather it when the task before has ended: the gather is
  // the beginning of the task that needs it.
  bool gathers_transfers = false;
  bool reduces_under_backward = false;  // gradient reductions overlap with backward
  IdVector<BlockId, SharedBlock> blocks;
  IdVector<ChunkProgramId, ChunkProgram> chunks;  // identical chunks, of one stage or of several, share one
  IdVector<RankClassId, RankClass> classes;
  std::vector<RankClassId> class_of_stage;  // [stage]
  std::vector<MemoryNeed> memory;           // [stage]

  [[nodiscard]] const Block& block(BlockId id) const { return *blocks[id]; }
  [[nodiscard]] const ChunkProgram& program_of(const Chunk& chunk) const { return chunks[chunk.program]; }
  [[nodiscard]] const RankClass& class_of(std::int64_t stage) const {
    return classes[class_of_stage[static_cast<std::size_t>(stage)]];
  }
};

// Layers of each virtual stage, in the order of the model: one entry per stage and chunk; under DualPipe, where chunk 1
// of stage i repeats chunk 0 of stage pp - 1 - i, one per stage. As even as possible; the remainder goes to the latest
// virtual stages except the last, so that the first and the last, which hold embedding and head, have fewer. Plan
// fields may count embedding or head as a layer, or set the number of the first and last stage.
[[nodiscard]] std::vector<std::int64_t> layers_per_virtual_stage(const workload::Model& model, const Plan& plan);

// Index into layers_per_virtual_stage.
[[nodiscard]] std::int64_t virtual_stage(const Plan& plan, std::int64_t stage, std::int64_t chunk);

// Chunks that a rank holds: vpp, or 2 under DualPipe.
[[nodiscard]] std::int64_t chunks_of(const Plan& plan);

// Whether dispatch and combine overlap with another micro-batch in pairs (PipelineShape::pairs): stacks with
// overlap_dispatch, without pipeline or with several chunks, where not all is recomputed. Megatron-Core has the same
// conditions (overlap_moe_expert_parallel_comm; megatron/core/transformer/transformer_config.py, read 2026-11).
[[nodiscard]] bool overlaps_dispatch(const workload::Model& model, const Plan& plan, const hardware::Stack& stack);

// Whether the input of a chunk's forward, or backward, pass comes from another chunk.
[[nodiscard]] bool receives_activations(const Plan& plan, std::int64_t stage, std::int64_t chunk);
[[nodiscard]] bool receives_gradients(const Plan& plan, std::int64_t stage, std::int64_t chunk);

// Needs is_valid(model, job, plan, cluster.devices).
[[nodiscard]] Program lower(const workload::Model& model, const Job& job, const Plan& plan,
                            const hardware::Cluster& cluster, const hardware::Stack& stack);

}  // namespace orrery::parallel
