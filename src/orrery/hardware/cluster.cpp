#include "orrery/hardware/cluster.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::hardware {
namespace {

// Devices along each dimension, innermost first; or the dimension over which they cannot be distributed.
struct Distribution {
  std::vector<std::int64_t> sizes;
  std::optional<std::size_t> impossible;
};

// The largest share of a block of `full` that distributes `rest` evenly over blocks, in whole units; 0: none.
std::int64_t even_share(std::int64_t rest, std::int64_t full, std::int64_t unit) {
  for (std::int64_t share = full / unit * unit; share > 0; share -= unit) {
    if (rest % share == 0) { return share; }
  }
  return 0;
}

// Every block takes as many devices as it can such that all take the same: 8,192 devices on pods of 3,072 are four pods
// of 2,048, as jobs are placed, and not two full pods and two thirds of one.
Distribution distributed(const std::vector<NetworkDimension>& dimensions, std::int64_t devices) {
  Distribution found;
  std::int64_t rest = devices, block = 1;  // block: devices within the inner dimensions of the cluster
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const NetworkDimension& dimension = dimensions[i];
    const bool last = i + 1 == dimensions.size();
    const std::int64_t limit = i == 0 && dimension.most == 0 ? dimension.size : dimension.most;
    std::int64_t share = rest;
    if (last) {
      if (limit > 0 && devices > limit * block) { found.impossible = i; }
    } else if (rest > dimension.size) {
      const std::int64_t unit = i > 0 ? 1 : dimension.host > 0 ? dimension.host : dimension.size;
      const bool may_share = has_switch(dimension.wiring);
      share = rest % dimension.size == 0 ? dimension.size : may_share ? even_share(rest, dimension.size, unit) : 0;
      if (share == 0) { found.impossible = i; }
    }
    if (found.impossible) { return found; }
    found.sizes.push_back(share);
    rest /= share;
    block *= dimension.size;
  }
  return found;
}

bool can_have(const std::vector<NetworkDimension>& dimensions, std::int64_t devices) {
  return devices > 0 && !distributed(dimensions, devices).impossible;
}

// The error for devices that cannot be distributed over the blocks of dimension `i`.
std::string cannot_have(const Cluster& cluster, std::int64_t devices, std::size_t i) {
  const auto& dimensions = cluster.dimensions;
  std::int64_t block = 1;
  for (std::size_t d = 0; d <= i; ++d) { block *= std::max<std::int64_t>(dimensions[d].size, 1); }
  if (dimensions.size() == 1 && dimensions.front().most == 0) {
    return fmt::format("{} devices: dimension {} has at most {}, and cluster \"{}\" has no outer dimension", devices,
                       dimensions.front().name, dimensions.front().size, cluster.name);
  }
  if (i + 1 == dimensions.size()) {
    std::int64_t inner = 1;
    for (std::size_t d = 0; d < i; ++d) { inner *= dimensions[d].size; }
    return fmt::format("{} devices: cluster \"{}\" has at most {}, {} along its outermost dimension {}", devices,
                       cluster.name, inner * dimensions[i].most, dimensions[i].most, dimensions[i].name);
  }
  std::int64_t below = devices - 1, above = devices + 1;
  while (below > 0 && !can_have(dimensions, below)) { --below; }
  while (above < devices + 2 * block && !can_have(dimensions, above)) { ++above; }
  const std::string what = i == 0 ? fmt::format("nodes of {}", dimensions[0].host > 0 ? dimensions[0].host : block)
                                  : fmt::format("blocks of {} below dimension \"{}\"", block, dimensions[i + 1].name);
  std::vector<std::string> near;
  if (below > 0) { near.push_back(std::to_string(below)); }
  if (can_have(dimensions, above)) { near.push_back(std::to_string(above)); }
  return fmt::format("{} devices are not a whole number of {}; nearest: {}", devices, what, join(near, " or "));
}

// Blocks are filled evenly. With less than a quarter of each, a job that fills some blocks and leaves the others empty
// has much less traffic between blocks than what is priced: such a cluster gets a warning.
constexpr std::int64_t kBlockParts = 4;

// The warning for blocks of `full` devices of which a job uses `share` each.
std::string scattered(std::int64_t devices, const NetworkDimension& inner, std::int64_t full, std::int64_t share,
                      const NetworkDimension& outer) {
  return fmt::format(
      "{} devices do not fill blocks of {} evenly; priced as {} per \"{}\", so more traffic crosses \"{}\" than "
      "with full blocks",
      devices, full, share, inner.name, outer.name);
}

void scale_node_expenses(Cluster& cluster, double share) {
  cluster.node_power_watts *= share;
  cluster.node_price_usd *= share;
}

// The first `share` devices along a dimension: what was a group is now all of it.
void take_part(NetworkDimension& dimension, std::int64_t share) {
  const double part = dimension.bandwidth_among(share) / dimension.rate();
  dimension.bandwidth *= part;
  if (dimension.parts.empty()) { return; }
  dimension.parts.resize(static_cast<std::size_t>(share) + 1);
  for (double& one : dimension.parts) { one /= part; }
}

}  // namespace

BytesPerSecond NetworkDimension::bandwidth_among(std::int64_t members) const {
  if (members >= size) { return rate(); }
  return rate() * (parts.empty() ? bandwidth_part(wiring, size, members) : parts[static_cast<std::size_t>(members)]);
}

