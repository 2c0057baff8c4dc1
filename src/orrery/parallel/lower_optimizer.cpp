#include "orrery/parallel/lower_optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "orrery/parallel/blocks.hpp"

namespace orrery::parallel {

namespace {

using hardware::Kernel;
using workload::Matrices;

constexpr double kIterations = 5.0;

// Writes the momentum in the format of the products, reads it for its norm, and reads the result for the update.
constexpr double kPasses = 3.0;

// The products of all iterations of the matrices of one shape, one after another.
class NewtonSchulz {
 public:
  NewtonSchulz(const Matrices& matrices, hardware::Precision precision)
      : small_(std::min(matrices.rows, matrices.columns)),
        large_(std::max(matrices.rows, matrices.columns)),
        times_(kIterations * matrices.count),
        precision_(precision) {}

  [[nodiscard]] Flops flops() const { return gram().flops + square().flops + product().flops; }

  // X X^T, of which X is read once.
  [[nodiscard]] Kernel gram() const { return gemm(small_, large_, area(small_, large_) + area(small_, small_)); }
  // A A, of which A is read once.
  [[nodiscard]] Kernel square() const { return gemm(small_, small_, 2.0 * area(small_, small_)); }
  // B X, added to X.
  [[nodiscard]] Kernel product() const {
    return gemm(large_, small_, area(small_, small_) + 2.0 * area(small_, large_));
  }

 private:
  static double area(std::int64_t rows, std::int64_t columns) {
    return static_cast<double>(rows) * static_cast<double>(columns);
  }

  // [small, k] x [k, n]. `elements` are read or written.
  [[nodiscard]] Kernel gemm(std::int64_t n, std::int64_t k, double elements) const {
    Kernel kernel;
    kernel.kind = hardware::KernelKind::gemm;
    kernel.precision = precision_;
    kernel.m = small_;
    kernel.n = n;
    kernel.k = k;
    kernel.flops = Flops(times_ * 2.0 * area(small_, n) * static_cast<double>(k));
    kernel.bytes = times_ * elements * hardware::element_size(precision_);
    kernel.launches = static_cast<int>(std::ceil(times_));
    return kernel;
  }

  std::int64_t small_, large_;
  double times_;
  hardware::Precision precision_;
};

// The matrices that one rank orthogonalizes: its share, or the largest matrix if that takes longer.
std::vector<Matrices> share_of(std::span<const Orthogonalized> all, const Shards& owners,
                               hardware::Precision precision) {
  std::vector<Matrices> own;
  Matrices largest;
  Flops sum, most;
  for (const auto& [matrices, expert] : all) {
    own.push_back(matrices);
    own.back().count /= expert ? owners.expert : owners.dense;
    sum += NewtonSchulz(own.back(), precision).flops();
    const Matrices one{1.0, matrices.rows, matrices.columns};
    if (const Flops flops = NewtonSchulz(one, precision).flops(); flops > most) {
      most = flops;
      largest = one;
    }
  }
  return sum < most ? std::vector<Matrices>{largest} : own;
}

void append_orthogonalization(Block& block, const LoweringContext& context, std::span<const Orthogonalized> matrices) {
  const Plan& plan = context.plan();
  const auto given = context.job().precision;
  const auto precision = hardware::element_size(given) < Bytes(2.0) ? hardware::Precision::bf16 : given;
  const Bytes element = hardware::element_size(precision);
  const MatrixWeights weights = matrix_weights(matrices);
  if (plan.zero == 3) { append_gather(block, context, weights.dense * element, weights.expert * element); }
  const auto own = share_of(matrices, plan.zero == 3 ? Shards{} : shards_from(plan, 1), precision);
  double elements = 0.0;
  for (const Matrices& shape : own) { elements += shape.elements(); }
  const Bytes momentum = kPasses * elements * element;
  hardware::HeldBytes held;
  held.optimizer = momentum;
  block.items.push_back(stream_item("optimizer.momentum", Purpose::optimizer, momentum, held));
  for (const Matrices& shape : own) {
    const NewtonSchulz work(shape, precision);
    block.items.push_back({"optimizer.gram", Purpose::optimizer, KernelLaunch{work.gram()}});
    block.items.push_back({"optimizer.square", Purpose::optimizer, KernelLaunch{work.square()}});
    block.items.push_back({"optimizer.product", Purpose::optimizer, KernelLaunch{work.product()}});
  }
}

}  // namespace

Block optimizer_block(const LoweringContext& context, double dense, double expert,
                      std::span<const Orthogonalized> matrices) {
  const auto& stack = context.stack;
  const Plan& plan = context.plan();
  const Bytes element = context.weight_element;
  Block block{"optimizer", {}};
  if (plan.updates_on_host()) {
    ORRERY_ASSERT(matrices.empty());
    const HostOptimizer host = host_optimizer(stack, plan, element, dense, expert);
    append_host_update(block, "optimizer.update", host.touched, {host.gradients, host.weights});
    return block;
  }
  const Bytes state = optimizer_state(stack, plan, element, dense, expert, matrix_weights(matrices));
  if (plan.offload.optimizer) { append_transfer(block, "optimizer.stream", state, TierTransfer::both, true); }
  if (!matrices.empty()) { append_orthogonalization(block, context, matrices); }
  const Bytes stored = weight_copies(stack, element, plan).stored;
  const Bytes written = stored > element ? 2.0 * stored : element;
  const Shards owners = shards_from(plan, 1);
  const Bytes weights = owners.part_of(dense * written, expert * written);
  const Bytes gradients = owners.part_of(dense, expert) * stack.gradients.element;
  hardware::HeldBytes held;
  held.weights = weights;
  held.gradients = gradients;
  held.optimizer = 2.0 * state;
  block.items.push_back(stream_item("optimizer.step", Purpose::optimizer, gradients + 2.0 * state + weights, held));
  return block;
}

}  // namespace orrery::parallel
