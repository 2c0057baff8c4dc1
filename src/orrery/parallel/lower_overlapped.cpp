#include <utility>

#include "orrery/parallel/lower_parts.hpp"

namespace orrery::parallel {

namespace {

void append(Block& block, Collective collective, GroupKind group, Bytes bytes) {
  block.items.push_back({block.name, Purpose::optimizer, CollectiveLaunch{{collective, group, bytes}}});
}

}  // namespace

void append_transfer(Block& block, std::string_view name, Bytes bytes, TierTransfer transfer, bool asynchronous) {
  const CollectiveCall call{Collective::broadcast, GroupKind::host, bytes, {}, transfer};
  block.items.push_back({name, Purpose::optimizer, CollectiveLaunch{call, asynchronous}});
}

void append_together(Block& block, std::string_view name, Bytes bytes, GroupKind sharers, TierTransfer transfer) {
  if (bytes == Bytes(0)) { return; }
  CollectiveCall call{Collective::broadcast, GroupKind::host, bytes, {}, transfer};
  call.sharers = sharers;
  block.items.push_back({name, Purpose::optimizer, CollectiveLaunch{call}});
}

void append_host_update(Block& block, std::string_view name, Bytes touched, const HostUpdate& update) {
  const CollectiveCall call{Collective::broadcast, GroupKind::host, touched, {}, TierTransfer::update, update};
  block.items.push_back({name, Purpose::optimizer, CollectiveLaunch{call}});
}

namespace {

// All replicas store their gradients in the pool, which sums them on the way, and load what they update: all of it, or
// the shard of which they are owners; under hybrid sharding together with the owners of the same shard.
void append_pool_reduction(Block& block, const LoweringContext& context, double dense, double expert) {
  const Plan& plan = context.plan();
  const Bytes element = context.stack.gradients.reduce_element;
  const bool all = plan.zero == 0;
  if (dense > 0 && plan.replicas() > 1) {
    append_together(block, "gradients.store", dense * element, GroupKind::dp, TierTransfer::store);
    const Bytes own = dense / static_cast<double>(all ? 1 : plan.shards()) * element;
    const bool hybrid = !all && plan.sharded_copies() > 1;
    if (all || hybrid) {
      append_together(block, "gradients.fetch", own, all ? GroupKind::dp : GroupKind::copies, TierTransfer::load);
    } else {
      append_transfer(block, "gradients.fetch", own);
    }
  }
  if (expert > 0 && plan.expert_replicas() > 1) {
    append_together(block, "gradients.store", expert * element, GroupKind::expert_dp, TierTransfer::store);
    if (all) {
      append_together(block, "gradients.fetch", expert * element, GroupKind::expert_dp, TierTransfer::load);
    } else {
      append_transfer(block, "gradients.fetch", expert / static_cast<double>(plan.expert_replicas()) * element);
    }
  }
}

}  // namespace

// Under hybrid sharding gradients are reduced within each sharded copy, then over the copies; for owners of whole
// tensors, which no reduce-scatter divides, over all replicas at once.
void append_reduction(Block& block, const LoweringContext& context, double dense, double expert) {
  const Plan& plan = context.plan();
  if (plan.offload.gradients) { return append_pool_reduction(block, context, dense, expert); }
  const Bytes element = context.stack.gradients.reduce_element;
  const bool all = plan.zero == 0 || context.owns_whole_tensors();
  const Collective collective = all ? Collective::all_reduce : Collective::reduce_scatter;
  if (dense > 0 && plan.replicas() > 1) {
    const bool hybrid = !all && plan.sharded_copies() > 1;
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

// The blocks that overlap with the parts of a model: gathers and fetches of weights, reductions of gradients, stores of
// activations.
class OverlapLowering {
 public:
  OverlapLowering(const LoweringContext& context, const LoweredSlice& slice) : context_(context), slice_(slice) {}

  [[nodiscard]] IdVector<PartId, Part> parts() const {
    IdVector<PartId, Part> parts = slice_.parts;
    auto sizes = slice_.sizes.begin();
    for (Part& part : parts) { add_blocks(part, *sizes++); }
    return parts;
  }

 private:
  [[nodiscard]] OptionalBlockId add_unless_empty(Block block) const {
    if (block.items.empty()) { return {}; }
    return context_.add_block(std::move(block));
  }

  void add_blocks(Part& part, const PartSizes& sizes) const {
    const Plan& plan = context_.plan();
    const auto& names = *part.names;
    Block overlapped{names.gather, {}}, blocking{names.gather, {}};
    const bool together = plan.offload.weights && context_.pool_multicasts;
    if (together) {
      append_loads_of_replicas(overlapped, sizes);
    } else if (plan.offload.weights) {
      append_transfer(overlapped, "weights.fetch", resident(sizes));
    }
    if (plan.zero == 3 && !together) {
      append_gather(plan.overlaps_gathers() ? overlapped : blocking, context_, sizes.dense_bytes, sizes.expert_bytes);
    }
    add_backward_gather(part, sizes, overlapped);
    part.gather = add_unless_empty(std::move(overlapped));
    part.gather_work = add_unless_empty(std::move(blocking));
    part.first_gather = part.gather;
    if (!part.backward_gather) { part.backward_gather = part.gather; }
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

  // Backward also fetches the activations that forward has stored in the second tier.
  void add_backward_gather(Part& part, const PartSizes& sizes, const Block& weights) const {
    if (!context_.plan().offload.activations || sizes.backward_follows || sizes.activations.kept == Bytes(0)) {
      return;
    }
    Block store{"activations.store", {}};
    append_transfer(store, store.name, sizes.activations.kept, TierTransfer::store);
    part.store = context_.add_block(std::move(store));
    Block both = weights;
    append_transfer(both, "activations.fetch", sizes.activations.kept);
    part.backward_gather = context_.add_block(std::move(both));
  }

  // Replicas load the same weights from a pool that multicasts them. With ZeRO 3, whose shards lie in the pool, the
  // loads take the place of the gathers.
  void append_loads_of_replicas(Block& block, const PartSizes& sizes) const {
    const Bytes wider =
        weight_copies(context_.stack, context_.weight_element, context_.plan()).stored - context_.weight_element;
    append_together(block, "weights.fetch", sizes.dense_bytes + sizes.dense * wider, GroupKind::dp, TierTransfer::load);
    append_together(block, "experts.fetch", sizes.expert_bytes + sizes.expert * wider, GroupKind::expert_dp,
                    TierTransfer::load);
  }

  // Bytes of a part's weights that a rank stores.
  [[nodiscard]] Bytes resident(const PartSizes& sizes) const {
    return stored_weights(context_.stack, context_.plan(), context_.weight_element, sizes.dense_bytes,
                          sizes.expert_bytes, sizes.dense, sizes.expert);
  }

  const LoweringContext& context_;
  const LoweredSlice& slice_;
};

}  // namespace

IdVector<PartId, Part> with_overlapped_blocks(const LoweringContext& context, const LoweredSlice& slice) {
  return OverlapLowering(context, slice).parts();
}

}  // namespace orrery::parallel
