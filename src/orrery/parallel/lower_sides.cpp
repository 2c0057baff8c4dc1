#include <utility>

#include "orrery/parallel/lower_parts.hpp"

namespace orrery::parallel {

namespace {

void append(Block& block, Collective collective, GroupKind group, Bytes bytes) {
  Item& item = block.items.emplace_back();
  item.name = block.name;
  item.purpose = Purpose::optimizer;
  item.is_collective = true;
  item.call = {collective, group, bytes};
}

}  // namespace

void append_transfer(Block& block, std::string_view name, Bytes bytes, bool asynchronous) {
  append(block, Collective::broadcast, GroupKind::host, bytes);
  block.items.back().name = name;
  block.items.back().asynchronous = asynchronous;
}

// Under hybrid sharding the shards of different copies are summed when each has been reduced within its own.
void append_reduction(Block& block, const LoweringContext& context, double dense, double expert) {
  const Plan& plan = context.plan();
  const Bytes element = context.stack.gradient_reduce_element;
  const Collective collective = plan.zero == 0 ? Collective::all_reduce : Collective::reduce_scatter;
  if (dense > 0 && plan.replicas() > 1) {
    const bool hybrid = plan.zero > 0 && plan.sharded_copies() > 1;
    if (!hybrid || plan.shards() > 1) {
      append(block, collective, hybrid ? GroupKind::shard : GroupKind::dp, dense * element);
    }
    if (hybrid) {
      append(block, Collective::all_reduce, GroupKind::copies, dense / static_cast<double>(plan.shards()) * element);
    }
  }
  if (expert > 0 && plan.expert_replicas() > 1) { append(block, collective, GroupKind::expert_dp, expert * element); }
}

void append_gather(Block& block, const LoweringContext& context, Bytes dense, Bytes expert) {
  const Plan& plan = context.plan();
  if (dense > Bytes(0) && plan.shards() > 1) {
    append(block, Collective::all_gather, plan.sharded_copies() > 1 ? GroupKind::shard : GroupKind::dp, dense);
  }
  if (expert > Bytes(0) && plan.expert_replicas() > 1) {
    append(block, Collective::all_gather, GroupKind::expert_dp, expert);
  }
}

namespace {

// What goes on beside the parts of a model: weights gathered or fetched, gradients reduced, activations stored.
class SideLowering {
 public:
  SideLowering(const LoweringContext& context, const Work& work) : context_(context), work_(work) {}

  void run(std::vector<Part>& parts) const {
    parts = work_.parts;
    for (std::size_t i = 0; i < parts.size(); ++i) { add_side_blocks(parts[i], work_.sizes[i]); }
  }

 private:
  std::int32_t add_unless_empty(Block block) const {
    return block.items.empty() ? -1 : context_.add_block(std::move(block));
  }

  void add_side_blocks(Part& part, const PartSizes& sizes) const {
    const Plan& plan = context_.plan();
    const auto& names = *part.names;
    Block beside{names.gather, {}}, work{names.gather, {}};
    if (plan.offload.weights) { append_transfer(beside, "weights.fetch", resident(sizes)); }
    if (plan.zero == 3) {
      append_gather(plan.dp_overlap ? beside : work, context_, sizes.dense_bytes, sizes.expert_bytes);
    }
    add_backward_gather(part, sizes, beside);
    part.gather = add_unless_empty(std::move(beside));
    part.gather_work = add_unless_empty(std::move(work));
    part.first_gather = part.gather;
    if (part.backward_gather < 0) { part.backward_gather = part.gather; }
    if (context_.job().is_inference()) { return; }
    if ((plan.zero == 1 || plan.zero == 2) && context_.gathers_under_forward()) {
      Block updated{names.gather, {}};
      append_gather(updated, context_, sizes.dense * context_.weight_element, sizes.expert * context_.weight_element);
      part.first_gather = add_unless_empty(std::move(updated));
    }
    Block reduce{names.reduce, {}};
    append_reduction(reduce, context_, sizes.dense, sizes.expert);
    part.reduce = add_unless_empty(std::move(reduce));
  }

  // What backward fetches besides weights: activations that forward has stored in the second tier.
  void add_backward_gather(Part& part, const PartSizes& sizes, const Block& weights) const {
    if (!context_.plan().offload.activations || sizes.turns || sizes.kept == Bytes(0)) { return; }
    Block store{"activations.store", {}};
    append_transfer(store, store.name, sizes.kept);
    part.store = context_.add_block(std::move(store));
    Block both = weights;
    append_transfer(both, "activations.fetch", sizes.kept);
    part.backward_gather = context_.add_block(std::move(both));
  }

  // Bytes of a part's weights that a rank stores.
  [[nodiscard]] Bytes resident(const PartSizes& sizes) const {
    const Plan& plan = context_.plan();
    if (plan.zero < 3) { return sizes.dense_bytes + sizes.expert_bytes; }
    return sizes.dense_bytes / static_cast<double>(plan.shards()) +
           sizes.expert_bytes / static_cast<double>(plan.expert_replicas());
  }

  const LoweringContext& context_;
  const Work& work_;
};

}  // namespace

void add_sides(std::vector<Part>& parts, const LoweringContext& context, const Work& work) {
  SideLowering(context, work).run(parts);
}

}  // namespace orrery::parallel
