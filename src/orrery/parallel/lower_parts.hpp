// The parts of a model on one rank (embedding, each kind of layer, head, MTP module): their blocks and their sizes, in
// two steps of lowering. program.hpp describes the result.
//
// Step 1, lower_slice: what a part computes and how much memory it takes. This depends on the slice of the model that a
// rank holds and on little else, so many plans share it. Step 2, add_overlapped_blocks: gathers of weights, reductions
// of gradients and transfers to the second memory tier. These depend on data parallelism, ZeRO and offload.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/memory.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/workload/model.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::parallel {

// What all steps of lowering need, and where they write.
struct LoweringContext {
  const workload::Model& model;
  const hardware::Stack& stack;
  const Job& job_of_plan;
  const Plan& plan_of_job;
  IdVector<BlockId, SharedBlock>* blocks;  // where blocks are added
  Bytes weight_element;                    // one stored weight that is trained, one activation
  Bytes layer_element;                     // one stored weight of a layer that is not
  Bytes end_element;                       // one stored weight of embedding or head that is not
  Bytes residual;                          // the tensor between two layers, this rank's part of a micro-batch
  bool pool_multicasts = false;            // replicas load offloaded weights together (SecondTier::multicasts)

  [[nodiscard]] const Plan& plan() const { return plan_of_job; }
  [[nodiscard]] const Job& job() const { return job_of_plan; }
  [[nodiscard]] bool splits() const { return splits_backward(plan().schedule); }
  // Whether updated weights of a sharded optimizer are gathered under the next forward pass. They are not where
  // transfers to the second tier would be serialized with them.
  [[nodiscard]] bool gathers_under_forward() const;
  [[nodiscard]] bool owns_whole_tensors() const { return parallel::owns_whole_tensors(stack, plan()); }
  // Whether the last stage holds a second copy of the token table, for tied embeddings or for MTP modules. Under
  // DualPipe it holds the first stage's layers anyway.
  [[nodiscard]] bool copies_table() const;

  BlockId add_block(Block block) const;
};

[[nodiscard]] LoweringContext context_of(const workload::Model& model, const hardware::Stack& stack, const Job& job,
                                         const Plan& plan, IdVector<BlockId, SharedBlock>* blocks);

struct PartNames {
  std::string_view forward, backward, weight, decode, gather, reduce;
};

// The blocks of a part. Gathers, reductions and `store` run on the communication stream, overlapped with the part.
struct Part {
  const PartNames* names = nullptr;
  OptionalBlockId forward, backward, decode;
  OptionalBlockId weight;           // weight gradients, under a schedule that has tasks for them
  OptionalBlockId gather_work;      // weights gathered before every pass on the compute stream: nothing is overlapped
  OptionalBlockId gather;           // weights for every pass
  OptionalBlockId first_gather;     // weights for the first forward pass
  OptionalBlockId backward_gather;  // weights for every backward pass, and offloaded activations
  OptionalBlockId store;            // activations to the second tier
  OptionalBlockId reduce;           // gradients
};

// Layers up to `end` that are of one kind.
struct LayerRun {
  std::int64_t end = 0;
  PartId part;                       // with the plan's recompute choice
  OptionalPartId without_recompute;  // where the plan recomputes some layers of a chunk and not others
};

// What the ranks of one slice of the model compute. `blocks` are the first blocks of every program that uses the slice,
// so that the ids in `parts` are valid there. Of the parts only blocks that compute are set.
struct LoweredSlice {
  IdVector<BlockId, SharedBlock> blocks;
  IdVector<PartId, Part> parts;
  IdVector<PartId, PartSizes> sizes;
  std::vector<LayerRun> runs;
  OptionalPartId embedding, head;
  OptionalPartId mtp;          // an MTP module
  std::vector<PartUse> tower;  // parts of a vision tower, before the embedding
  double token_table = 0;      // trained weights of the token table
};

// Parts in order, and the sizes of a stage that has them.
struct StageShape {
  std::vector<PartUse> shape;
  StageSizes sizes = {};
};

// The parts of every stage. Plans that differ in other choices share it: most of those that a search lowers in a row.
struct StagePartition {
  // All that it depends on, besides the model.
  struct Key {
    const LoweredSlice* slice = nullptr;
    ScheduleKind schedule = ScheduleKind::one_f_one_b;
    std::int64_t pp = 0, vpp = 0, first_stage_layers = 0, last_stage_layers = 0, recompute_layers = 0;
    bool embedding_as_layer = false, head_as_layer = false;

    friend bool operator==(const Key&, const Key&) = default;
  };
  // Stages of the same shape.
  struct Class {
    StageShape known;
    std::int64_t first_stage = 0, stages = 0;
  };

  Key key;
  std::vector<std::int64_t> starts;         // [virtual stage]: its first layer; and the number of layers
  std::vector<Class> classes;               // [class]
  std::vector<RankClassId> class_of_stage;  // [stage]
};

// All that a lowered slice depends on, besides model, stack and what every plan of a job shares.
struct SliceKey {
  workload::Slice slice;
  workload::TagSet replayed = {};  // recompute
  bool some_layers = false;        // recompute applies to some layers of a chunk and not to others
  TpOverlap tp_overlap = TpOverlap::none;
  bool splits = false;                // weight gradients are tasks of their own
  bool accumulates = false;           // gradients of several micro-batches are accumulated
  bool copies_table = false;          // the last stage holds the token table as well
  std::int64_t sequences = 0;         // inference: sequences of a replica, each of which has a KV cache
  std::int64_t decoded_together = 0;  // inference: sequences_decoded_together()

  friend bool operator==(const SliceKey&, const SliceKey&) = default;
};

[[nodiscard]] SliceKey slice_key(const workload::Model& model, const Job& job, const Plan& plan);

[[nodiscard]] LoweredSlice lower_slice(const workload::Model& model, const hardware::Stack& stack, const Job& job,
                                       const Plan& plan);

// The parts of `slice` with the blocks that are overlapped with them, which are added to the context's blocks.
[[nodiscard]] IdVector<PartId, Part> with_overlapped_blocks(const LoweringContext& context, const LoweredSlice& slice);

// Data-parallel collectives of trained weights: of dense weights, then of experts.
void append_reduction(Block& block, const LoweringContext& context, double dense, double expert);
void append_gather(Block& block, const LoweringContext& context, Bytes dense, Bytes expert);
// Between a device and its second memory tier.
void append_transfer(Block& block, std::string_view name, Bytes bytes, TierTransfer transfer = TierTransfer::load,
                     bool asynchronous = false);
// A load of the same bytes of a pool by all members of a group, or a store of bytes that the pool sums.
void append_together(Block& block, std::string_view name, Bytes bytes, GroupKind sharers, TierTransfer transfer);
void append_host_update(Block& block, std::string_view name, Bytes touched, const HostUpdate& update);

}  // namespace orrery::parallel
