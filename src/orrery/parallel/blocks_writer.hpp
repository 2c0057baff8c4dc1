// Writes the items of a block: kernels, collectives, and products overlapped with the collective next to them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "orrery/parallel/program.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::parallel {

enum class Direction : std::uint8_t { forward, backward };

// The dimension of a kernel's shape that shrinks when the work is cut into pieces.
enum class Cut : std::uint8_t {
  rows,   // m: tokens of a product's output
  depth,  // k: tokens of a weight-gradient product
};

// `count` of `pieces` equal pieces of a kernel, run one after another: FLOPs and bytes are shared out, each piece is as
// efficient as its own shape lets it be, each is launched.
[[nodiscard]] hardware::Kernel pieces_of(const hardware::Kernel& whole, std::int64_t count, std::int64_t pieces,
                                         Cut cut);

// The same of a kernel of ring attention over `pieces` ranks, whose launches count every piece already.
[[nodiscard]] hardware::Kernel rounds_of(const hardware::Kernel& whole, std::int64_t count, std::int64_t pieces);

// The collective of a boundary, in the forward pass or its mirror image in the backward pass; none where the group has
// one member or the tensor is whole already. An exchange goes with its core: see ItemWriter::core.
//
// `enter` needs a whole tensor: with sequence parallelism it is gathered, without it is whole already. `leave` holds
// partial sums: they are added up, and with sequence parallelism scattered. Backward, the gradient at `enter` is a
// partial sum, the one at `leave` is needed whole. Tokens at experts are always scattered.
[[nodiscard]] std::optional<CollectiveCall> crossing(const workload::Operator& op, Direction direction,
                                                     const Plan& plan);

// Position of an operator in its list.
using Operators = std::span<const workload::Operator>;

class ItemWriter {
 public:
  ItemWriter(std::vector<Item>& items, const Plan& plan) : items_(items), plan_(plan) {}

  // Nothing where there is no kernel. `waits_for`: see KernelLaunch.
  void kernel(std::string_view name, const hardware::Kernel& kernel, Purpose purpose, OptionalItemId waits_for = {});
  ItemId collective(std::string_view name, const CollectiveCall& call, Purpose purpose, bool asynchronous = false);
  void wait(std::string_view name, ItemId collective, Purpose purpose);
  void cross(const workload::Operator& op, Direction direction, Purpose purpose);

  // A gather and the product that needs it, a product and the scatter that needs it: one after the other, or in pieces
  // as the plan's tp_overlap says.
  void gather_product(std::string_view gather, const CollectiveCall& call, std::string_view product,
                      const hardware::Kernel& kernel, Cut cut, Purpose purpose);
  void product_scatter(std::string_view product, const hardware::Kernel& kernel, std::string_view scatter,
                       const CollectiveCall& call, Purpose purpose);

  // The forward pass of operators.
  void forward(Operators operators, Purpose purpose);

  // The operators of an attention core, led by its exchange where there is one.
  void core(Operators core, Direction direction, Purpose purpose);

  [[nodiscard]] bool overlaps_products() const { return plan_.tp_overlap != TpOverlap::none && plan_.tp > 1; }

 private:
  std::size_t forward_at(Operators operators, std::size_t i, Purpose purpose);
  void core_kernels(Operators core, Direction direction, Purpose purpose, std::int64_t count, OptionalItemId waits_for);
  [[nodiscard]] std::int64_t pieces() const { return plan_.tp_overlap == TpOverlap::ring ? plan_.tp : kPipePieces; }

  std::vector<Item>& items_;
  const Plan& plan_;
  OptionalItemId under_way_;  // the collective whose other end has yet to come
};

[[nodiscard]] inline bool is_core(const workload::Operator& op) {
  return op.tag == workload::OperatorTag::attention_core;
}

[[nodiscard]] inline bool is_product(const hardware::Kernel& kernel) {
  return kernel.kind == hardware::KernelKind::gemm;
}

}  // namespace orrery::parallel
