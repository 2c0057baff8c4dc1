// Writes the items of a block: kernels, collectives, and GEMMs overlapped with their collective.
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

// The dimension along which a GEMM is split into chunks.
enum class Cut : std::uint8_t {
  rows,   // m: tokens of the output
  depth,  // k: tokens of a weight-gradient GEMM
};

// `count` of `pieces` equal chunks of a GEMM, run one after another: each has its part of FLOPs and bytes, the
// efficiency of its own shape, and its own launch.
[[nodiscard]] hardware::Kernel gemm_chunks(const hardware::Kernel& whole, std::int64_t count, std::int64_t pieces,
                                           Cut cut);

// The same for a kernel of ring attention over `pieces` ranks, whose launches include all rounds.
[[nodiscard]] hardware::Kernel attention_rounds(const hardware::Kernel& whole, std::int64_t count, std::int64_t pieces);

// The collective of a boundary in the forward pass, or of its gradient in the backward pass; nothing if the group has
// one member or the tensor is whole already. Boundary::exchange is written with its core: see ItemWriter::core.
//
// `enter` needs a whole tensor: with sequence parallelism it is gathered, without it is whole already. `leave` has
// partial sums: they are reduced, and with sequence parallelism scattered. In the backward pass the gradient at `enter`
// is a partial sum, and the gradient at `leave` is needed whole. Tokens at experts are always scattered.
[[nodiscard]] std::optional<CollectiveCall> crossing(const workload::Operator& op, Direction direction,
                                                     const Plan& plan);

using Operators = std::span<const workload::Operator>;

class ItemWriter {
 public:
  ItemWriter(std::vector<Item>& items, const Plan& plan) : items_(items), plan_(plan) {}

  // Does nothing if there is no kernel. `waits_for`: see KernelLaunch.
  void kernel(std::string_view name, const hardware::Kernel& kernel, Purpose purpose, OptionalItemId waits_for = {});
  ItemId collective(std::string_view name, const CollectiveCall& call, Purpose purpose, bool asynchronous = false);
  void wait(std::string_view name, ItemId collective, Purpose purpose);
  void cross(const workload::Operator& op, Direction direction, Purpose purpose);

  // A gather and the GEMM that reads it; a GEMM and the scatter of its result. One after the other, or in chunks that
  // overlap, by the plan's tp_overlap.
  void gather_and_gemm(std::string_view gather, const CollectiveCall& call, std::string_view gemm,
                       const hardware::Kernel& kernel, Cut cut, Purpose purpose);
  void gemm_and_scatter(std::string_view gemm, const hardware::Kernel& kernel, std::string_view scatter,
                        const CollectiveCall& call, Purpose purpose);

  // The forward pass of operators.
  void forward(Operators operators, Purpose purpose);

  // The operators of an attention core; the first may be its all-to-all or ring exchange.
  void core(Operators core, Direction direction, Purpose purpose);

  [[nodiscard]] bool overlaps_gemms() const { return plan_.tp_overlap != TpOverlap::none && plan_.tp > 1; }

 private:
  std::size_t forward_at(Operators operators, std::size_t i, Purpose purpose);
  void core_kernels(Operators core, Direction direction, Purpose purpose, std::int64_t count, OptionalItemId waits_for);
  [[nodiscard]] std::int64_t chunks() const { return plan_.tp_overlap == TpOverlap::ring ? plan_.tp : kPipePieces; }

  std::vector<Item>& items_;
  const Plan& plan_;
  std::vector<ItemId> in_flight_;  // collectives that were started at their first ends, which are nested
};

[[nodiscard]] inline bool is_core(const workload::Operator& op) {
  return op.tag == workload::OperatorTag::attention_core;
}

[[nodiscard]] inline bool is_gemm(const hardware::Kernel& kernel) { return kernel.kind == hardware::KernelKind::gemm; }

}  // namespace orrery::parallel
