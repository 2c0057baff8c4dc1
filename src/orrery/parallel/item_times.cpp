#include "orrery/parallel/item_times.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"
#include "orrery/cost/kernel_cost.hpp"
#include "orrery/parallel/calls.hpp"

namespace orrery::parallel {

namespace {

// A token is sent once to every node that has experts for it, and once to every rank of that node that has; or every
// copy goes straight to its rank. Traffic between nodes and traffic inside them overlap.
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

// Members of a group among `devices` neighbours, if they are spread evenly over each dimension.
double members_near(const hardware::Cluster& cluster, const network::Group& group, std::int64_t devices) {
  double near = 1.0;
  std::int64_t stride = 1;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    const std::int64_t size = std::max<std::int64_t>(cluster.dimensions[d].size, 1);
    const std::int64_t positions = std::clamp<std::int64_t>(devices / stride, 1, size);
    for (const network::Extent& extent : group.extents) {
      if (extent.dimension != static_cast<int>(d)) { continue; }
      near *= static_cast<double>(std::max<std::int64_t>(1, extent.members * positions / size));
    }
    stride *= size;
  }
  return near;
}

// All devices load or store, each with its group: a level that combines passes the bytes of a group once.
Seconds price_together(const CollectiveCall& call, const hardware::Cluster& cluster, const network::Group& group) {
  const hardware::SecondTier& tier = cluster.second_tier;
  if (call.bytes == Bytes(0)) { return Seconds(0); }
  Seconds time = call.bytes / tier.bandwidth;
  double part = 1.0;
  for (const hardware::PoolLevel& level : tier.levels) {
    if (level.combines) { part = 1.0 / members_near(cluster, group, level.devices); }
    time = max(time, (part * static_cast<double>(level.devices)) * call.bytes / level.capacity());
  }
  return tier.latency + time;
}

Seconds price_tier(const CollectiveCall& call, const hardware::Cluster& cluster, const Mesh& mesh) {
  const hardware::SecondTier& tier = cluster.second_tier;
  if (call.sharers != GroupKind::host) { return price_together(call, cluster, mesh.group(call.sharers)); }
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
    case Route::host: return price_tier(call, fabric.cluster(), mesh);
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
