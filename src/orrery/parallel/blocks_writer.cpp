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
  part.held *= share;
  part.casts *= share;
  return part;
}

}  // namespace

Kernel gemm_chunks(const Kernel& whole, std::int64_t count, std::int64_t pieces, Cut cut) {
  Kernel part = share_of(whole, count, pieces);
  std::int64_t& size = cut == Cut::rows ? part.m : part.k;
  size = (size + pieces - 1) / pieces;
  part.launches = whole.launches * static_cast<int>(count);
  return part;
}

// Fused attention reads a part of the keys in each round. A plain core keeps its shape, and its time is divided.
Kernel attention_rounds(const Kernel& whole, std::int64_t count, std::int64_t pieces) {
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

// The collectives of sharded embedding tables.
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

std::optional<CollectiveCall> tier_call(bool goes, Bytes bytes, TierTransfer transfer) {
  if (!goes) { return std::nullopt; }
  return CollectiveCall{Collective::broadcast, GroupKind::host, bytes, {}, transfer};
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
    case Boundary::gather:
      return call(plan.tp > 1 && forward, Collective::all_gather, GroupKind::tp, op.boundary_bytes);
    case Boundary::dispatch:
    case Boundary::combine: {
      auto found = call(plan.ep > 1, Collective::all_to_all, GroupKind::ep,
                        forward ? op.boundary_bytes : op.boundary_back_bytes);
      if (found) { found->node_dispatch = op.node_dispatch; }
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
    case Boundary::lookup_indices:
    case Boundary::pool:
    case Boundary::pool_sum:
    case Boundary::share_sum:
    case Boundary::share_rows: return table_crossing(op, forward, plan);
    case Boundary::fetch_rows: return tier_call(forward, op.boundary_bytes, TierTransfer::load);
    case Boundary::stream_rows: return tier_call(!forward, op.boundary_bytes, TierTransfer::both);
  }
  return std::nullopt;
}

void ItemWriter::kernel(std::string_view name, const Kernel& kernel, Purpose purpose, OptionalItemId waits_for) {
  if (kernel.kind == KernelKind::none) { return; }
  items_.push_back({name, purpose, KernelLaunch{kernel, {}, waits_for}});
}

ItemId ItemWriter::collective(std::string_view name, const CollectiveCall& call, Purpose purpose, bool asynchronous) {
  items_.push_back({name, purpose, CollectiveLaunch{call, asynchronous}});
  return ItemId(items_.size() - 1);
}

void ItemWriter::wait(std::string_view name, ItemId collective, Purpose purpose) {
  items_.push_back({name, purpose, CollectiveWait{collective}});
}

void ItemWriter::cross(const Operator& op, Direction direction, Purpose purpose) {
  const auto call = crossing(op, direction, plan_);
  if (!call) { return; }
  if (op.end == workload::End::both) {
    collective(op.name, *call, purpose);
  } else if ((op.end == workload::End::first) == (direction == Direction::forward)) {
    in_flight_.push_back(collective(op.name, *call, purpose, true));
  } else {
    wait(op.name, in_flight_.back(), purpose);
    in_flight_.pop_back();
  }
}

// With n chunks of both, the first GEMM starts with the rank's own slice (ring) or after the first chunk of the gather
// (pipe). After that it takes max(n - 1 chunks of the gather, n - 1 GEMMs) plus one GEMM: an asynchronous collective
// overlapped with n - 1 GEMMs, a wait, the last GEMM.
void ItemWriter::gather_and_gemm(std::string_view gather, const CollectiveCall& call, std::string_view gemm,
                                 const Kernel& kernel, Cut cut, Purpose purpose) {
  if (!overlaps_gemms()) {
    collective(gather, call, purpose);
    this->kernel(gemm, kernel, purpose);
    return;
  }
  const std::int64_t n = chunks();
  OptionalItemId arrived;
  if (plan_.tp_overlap == TpOverlap::ring) {
    arrived = collective(gather, call, purpose, true);
  } else {
    const CollectiveCall piece{call.collective, call.group, call.bytes / static_cast<double>(n)};
    collective(gather, piece, purpose);
    for (std::int64_t i = 1; i < n; ++i) { arrived = collective(gather, piece, purpose, true); }
  }
  this->kernel(gemm, gemm_chunks(kernel, n - 1, n, cut), purpose);
  this->kernel(gemm, gemm_chunks(kernel, 1, n, cut), purpose, arrived);
}

// Scatter: the first GEMM, then the others overlapped with n - 1 chunks of the scatter.
void ItemWriter::gemm_and_scatter(std::string_view gemm, const Kernel& kernel, std::string_view scatter,
                                  const CollectiveCall& call, Purpose purpose) {
  if (!overlaps_gemms()) {
    this->kernel(gemm, kernel, purpose);
    collective(scatter, call, purpose);
    return;
  }
  const std::int64_t n = chunks();
  this->kernel(gemm, gemm_chunks(kernel, 1, n, Cut::rows), purpose);
  if (plan_.tp_overlap == TpOverlap::ring) {
    const ItemId sent = collective(scatter, call, purpose, true);
    this->kernel(gemm, gemm_chunks(kernel, n - 1, n, Cut::rows), purpose);
    wait(scatter, sent, purpose);
    return;
  }
  const CollectiveCall piece{call.collective, call.group, call.bytes / static_cast<double>(n)};
  for (std::int64_t i = 1; i < n; ++i) { collective(scatter, piece, purpose, true); }
  this->kernel(gemm, gemm_chunks(kernel, n - 1, n, Cut::rows), purpose);
  collective(scatter, piece, purpose);
}

void ItemWriter::forward(Operators operators, Purpose purpose) {
  for (std::size_t i = 0; i < operators.size();) { i = forward_at(operators, i, purpose); }
}

// Writes operator `i` and the operators that belong to it; returns the index of the next operator.
std::size_t ItemWriter::forward_at(Operators operators, std::size_t i, Purpose purpose) {
  const Operator& op = operators[i];
  const bool more = i + 1 < operators.size();
  if (is_core(op)) {
    std::size_t end = i;
    while (end < operators.size() && is_core(operators[end])) { ++end; }
    core(operators.subspan(i, end - i), Direction::forward, purpose);
    return end;
  }
  if (op.boundary == Boundary::enter && more && overlaps_gemms() && is_gemm(operators[i + 1].forward)) {
    const Operator& gemm = operators[i + 1];
    gather_and_gemm(op.name, *crossing(op, Direction::forward, plan_), gemm.name, gemm.forward, Cut::rows, purpose);
    return i + 2;
  }
  if (is_gemm(op.forward) && more && overlaps_gemms() && operators[i + 1].boundary == Boundary::leave) {
    const Operator& leave = operators[i + 1];
    gemm_and_scatter(op.name, op.forward, leave.name, *crossing(leave, Direction::forward, plan_), purpose);
    return i + 2;
  }
  cross(op, Direction::forward, purpose);
  kernel(op.name, op.forward, purpose);
  return i + 1;
}

// Ring attention over n ranks: n - 1 rounds of the core overlapped with the transfer of keys and values, and one more
// round when the last have arrived. In the backward pass the gradients of keys and values are sent too.
void ItemWriter::core(Operators core, Direction direction, Purpose purpose) {
  const bool exchanged = !core.empty() && core.front().boundary == Boundary::exchange;
  const Operators kernels = exchanged ? core.subspan(1) : core;
  if (!exchanged || plan_.cp == 1) {
    core_kernels(kernels, direction, purpose, 0, {});
    return;
  }
  const Operator& exchange = core.front();
  const CollectiveCall pass{Collective::all_gather, GroupKind::cp, exchange.boundary_bytes};
  ItemId arrived = collective(exchange.name, pass, purpose, true);
  if (direction == Direction::backward) {
    const CollectiveCall gradients{Collective::reduce_scatter, GroupKind::cp, exchange.boundary_bytes};
    arrived = collective(exchange.name, gradients, purpose, true);
  }
  core_kernels(kernels, direction, purpose, plan_.cp - 1, {});
  core_kernels(kernels, direction, purpose, 1, arrived);
}

// `count` of the cp rounds, or the whole core if 0.
void ItemWriter::core_kernels(Operators core, Direction direction, Purpose purpose, std::int64_t count,
                              OptionalItemId waits_for) {
  const bool forward = direction == Direction::forward;
  for (std::size_t i = 0; i < core.size(); ++i) {
    const Operator& op = core[forward ? i : core.size() - 1 - i];
    const Kernel& whole = forward ? op.forward : op.backward_input;
    if (whole.kind == KernelKind::none) { continue; }
    const Kernel& run = count == 0 ? whole : attention_rounds(whole, count, plan_.cp);
    items_.push_back({op.name, purpose, KernelLaunch{run, forward ? op.growth : workload::Growth{}, waits_for}});
    waits_for = {};
  }
}

}  // namespace orrery::parallel
