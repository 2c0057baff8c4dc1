#include "orrery/parallel/recompute.hpp"

#include "orrery/core/error.hpp"

namespace orrery::parallel {

using workload::OperatorTag;
using workload::TagSet;

namespace {

// Modules of Megatron Core's --recompute-modules (megatron/core/transformer/transformer_config.py) with its names, and
// the activation of every kind of MLP.
TagSet tags_of(const RecomputeModules& modules) {
  using T = OperatorTag;
  TagSet tags;
  const auto add = [&](bool on, std::initializer_list<T> of_module) {
    if (!on) { return; }
    for (const T tag : of_module) { tags.insert(tag); }
  };
  add(modules.core_attention, {T::attention_core});
  add(modules.norms, {T::norm});
  add(modules.mla_up_projection, {T::attention_up_projection});
  add(modules.activations, {T::mlp_activation, T::expert_activation, T::shared_expert_activation});
  add(modules.expert_activations, {T::expert_activation});
  add(modules.mlp, {T::mlp_projection, T::mlp_activation});
  add(modules.experts, {T::router, T::expert_exchange, T::expert_projection, T::expert_activation});
  add(modules.experts || modules.shared_experts, {T::shared_expert_projection, T::shared_expert_activation});
  return tags;
}

}  // namespace

TagSet replayed_tags(Recompute choice, const RecomputeModules& modules) {
  switch (choice) {
    case Recompute::none: return {};
    // Korthikanti et al. (arXiv:2205.05198), section 5: most of the bytes, few of the FLOPs.
    case Recompute::selective: return modules.any() ? tags_of(modules) : TagSet{OperatorTag::attention_core};
    case Recompute::full: return TagSet::all();
  }
  throw_internal_error("known recompute choice", __FILE__, __LINE__);
}

namespace {

constexpr bool is_read(OperatorTag tag) {
  switch (tag) {
    case OperatorTag::attention_core: return false;
    case OperatorTag::embedding:
    case OperatorTag::tables:
    case OperatorTag::interaction:
    case OperatorTag::norm:
    case OperatorTag::attention_projection:
    case OperatorTag::attention_up_projection:
    case OperatorTag::mixer_core:
    case OperatorTag::mlp_projection:
    case OperatorTag::mlp_activation:
    case OperatorTag::router:
    case OperatorTag::expert_exchange:
    case OperatorTag::expert_projection:
    case OperatorTag::expert_activation:
    case OperatorTag::shared_expert_projection:
    case OperatorTag::shared_expert_activation:
    case OperatorTag::residual:
    case OperatorTag::head: return true;
  }
  return true;
}

constexpr TagSet all_read() {
  TagSet read;
  for (std::size_t i = 0; i < workload::kOperatorTags; ++i) {
    if (is_read(static_cast<OperatorTag>(i))) { read.insert(static_cast<OperatorTag>(i)); }
  }
  return read;
}
constexpr TagSet kRead = all_read();

}  // namespace

bool weight_gradients_read(OperatorTag tag) { return kRead.contains(tag); }

bool weight_gradients_read(TagSet tags) { return kRead.intersects(tags); }

Activations activations(std::span<const workload::Operator> operators, TagSet replayed, Bytes input) {
  Activations sizes;
  Bytes dropped;
  for (const auto& op : operators) {
    const Bytes bytes = dropped_activations(op, replayed);
    sizes.whole += op.saved;
    dropped += bytes;
    // Of an up-projection whose latents are kept, only queries, keys and values are dropped, which the core alone
    // reads.
    const bool for_core =
        op.tag == OperatorTag::attention_up_projection && !replayed.contains(OperatorTag::attention_projection);
    if (for_core || !weight_gradients_read(op.tag)) { sizes.transient += bytes; }
  }
  sizes.kept = sizes.whole - dropped;
  const bool replays_first = !operators.empty() && replayed.contains(operators.front().tag);
  if (replays_first && replayed.contains(operators.front().input_from)) { sizes.kept += input; }
  return sizes;
}

}  // namespace orrery::parallel
