// The parts of a model on one rank (embedding, each kind of layer, head, modules for further tokens): their blocks,
// what goes on beside them, and their sizes. A step of lowering; see program.hpp for what comes out.
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
  Program& program;
  Bytes weight_element;  // one stored weight that is trained, one activation
  Bytes narrow_element;  // one stored weight of a layer that is not
  Bytes residual;        // the tensor between two layers, this rank's part of a micro-batch

  [[nodiscard]] const Plan& plan() const { return program.plan; }
  [[nodiscard]] const Job& job() const { return program.job; }
  [[nodiscard]] bool splits() const { return splits_backward(program.plan.schedule); }
  // Weights whose optimizer is sharded are gathered under the next forward; not where transfers to the second tier
  // would take turns with them.
  [[nodiscard]] bool gathers_under_forward() const;
  // Whether the last stage holds a second copy of the token table: of tied embeddings, or for modules that predict
  // further tokens. Under DualPipe it holds the first stage's layers anyway.
  [[nodiscard]] bool copies_table() const;

  std::int32_t add_block(Block block) const;
};

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

struct Parts {
  std::vector<Part> parts;
  std::vector<PartSizes> sizes;  // [part]
  std::vector<LayerRun> runs;
  std::int32_t embedding = 0, head = 0, further = -1;  // further: a module for one token more
  double table = 0;                                    // weights of the token table that are trained
};

[[nodiscard]] Parts lower_parts(const LoweringContext& context);

// Data-parallel collectives of trained weights, dense and of experts, one after the other.
void append_reduction(Block& block, const LoweringContext& context, double dense, double expert);
void append_gather(Block& block, const LoweringContext& context, Bytes dense, Bytes expert);
// Between a device and its second memory tier.
void append_transfer(Block& block, std::string_view name, Bytes bytes, bool asynchronous = false);

}  // namespace orrery::parallel
