#include "orrery/parallel/memory.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace orrery::parallel {

namespace {

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

// The most weights of two parts that follow each other on this rank: the one at work and its neighbour, whose weights
// are being fetched or whose gradients are being reduced. Embedding, layers, head, in that order.
double largest_neighbours(const RankClass& rank_class, const SliceSizes& sizes) {
  double most = 0;
  for (const auto& chunk : rank_class.chunks) {
    const double layer = chunk.layers > 0 ? sizes.layer_parameters : 0.0;
    const double embedding = chunk.has_embedding ? sizes.embedding_parameters : 0.0;
    const double head = chunk.has_head ? sizes.head_parameters : 0.0;
    most = std::max({most, layer + (chunk.layers > 1 ? layer : 0.0), embedding + layer, layer + head});
  }
  return most;
}

// Besides what is kept: the layer being recomputed; whole weights and whole gradients of the parts at work when those
// are sharded; the head's tensors, which live from its forward to its backward right behind it, one micro-batch's
// worth.
Bytes working_buffers(const RankClass& rank_class, const Plan& plan, const SliceSizes& sizes) {
  Bytes buffers;
  if (plan.recompute != Recompute::none) { buffers += sizes.layer_whole - sizes.layer_kept; }
  if (plan.dp > 1) {
    const Bytes parts = largest_neighbours(rank_class, sizes) * sizes.weight_element;
    if (plan.zero >= 2) { buffers += parts; }  // gradients, in the element that backward makes them in
    if (plan.zero == 3) { buffers += parts; }  // weights
  }
  for (const auto& chunk : rank_class.chunks) {
    if (chunk.has_head) { buffers += sizes.head_kept; }
  }
  return buffers;
}

}  // namespace

Bytes master_element(const hardware::Stack& stack, Bytes weight_element) {
  return weight_element < Bytes(4.0) ? stack.master_element : Bytes(0);
}

MemoryNeed stage_memory(const RankClass& rank_class, const PipelineShape& shape, std::int64_t stage, const Plan& plan,
                        const hardware::Stack& stack, const SliceSizes& sizes) {
  const double parameters = rank_class.parameters;
  const auto sharded = [&](int from_stage) { return plan.zero >= from_stage ? static_cast<double>(plan.dp) : 1.0; };
  MemoryNeed need;
  need.weights = parameters * sizes.weight_element / sharded(3);
  need.gradients = parameters * stack.gradient_element / sharded(2);
  need.optimizer = parameters * (master_element(stack, sizes.weight_element) + stack.moment_element) / sharded(1);
  need.activations = activations_in_flight(rank_class, shape, stage, sizes);
  need.buffers = working_buffers(rank_class, plan, sizes);
  return need;
}

}  // namespace orrery::parallel
