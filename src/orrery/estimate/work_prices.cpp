#include "orrery/estimate/work_prices.hpp"

namespace orrery::estimate {

using parallel::Part;

std::size_t WorkPrices::Hash::operator()(const Key& key) const {
  auto hash = std::hash<const void*>{}(key.slice);
  for (const auto* group : {&key.groups.tp, &key.groups.cp, &key.groups.etp, &key.groups.ep, &key.groups.tables,
                            &key.groups.table_copies}) {
    for (const auto& extent : group->extents) {
      hash = (hash ^ static_cast<std::size_t>(extent.members << 4 | extent.dimension)) * 0x9E3779B97F4A7C15ULL;
    }
    hash = (hash ^ (hash >> 29U)) + 1;
  }
  return hash;
}

WorkPrice& WorkPrices::of(const parallel::LoweredSlice& slice, const parallel::Plan& plan) {
  const Key key{&slice, parallel::slice_groups(collectives_.fabric().cluster(), plan)};
  const auto [entry, is_new] = prices_.try_emplace(key);
  if (is_new) { entry->second = priced(slice, key.groups); }
  return entry->second;
}

namespace {

const Cost& cost_at(const std::vector<Cost>& blocks, parallel::OptionalBlockId id) {
  static const Cost nothing{};
  return id ? blocks[(*id).index()] : nothing;
}

PartTime part_time(const Part& part, const std::vector<Cost>& blocks) {
  PartTime time;
  const Cost &forward = cost_at(blocks, part.forward), &backward = cost_at(blocks, part.backward);
  const Cost& weight = cost_at(blocks, part.weight);
  time.forward = forward.time;
  time.backward = backward.time;
  time.weight = weight.time;
  for (const Cost* cost : {&forward, &backward, &weight}) {
    time.kernels += cost->compute + (cost->recompute - cost->recompute_waits);
    for (std::size_t kind = 0; kind < kTrafficKinds; ++kind) {
      if (static_cast<TrafficKind>(kind) != TrafficKind::host) { time.calls += cost->traffic[kind].busy; }
    }
  }
  return time;
}

}  // namespace

WorkPrice WorkPrices::priced(const parallel::LoweredSlice& slice, const parallel::SliceGroups& groups) {
  parallel::Mesh mesh;
  mesh.set(groups);
  WorkPrice price;
  for (const auto& block : slice.blocks) {
    price.blocks.push_back(price_block(*block, collectives_.fabric(), mesh, &collectives_));
  }
  const auto time_of = [&](parallel::PartId part) { return part_time(slice.parts[part], price.blocks); };
  price.embedding = time_of(*slice.embedding);
  for (const auto& use : slice.tower) { price.embedding += static_cast<double>(use.repeat) * time_of(*use.part); }
  price.head = time_of(*slice.head);
  if (slice.mtp) { price.head += static_cast<double>(model_.mtp_layers) * time_of(*slice.mtp); }
  PartTime sum;
  price.layers_before.push_back(sum);
  std::int64_t layer = 0;
  for (const auto& run : slice.runs) {
    const PartTime one = time_of(run.without_recompute ? *run.without_recompute : run.part);
    for (; layer < run.end; ++layer) {
      sum += one;
      price.layers_before.push_back(sum);
    }
  }
  return price;
}

}  // namespace orrery::estimate