double straggler_slowdown(double spread, std::int64_t devices) {
  if (devices <= 1) { return 1.0; }
  const auto n = static_cast<double>(devices);
  const double above = 0.625 / (n + 0.25);  // probability beyond the quantile
  double low = 0.0, high = 10.0;            // beyond 10 lies less than 1e-23
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = 0.5 * (low + high);
    const bool beyond = 0.5 * std::erfc(middle / std::numbers::sqrt2) < above;
    (beyond ? high : low) = middle;
  }
  return 1.0 + spread * 0.5 * (low + high);
}

std::vector<std::string> warnings_of(const Cluster& cluster) {
  std::vector<std::string> warnings = cluster.warnings;
  const auto add_doubt = [&](const Accelerator& accelerator) {
    std::string doubt = doubtful_cores(accelerator);
    if (!doubt.empty()) { warnings.push_back(std::move(doubt)); }
  };
  if (cluster.nodes.empty()) { add_doubt(cluster.accelerator); }
  for (const Nodes& nodes : cluster.nodes) { add_doubt(nodes.accelerator); }
  return warnings;
}

Ground weakest_ground(const Cluster& cluster, Links links) {
  Ground weakest{cluster.accelerator.basis, cluster.accelerator.name};
  for (const Nodes& some : cluster.nodes) {
    if (some.accelerator.basis > weakest.basis) { weakest = {some.accelerator.basis, some.accelerator.name}; }
  }
  for (const auto& dimension : cluster.dimensions) {
    const bool counts = links == Links::all || dimension.size != 1;
    if (counts && dimension.link.basis > weakest.basis) { weakest = {dimension.link.basis, dimension.link.name}; }
  }
  return weakest;
}

bool SecondTier::combines() const {
  return std::any_of(levels.begin(), levels.end(), [](const PoolLevel& level) { return level.combines; });
}

BytesPerSecond SecondTier::rate() const {
  BytesPerSecond least = bandwidth;
  for (const PoolLevel& level : levels) { least = min(least, level.capacity() / static_cast<double>(level.devices)); }
  return least;
}

std::size_t Cluster::nodes_entry(std::int64_t device) const {
  std::int64_t node = device / node_size();
  std::size_t entry = 0;
  while (entry + 1 < nodes.size() && node >= nodes[entry].count) { node -= nodes[entry++].count; }
  return entry;
}

void Cluster::set_nodes(const std::vector<Nodes>& known, const std::vector<std::size_t>& entries) {
  const double slowdown = accelerator.slowdown;  // by stragglers among the nodes of this cluster
  nodes.clear();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0 && entries[i] == entries[i - 1]) {
      ++nodes.back().count;
    } else {
      nodes.push_back({1, known.at(entries[i]).accelerator});
    }
  }
  if (!nodes.empty()) { accelerator = nodes.front().accelerator; }
  if (nodes.size() == 1) { nodes.clear(); }
  change_accelerators([=](Accelerator& one) { one.slowdown = slowdown; });
}

namespace {

// Keeps the nodes of `count`; a cluster with one kind of them left has no list.
Result<void> take_nodes(Cluster& cluster, std::int64_t count) {
  std::int64_t there = 0;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    Nodes& some = cluster.nodes[i];
    some.count = std::min(some.count, count - there);
    there += some.count;
    if (there == count) { cluster.nodes.resize(i + 1); }
  }
  if (there < count) {
    return fail(fmt::format("{} devices are {} nodes of {}; {} has {}", cluster.devices, count, cluster.node_size(),
                            cluster.name, there));
  }
  if (cluster.nodes.size() == 1) { cluster.nodes.clear(); }
  return {};
}

}  // namespace

Result<Cluster> scaled(Cluster cluster, std::int64_t devices) {
  ORRERY_ASSERT(!cluster.dimensions.empty());
  if (devices < 1 || devices > kMaxDevices) {
    return fail(fmt::format("{} devices: must be between 1 and {}", devices, kMaxDevices));
  }
  auto& dimensions = cluster.dimensions;
  const Distribution found = distributed(dimensions, devices);
  if (found.impossible) { return fail(cannot_have(cluster, devices, *found.impossible)); }
  cluster.warnings.clear();
  std::int64_t block = 1, placed = 1;  // devices within the dimensions so far: of the cluster, of the job
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    NetworkDimension& dimension = dimensions[i];
    const std::int64_t full = dimension.size, share = found.sizes[i];
    block *= full;
    placed *= share;
    const bool has_outer = i + 1 < dimensions.size();
    if (has_outer && placed < devices && kBlockParts * share < full) {
      cluster.warnings.push_back(scattered(devices, dimension, block, placed, dimensions[i + 1]));
    }
    if (share < full) {
      if (i == 0) { scale_node_expenses(cluster, static_cast<double>(share) / static_cast<double>(full)); }
      take_part(dimension, share);
    }
    dimension.size = share;
  }
  cluster.devices = devices;
  for (PoolLevel& level : cluster.second_tier.levels) { level.devices = std::min(level.devices, devices); }
  const double slowdown = straggler_slowdown(cluster.speed_spread, devices / dimensions.front().size);
  cluster.change_accelerators([=](Accelerator& one) { one.slowdown = slowdown; });
  if (!cluster.nodes.empty()) {
    if (auto taken = take_nodes(cluster, devices / dimensions.front().size); !taken) {
      return tl::make_unexpected(taken.error());
    }
  }
  return cluster;
}

}  // namespace orrery::hardware
