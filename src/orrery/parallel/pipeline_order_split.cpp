// The orders of the schedules with separate weight-gradient tasks.
#include <algorithm>
#include <array>
#include <cstddef>

#include "orrery/parallel/pipeline.hpp"
#include "orrery/parallel/pipeline_shape.hpp"

namespace orrery::parallel {
namespace {

using Kind = PipelineTask::Kind;

// Writes the tasks of one stage and counts micro-batches, so that a caller only specifies the kind of the next task.
// Forwards and backwards of a chunk are in the order of micro-batches, weight tasks in the order of their backwards.
class OrderWriter {
 public:
  OrderWriter(std::vector<PipelineTask>& order, std::int32_t first_chunk)
      : order_(order), first_chunk_(first_chunk), oldest_split_(order.size()) {}

  // Phase 0 is the chunk with number first_chunk, phase 1 the other one.
  void forward(int phase) { order_.push_back({Kind::forward, false, chunk(phase), forwards_[slot(phase)]++, 0}); }
  void backward(int phase, bool splits) {
    order_.push_back({Kind::backward, splits, chunk(phase), backwards_[slot(phase)]++, 0});
  }
  void pair(int forward_phase) {
    const int other = 1 - forward_phase;
    const std::int64_t forward = forwards_[slot(forward_phase)]++, backward = backwards_[slot(other)]++;
    order_.push_back({Kind::pair, false, chunk(forward_phase), forward, backward, chunk(other)});
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
  std::size_t oldest_split_;  // backwards before this position have no open weight task
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
// iterations are those of the public implementation (deepseek-ai/DualPipe, dualpipe/dualpipe.py) and agree with figure
// 5 of the paper (arXiv:2412.19437).
void append_dualpipe_order(const PipelineShape& shape, std::int64_t stage, std::vector<PipelineTask>& order) {
  const std::int64_t r = distance_to_end(shape, stage);
  const std::int64_t inward = shape.stages / 2 - r - 1;  // stages between this one and the middle
  const bool middle = inward == 0;
  OrderWriter write(order, stage < shape.stages / 2 ? 0 : 1);
  // 1 and 2: fill. The farther end's micro-batches arrive `inward` stages later.
  for (std::int64_t k = 0; k < 2 * inward; ++k) { write.forward(0); }
  for (std::int64_t k = 0; k <= r; ++k) {
    write.forward(0);
    write.forward(1);
  }
  // 3: the first backwards of phase 1, each with a forward of it.
  for (std::int64_t k = 0; k < inward; ++k) {
    write.backward(1, true);
    write.weight();
    write.forward(1);
  }
  // 4: pairs of forwards of one phase and backwards of the other.
  for (std::int64_t k = 0; k < shape.micro_batches / 2 - shape.stages + r + 1; ++k) {
    if (middle && k == 0) {  // not as a pair: the backward of the other middle stage depends on this forward
      write.forward(0);
      write.backward(1, false);
    } else {
      write.pair(0);
    }
    write.pair(1);
  }
  // 5: no forwards of phase 0 are left.
  for (std::int64_t k = 0; k < inward; ++k) {
    write.backward(1, false);
    write.pair(1);
  }
  // 6: no forwards of phase 1 are left either. The second half of these backwards splits.
  for (std::int64_t k = 0; k <= r; ++k) {
    write.backward(1, 2 * k > r);
    write.backward(0, 2 * k + 1 > r);
  }
  // 7 and 8: the remaining backwards of phase 0, with weight tasks where it waits; then the remaining weight tasks.
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
