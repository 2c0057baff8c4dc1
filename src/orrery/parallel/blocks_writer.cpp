#include "orrery/parallel/blocks_writer.hpp"

#include <algorithm>

namespace orrery::parallel {

using hardware::Kernel;
using hardware::KernelKind;
using workload::Boundary;
using workload::Operator;

namespace {

Kernel share_of(const Kernel& whole, std::int64_t count, std::int64_t pieces) {
  const double share = static_cast<double>(count) / static_cast<double>(pieces);
  Kernel part = whole;
  part.flops *= share;
  part.bytes *= share;
  part.casts *= share;
  return part;
}

}  // namespace

Kernel pieces_of(const Kernel& whole, std::int64_t count, std::int64_t pieces, Cut cut) {
  Kernel part = share_of(whole, count, pieces);
  std::int64_t& size = cut == Cut::rows ? part.m : part.k;
  size = (size + pieces - 1) / pieces;
  part.launches = whole.launches * static_cast<int>(count);
  return part;
}

// Fused attention takes a piece of the keys in a round. Of a plain core the shape is left alone, and its time shared
// out.
Kernel rounds_of(const Kernel& whole, std::int64_t count, std::int64_t pieces) {
  Kernel part = share_of(whole, count, pieces);
  if (whole.kind == KernelKind::attention) { part.n = (whole.n + pieces - 1) / pieces; }
  part.launches = std::max(1, whole.launches * static_cast<int>(count) / static_cast<int>(pieces));
  return part;
}

namespace {

std::optional<CollectiveCall> call(bool has_members, Collective collective, GroupKind group, Bytes bytes) {
  if (!has_members) { return std::nullopt; }
  return CollectiveCall{collective, group, bytes, {}};
}

// Vectors that were looked up, and what comes with sharing tables out.
std::optional<CollectiveCall> table_crossing(const Operator& op, bool forward, const Plan& plan) {
  const bool several = plan.table_ranks() > 1;
  const auto sharing = [&](Collective collective) {
    const std::int64_t holders = op.everywhere ? plan.stage_ranks() : plan.stage_ranks() / plan.table_ranks();
    const GroupKind group = op.everywhere ? GroupKind::dp : GroupKind::table_copies;
    return call(!forward && holders > 1, collective, group, op.boundary_bytes);
  };
  if (op.boundary == Boundary::share_sum) { return sharing(Collective::all_reduce); }
  if (op.boundary == Boundary::share_rows) { return sharing(Collective::all_gather); }
  if (op.boundary == Boundary::pool_sum) {
    return call(several, forward ? Collective::reduce_scatter : Collective::all_gather, GroupKind::tables,
                op.boundary_bytes);
  }
  const bool goes = op.boundary == Boundary::pool || forward;
  return call(several && goes, Collective::all_to_all, GroupKind::tables, op.boundary_bytes);
}

}  // namespace

std::optional<CollectiveCall> crossing(const Operator& op, Direction direction, const Plan& plan) {
  const bool forward = direction == Direction::forward;
  switch (op.boundary) {
    case Boundary::none:
    case Boundary::exchange: return std::nullopt;
    case Boundary::enter:
    case Boundary::leave: {
      const bool sums = (op.boundary == Boundary::leave) == forward;
      if (!sums && !plan.sequence_parallel) { return std::nullopt; }
      const Collective summing = plan.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce;
      return call(plan.tp > 1, sums ? summing : Collective::all_gather, GroupKind::tp, op.boundary_bytes);
    }
    case Boundary::reduce:
      return call(plan.tp > 1 && forward, Collective::all_reduce, GroupKind::tp, op.boundary_bytes);
    case Boundary::dispatch:
    case Boundary::combine: {
      auto found = call(plan.ep > 1, Collective::all_to_all, GroupKind::ep,
                        forward ? op.boundary_bytes : op.boundary_back_bytes);
      if (found) { found->spread = op.spread; }
      return found;
    }
    case Boundary::expert_enter:
    case Boundary::expert_leave: {
      const bool sums = (op.boundary == Boundary::expert_leave) == forward;
      const Collective collective = sums ? Collective::reduce_scatter : Collective::all_gather;
      return call(plan.etp > 1, collective, GroupKind::etp, op.boundary_bytes);
    }
    case Boundary::to_heads:
    case Boundary::to_sequence: return call(plan.cp > 1, Collective::all_to_all, GroupKind::cp, op.boundary_bytes);
    case Boundary::spread:
    case Boundary::pool:
    case Boundary::pool_sum:
    case Boundary::share_sum:
    case Boundary::share_rows: return table_crossing(op, forward, plan);
  }
  return std::nullopt;
}

void ItemWriter::kernel(std::string_view name, const Kernel& kernel, Purpose purpose, std::int32_t waits_for) {
  if (kernel.kind == KernelKind::none) { return; }
  Item& item = items_.emplace_back();
  item.name = name;
  item.purpose = purpose;
  item.kernel = kernel;
  item.waits_for = waits_for;
}

std::int32_t ItemWriter::collective(std::string_view name, const CollectiveCall& call, Purpose purpose,
                                    bool asynchronous) {
  Item& item = items_.emplace_back();
  item.name = name;
  item.purpose = purpose;
  item.is_collective = true;
  item.call = call;
  item.asynchronous = asynchronous;
  return static_cast<std::int32_t>(items_.size()) - 1;
}

void ItemWriter::wait(std::string_view name, std::int32_t collective, Purpose purpose) {
  Item& item = items_.emplace_back();
  item.name = name;
  item.purpose = purpose;
  item.waits_for = collective;
}

void ItemWriter::cross(const Operator& op, Direction direction, Purpose purpose) {
  const auto call = crossing(op, direction, plan_);
  if (!call) { return; }
  if (op.end == workload::End::both) {
    collective(op.name, *call, purpose);
  } else if ((op.end == workload::End::first) == (direction == Direction::forward)) {
    under_way_ = collective(op.name, *call, purpose, true);
  } else {
    wait(op.name, under_way_, purpose);
  }
}

// With n pieces of either, of which the first product can start when its own slice is there (ring) or the first piece
// of the gather (pipe), the end is max(n - 1 pieces of the gather, n - 1 of the product) later, and one product more:
// an asynchronous collective beside n - 1 pieces, a wait, the last piece.
void ItemWriter::gather_product(std::string_view gather, const CollectiveCall& call, std::string_view product,
                                const Kernel& kernel, Cut cut, Purpose purpose) {
  if (!overlaps_products()) {
    collective(gather, call, purpose);
    this->kernel(product, kernel, purpose);
    return;
  }
  const std::int64_t n = pieces();
  std::int32_t arrived = -1;
  if (plan_.tp_overlap == TpOverlap::ring) {
    arrived = collective(gather, call, purpose, true);
  } else {
    const CollectiveCall piece{call.collective, call.group, call.bytes / static_cast<double>(n)};
    collective(gather, piece, purpose);
    for (std::int64_t i = 1; i < n; ++i) { arrived = collective(gather, piece, purpose, true); }
  }
  this->kernel(product, pieces_of(kernel, n - 1, n, cut), purpose);
  this->kernel(product, pieces_of(kernel, 1, n, cut), purpose, arrived);
}

// The same from the other end: the first piece of the product, then the rest beside n - 1 pieces of the scatter.
void ItemWriter::product_scatter(std::string_view product, const Kernel& kernel, std::string_view scatter,
                                 const CollectiveCall& call, Purpose purpose) {
  if (!overlaps_products()) {
    this->kernel(product, kernel, purpose);
    collective(scatter, call, purpose);
    return;
  }
  const std::int64_t n = pieces();
  this->kernel(product, pieces_of(kernel, 1, n, Cut::rows), purpose);
  if (plan_.tp_overlap == TpOverlap::ring) {
    const std::int32_t sent = collective(scatter, call, purpose, true);
    this->kernel(product, pieces_of(kernel, n - 1, n, Cut::rows), purpose);
    wait(scatter, sent, purpose);
    return;
  }
  const CollectiveCall piece{call.collective, call.group, call.bytes / static_cast<double>(n)};
  for (std::int64_t i = 1; i < n; ++i) { collective(scatter, piece, purpose, true); }
  this->kernel(product, pieces_of(kernel, n - 1, n, Cut::rows), purpose);
  collective(scatter, piece, purpose);
}

void ItemWriter::forward(Operators operators, Purpose purpose) {
  for (std::size_t i = 0; i < operators.size();) { i = forward_at(operators, i, purpose); }
}

// Writes operator `i`, and those that go with it; the next one to write.
std::size_t ItemWriter::forward_at(Operators operators, std::size_t i, Purpose purpose) {
  const Operator& op = operators[i];
  const bool more = i + 1 < operators.size();
  if (op.attention_core) {
    std::size_t end = i;
    while (end < operators.size() && operators[end].attention_core) { ++end; }
    core(operators.subspan(i, end - i), Direction::forward, purpose);
    return end;
  }
  if (op.boundary == Boundary::enter && more && overlaps_products() && is_product(operators[i + 1].forward)) {
    const Operator& product = operators[i + 1];
    gather_product(op.name, *crossing(op, Direction::forward, plan_), product.name, product.forward, Cut::rows,
                   purpose);
    return i + 2;
  }
  if (is_product(op.forward) && more && overlaps_products() && operators[i + 1].boundary == Boundary::leave) {
    const Operator& leave = operators[i + 1];
    product_scatter(op.name, op.forward, leave.name, *crossing(leave, Direction::forward, plan_), purpose);
    return i + 2;
  }
  cross(op, Direction::forward, purpose);
  kernel(op.name, op.forward, purpose);
  return i + 1;
}

// Ring attention over n ranks: n - 1 pieces of the core beside the passing of keys and values, one more when the last
// have arrived. Backward, their gradients travel with them.
void ItemWriter::core(Operators core, Direction direction, Purpose purpose) {
  const bool exchanged = !core.empty() && core.front().boundary == Boundary::exchange;
  const Operators kernels = exchanged ? core.subspan(1) : core;
  if (!exchanged || plan_.cp == 1) {
    core_kernels(kernels, direction, purpose, 0, -1);
    return;
  }
  const Operator& exchange = core.front();
  const CollectiveCall pass{Collective::all_gather, GroupKind::cp, exchange.boundary_bytes};
  std::int32_t arrived = collective(exchange.name, pass, purpose, true);
  if (direction == Direction::backward) {
    const CollectiveCall gradients{Collective::reduce_scatter, GroupKind::cp, exchange.boundary_bytes};
    arrived = collective(exchange.name, gradients, purpose, true);
  }
  core_kernels(kernels, direction, purpose, plan_.cp - 1, -1);
  core_kernels(kernels, direction, purpose, 1, arrived);
}

// `count` of cp rounds, or all of it when 0.
void ItemWriter::core_kernels(Operators core, Direction direction, Purpose purpose, std::int64_t count,
                              std::int32_t waits_for) {
  const bool forward = direction == Direction::forward;
  for (std::size_t i = 0; i < core.size(); ++i) {
    const Operator& op = core[forward ? i : core.size() - 1 - i];
    const Kernel& whole = forward ? op.forward : op.backward_input;
    if (whole.kind == KernelKind::none) { continue; }
    kernel(op.name, count == 0 ? whole : rounds_of(whole, count, plan_.cp), purpose, waits_for);
    waits_for = -1;
    if (forward) { items_.back().growth = op.growth; }
  }
}

}  // namespace orrery::parallel
