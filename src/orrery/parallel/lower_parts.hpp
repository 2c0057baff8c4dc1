// The parts of a model on one rank (embedding, each kind of layer, head, modules for further tokens): their blocks,
// what goes on beside them, and their sizes. Two steps of lowering; see program.hpp for what comes out.
//
// Work, what a part computes and how large it is, depends on the slice of the model that a rank holds and on little
// else, so that many plans share it. What goes on beside it depends on the replicas, on how they share what they hold
// and on the second memory tier.
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
  std::vector<SharedBlock>* blocks;  // where blocks are added
  Bytes weight_element;              // one stored weight that is trained, one activation
  Bytes narrow_element;              // one stored weight of a layer that is not
  Bytes residual;                    // the tensor between two layers, this rank's part of a micro-batch

  [[nodiscard]] const Plan& plan() const { return plan_of_job; }
  [[nodiscard]] const Job& job() const { return job_of_plan; }
  [[nodiscard]] bool splits() const { return splits_backward(plan().schedule); }
  // Weights whose optimizer is sharded are gathered under the next forward; not where transfers to the second tier
  // would take turns with them.
  [[nodiscard]] bool gathers_under_forward() const;
  // Whether the last stage holds a second copy of the token table: of tied embeddings, or for modules that predict
  // further tokens. Under DualPipe it holds the first stage's layers anyway.
  [[nodiscard]] bool copies_table() const;

  std::int32_t add_block(Block block) const;
};

[[nodiscard]] LoweringContext context_of(const workload::Model& model, const hardware::Stack& stack, const Job& job,
                                         const Plan& plan, std::vector<SharedBlock>* blocks);

struct PartNames {
  std::string_view forward, backward, weight, decode, gather, reduce;
};

// Indices of blocks, -1 where there is none.
struct Part {
  const PartNames* names = nullptr;
  std::int32_t forward = -1, backward = -1, decode = -1;
  std::int32_t weight = -1;           // weight gradients, under a schedule that has tasks for them
  std::int32_t gather_work = -1;      // weights gathered before every pass on the compute stream: nothing is overlapped
  std::int32_t gather = -1;           // beside the work: weights for every pass
  std::int32_t first_gather = -1;     // ... for the first forward
  std::int32_t backward_gather = -1;  // ... for every backward, activations included
  std::int32_t store = -1;            // activations on their way to the second tier
  std::int32_t reduce = -1;           // gradients
};

// Layers up to `end` that are of one kind.
struct LayerRun {
  std::int64_t end = 0;
  std::int32_t part = 0;
};

// The parts' work. `blocks` come first in the list of a program's blocks, so that the indices in `parts` hold there.
struct Work {
  std::vector<SharedBlock> blocks;
  std::vector<Part> parts;       // their work alone
  std::vector<PartSizes> sizes;  // [part]
  std::vector<LayerRun> runs;
  std::int32_t embedding = 0, head = 0, further = -1;  // further: a module for one token more
  double table = 0;                                    // weights of the token table that are trained
};

// All that a plan's work depends on, besides model, stack and what every plan of a job shares.
struct WorkKey {
  workload::Slice slice;
  Recompute recompute = Recompute::none;
  TpOverlap tp_overlap = TpOverlap::none;
  bool splits = false;         // weight gradients are tasks of their own
  bool accumulates = false;    // several micro-batches add up their gradients
  bool copies_table = false;   // the last stage holds the token table as well
  std::int64_t sequences = 0;  // of a replica, in inference: they all have a cache

  friend bool operator==(const WorkKey&, const WorkKey&) = default;
};

[[nodiscard]] WorkKey work_key(const workload::Model& model, const Job& job, const Plan& plan);

[[nodiscard]] Work lower_work(const workload::Model& model, const hardware::Stack& stack, const Job& job,
                              const Plan& plan);

// The parts of `work` with what goes on beside them, added to the context's blocks.
void add_sides(std::vector<Part>& parts, const LoweringContext& context, const Work& work);

// Data-parallel collectives of trained weights, dense and of experts, one after the other.
void append_reduction(Block& block, const LoweringContext& context, double dense, double expert);
void append_gather(Block& block, const LoweringContext& context, Bytes dense, Bytes expert);
// Between a device and its second memory tier.
void append_transfer(Block& block, std::string_view name, Bytes bytes, bool asynchronous = false);

}  // namespace orrery::parallel
