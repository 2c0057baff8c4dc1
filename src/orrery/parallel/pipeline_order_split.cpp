// The orders of the schedules whose weight gradients are tasks of their own.
#include <algorithm>
#include <array>
#include <cstddef>

#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/pipeline_shape.hpp"

namespace orrery::parallel {
namespace {

using Kind = PipelineTask::Kind;

// Writes tasks of one stage; counts micro-batches, so that a caller only says what comes next. Forwards and backwards
// of a chunk come in the order of their micro-batches, weight tasks in that of the backwards that left them.
class OrderWriter {
 public:
  OrderWriter(std::vector<PipelineTask>& order, std::int32_t first_chunk)
      : order_(order), first_chunk_(first_chunk), oldest_split_(order.size()) {}

  // Phase 0 is the chunk whose number is first_chunk, phase 1 the other.
  void forward(int phase) { order_.push_back({Kind::forward, false, chunk(phase), forwards_[slot(phase)]++, 0}); }
  void backward(int phase, bool splits) {
    order_.push_back({Kind::backward, splits, chunk(phase), backwards_[slot(phase)]++, 0});
  }
  void pair(int forward_phase) {
    const int other = 1 - forward_phase;
    order_.push_back(
        {Kind::pair, false, chunk(forward_phase), forwards_[slot(forward_phase)]++, backwards_[slot(other)]++});
  }
  void weight() {
    while (!order_[oldest_split_].splits) { ++oldest_split_; }
    const PipelineTask& split = order_[oldest_split_++];
    order_.push_back({Kind::weight, false, split.chunk, split.micro_batch, 0});
  }

 private:
  [[nodiscard]] std::int32_t chunk(int phase) const { return phase == 0 ? first_chunk_ : 1 - first_chunk_; }
  static std::size_t slot(int phase) { return static_cast<std::size_t>(phase); }

  std::vector<PipelineTask>& order_;
  std::int32_t first_chunk_;
  std::size_t oldest_split_;  // no backward before this position has a weight task to come
  std::array<std::int64_t, 2> forwards_{};
  std::array<std::int64_t, 2> backwards_{};
};

std::int64_t distance_to_end(const PipelineShape& shape, std::int64_t stage) {
  return std::min(stage, shape.stages - 1 - stage);
}

}  // namespace

void append_zero_bubble_order(const PipelineShape& shape, std::int64_t stage, std::vector<PipelineTask>& order) {
  const std::int64_t all = shape.micro_batches;
  const std::int64_t warm_up = std::min(all, shape.stages - stage - 1);
  OrderWriter write(order, 0);
  for (std::int64_t k = 0; k < warm_up; ++k) { write.forward(0); }
  for (std::int64_t k = 0; k < all; ++k) {
    if (warm_up + k < all) { write.forward(0); }
    write.backward(0, true);
    if (k >= stage) { write.weight(); }
  }
  for (std::int64_t k = std::max<std::int64_t>(0, all - stage); k < all; ++k) { write.weight(); }
}

// Phase 0 is the chunk whose micro-batches enter at the nearer end, phase 1 that of the farther end. The numbers of
// iterations are those of the public implementation (deepseek-ai/DualPipe, dualpipe/dualpipe.py), which the picture in
// the paper (arXiv:2412.19437, figure 5) agrees with.
void append_dualpipe_order(const PipelineShape& shape, std::int64_t stage, std::vector<PipelineTask>& order) {
  const std::int64_t r = distance_to_end(shape, stage);
  const std::int64_t inward = shape.stages / 2 - r - 1;  // stages between this one and the middle
  const bool middle = inward == 0;
  OrderWriter write(order, stage < shape.stages / 2 ? 0 : 1);
  // 1 and 2: fill. The farther end's micro-batches are `inward` stages late.
  for (std::int64_t k = 0; k < 2 * inward; ++k) { write.forward(0); }
  for (std::int64_t k = 0; k <= r; ++k) {
    write.forward(0);
    write.forward(1);
  }
  // 3: the first backwards of phase 1, and a forward of it for each.
  for (std::int64_t k = 0; k < inward; ++k) {
    write.backward(1, true);
    write.weight();
    write.forward(1);
  }
  // 4: forwards of one phase beside backwards of the other.
  for (std::int64_t k = 0; k < shape.micro_batches / 2 - shape.stages + r + 1; ++k) {
    if (middle && k == 0) {  // apart: the forward is the one the backward of the other middle stage waits for
      write.forward(0);
      write.backward(1, false);
    } else {
      write.pair(0);
    }
    write.pair(1);
  }
  // 5: phase 0 has no forwards left.
  for (std::int64_t k = 0; k < inward; ++k) {
    write.backward(1, false);
    write.pair(1);
  }
  // 6: nor has phase 1. The second half of these backwards splits.
  for (std::int64_t k = 0; k <= r; ++k) {
    write.backward(1, 2 * k > r);
    write.backward(0, 2 * k + 1 > r);
  }
  // 7 and 8: the remaining backwards of phase 0, with weight tasks where it waits, and the rest of those.
  for (std::int64_t k = 0; k < inward; ++k) {
    write.weight();
    write.backward(0, true);
  }
  for (std::int64_t k = 0; k <= r; ++k) { write.weight(); }
}

std::int64_t dualpipe_first_round(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t r = distance_to_end(shape, stage);
  const std::int64_t inward = shape.stages / 2 - r - 1;
  const std::int64_t before = 2 * inward + 2 * (r + 1) + 3 * inward;
  return before + (inward == 0 ? 2 : 1);
}

}  // namespace orrery::parallel
