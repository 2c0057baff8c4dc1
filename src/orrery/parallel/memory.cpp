#include "orrery/parallel/memory.hpp"

#include <array>
#include <vector>

namespace orrery::parallel {

namespace {

// Layers whose weights are gathered at once when weights are sharded: the one at work and the one being fetched.
constexpr double kGatheredLayers = 2.0;

Bytes activations_in_flight(const RankClass& rank_class, const PipelineShape& shape, std::int64_t stage,
                            const SliceSizes& sizes) {
  constexpr std::size_t kInline = 64;
  std::array<double, kInline> small{};
  std::vector<double> large;
  std::span<double> weight(small.data(), rank_class.chunks.size());
  if (rank_class.chunks.size() > kInline) {
    large.resize(rank_class.chunks.size());
    weight = large;
  }
  for (std::size_t c = 0; c < rank_class.chunks.size(); ++c) {
    const auto& chunk = rank_class.chunks[c];
    Bytes kept = static_cast<double>(chunk.layers) * sizes.layer_kept;
    if (chunk.has_embedding) { kept += sizes.embedding_kept; }
    weight[c] = kept.value();
  }
  return Bytes(peak_in_flight(shape, stage, weight));
}

// The head's tensors live from its forward to its backward, which follows at once: one micro-batch's worth.
Bytes working_buffers(const RankClass& rank_class, const Plan& plan, const SliceSizes& sizes) {
  Bytes buffers;
  if (plan.recompute != Recompute::none) { buffers += sizes.layer_whole - sizes.layer_kept; }
  if (plan.zero == 3 && plan.dp > 1) { buffers += kGatheredLayers * sizes.layer_parameters * sizes.weight_element; }
  for (const auto& chunk : rank_class.chunks) {
    if (chunk.has_head) { buffers += sizes.head_kept; }
  }
  return buffers;
}

}  // namespace

MemoryNeed stage_memory(const RankClass& rank_class, const PipelineShape& shape, std::int64_t stage, const Plan& plan,
                        const hardware::Stack& stack, const SliceSizes& sizes) {
  const double parameters = rank_class.parameters;
  const auto sharded = [&](int from_stage) { return plan.zero >= from_stage ? static_cast<double>(plan.dp) : 1.0; };
  MemoryNeed need;
  need.weights = parameters * sizes.weight_element / sharded(3);
  need.gradients = parameters * stack.gradient_element / sharded(2);
  need.optimizer = parameters * (stack.master_element + stack.moment_element) / sharded(1);
  need.activations = activations_in_flight(rank_class, shape, stage, sizes);
  need.buffers = working_buffers(rank_class, plan, sizes);
  return need;
}

}  // namespace orrery::parallel
