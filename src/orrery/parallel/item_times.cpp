#include "orrery/parallel/item_times.hpp"

#include "orrery/core/error.hpp"
#include "orrery/cost/kernel_cost.hpp"
#include "orrery/parallel/calls.hpp"

namespace orrery::parallel {

namespace {

// A token is sent once to every node that has experts for it, and once to every rank of that node that has. Traffic
// between nodes and traffic inside them overlap.
Seconds price_node_dispatch(const CollectiveCall& call, const network::Fabric& fabric, const Mesh& mesh) {
  const auto bytes = node_dispatch_bytes(call, mesh);
  const Seconds inside = fabric.price(call.collective, bytes.inside, mesh.group(bytes.inside_group)).time;
  if (bytes.across == Bytes(0)) { return inside; }
  return max(fabric.price(call.collective, bytes.across, mesh.group(GroupKind::ep_across)).time, inside);
}

// Ring attention: in each of n - 1 steps every rank sends its part to the next rank. A step is as slow as the hop
// across the outermost dimension, where only one rank of a node uses its port.
Seconds price_ring_steps(const CollectiveCall& call, const network::Fabric& fabric, const network::Group& group) {
  const auto members = static_cast<double>(group.size());
  if (group.extents.empty() || call.bytes == Bytes(0)) { return Seconds(0); }
  return (members - 1.0) * fabric.transfer(call.bytes / members, group.extents.back().dimension);
}

Seconds price_transfer(Bytes bytes, const hardware::SecondTier& tier) {
  ORRERY_ASSERT(tier.bandwidth > BytesPerSecond(0));
  return bytes > Bytes(0) ? tier.latency + bytes / tier.rate() : Seconds(0);
}

Seconds price_tier(const CollectiveCall& call, const hardware::SecondTier& tier) {
  if (call.transfer != TierTransfer::update) { return price_transfer(call.bytes, tier); }
  const Bytes most = max(call.update.gradients, call.update.weights);  // each direction has its own link
  return max(host_update_time(call, tier), price_transfer(most, tier));
}

}  // namespace

Seconds price_call(const CollectiveCall& call, const network::Fabric& fabric, const Mesh& mesh) {
  switch (route_of(call, mesh)) {
    case Route::collective: return fabric.price(call.collective, call.bytes, mesh.group(call.group)).time;
    case Route::ring_steps: return price_ring_steps(call, fabric, mesh.group(call.group));
    case Route::node_dispatch: return price_node_dispatch(call, fabric, mesh);
    case Route::host: return price_tier(call, fabric.cluster().second_tier);
  }
  throw_internal_error("known route", __FILE__, __LINE__);
}

Seconds price_kernel(const KernelLaunch& launch, const network::Fabric& fabric, std::int64_t grown) {
  const auto& accelerator = fabric.cluster().accelerator;
  if (grown == 0) { return cost::kernel_cost(launch.kernel, accelerator).time; }
  return cost::kernel_cost(grown_kernel(launch, grown), accelerator).time;
}

Seconds price_call(const CollectiveCall& call, const network::Fabric& fabric, const Mesh& mesh,
                   network::PriceCache* cache) {
  if (cache == nullptr || route_of(call, mesh) != Route::collective) { return price_call(call, fabric, mesh); }
  return cache->time(call.collective, call.bytes, mesh.group(call.group));
}

const std::vector<Seconds>& ItemTimes::of(BlockId id) {
  std::vector<Seconds>& times = times_[id.index()];
  const auto& items = program_.block(id).items;
  if (!times.empty() || items.empty()) { return times; }
  times.reserve(items.size());
  for (const Item& item : items) {
    if (const auto* launch = item.kernel()) {
      times.push_back(price_kernel(*launch, fabric_));
    } else if (const auto* collective = item.collective()) {
      times.push_back(price_call(collective->call, fabric_, program_.mesh, &prices_));
    } else {
      times.emplace_back();
    }
  }
  return times;
}

}  // namespace orrery::parallel
