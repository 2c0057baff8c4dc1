#include "orrery/network/tree_price.hpp"

#include <algorithm>
#include <utility>

#include "orrery/network/level_rules.hpp"
#include "orrery/network/tree_time.hpp"

namespace orrery::network {

namespace {

TreeLimits limits_of(const hardware::InSwitchLimits& limits) { return {limits.buffer.value(), limits.rate.value()}; }

}  // namespace

TreeWay tree_way(const hardware::Cluster& cluster, const hardware::Topology& topology, const TreeCall& call,
                 std::string_view protocol) {
  const LevelRules rules = level_rules(cluster, protocol, CollectiveAlgorithm::in_switch);
  const hardware::InSwitchLimits limits = cluster.topology->in_switch.value_or(hardware::InSwitchLimits{});
  const TreeTime time = tree_time(topology, rules.levels, limits_of(limits), call);
  TreeWay way;
  way.time = rules.base + Seconds(time.time);
  way.base = rules.base;
  way.latency = Seconds(time.latency);
  for (const auto& [link, bytes] : time.carried) {
    const hardware::TopologyLink& on = topology.links[link];
    const double payload = rules.levels[on.level].payload;
    way.links.push_back({link, bytes, Seconds(bytes / (on.bandwidth * payload))});
    if (on.from < topology.devices) { way.payload = payload; }
  }
  return way;
}

TreePrices::TreePrices(const hardware::Cluster& cluster)
    : cluster_(cluster),
      topology_(hardware::build(*cluster.topology)),
      limits_(cluster.topology->in_switch.value_or(hardware::InSwitchLimits{})) {}

// Of the groups of a kind that fill the dimensions up to the outermost one of the group: [group][member]. Groups at
// other positions of the dimensions beyond have switches of their own.
std::vector<std::vector<std::uint32_t>> TreePrices::devices_of(const Group& group) const {
  std::vector<std::vector<std::uint32_t>> groups = {{0}};
  std::int64_t stride = 1;
  const auto outermost = static_cast<std::size_t>(group.extents.back().dimension);
  if (outermost >= topology_.levels.size()) { return {}; }
  for (std::size_t d = 0; d <= outermost; ++d) {
    const auto* extent = std::find_if(group.extents.begin(), group.extents.end(),
                                      [&](const Extent& e) { return e.dimension == static_cast<int>(d); });
    const std::int64_t members = extent == group.extents.end() ? 1 : extent->members;
    const std::int64_t blocks = topology_.levels[d].size / members;
    std::vector<std::vector<std::uint32_t>> wider;
    for (std::int64_t block = 0; block < blocks; ++block) {
      for (const auto& inner : groups) {
        std::vector<std::uint32_t>& made = wider.emplace_back();
        for (std::int64_t i = 0; i < members; ++i) {
          const auto offset = static_cast<std::uint32_t>((block * members + i) * stride);
          for (const std::uint32_t device : inner) { made.push_back(device + offset); }
        }
      }
    }
    groups = std::move(wider);
    stride *= topology_.levels[d].size;
  }
  return groups;
}

// Groups take different tops in turn, and with a limit the first of 16 tops that has room, as simulated ones do.
TreePrices::Trees TreePrices::made_trees(const Group& group) const {
  constexpr std::uint32_t kTries = 16;
  const std::uint32_t tries = limits_.groups ? kTries : 1;
  const auto groups = devices_of(group);
  const auto size = static_cast<double>(topology_.nodes.size() + topology_.links.size());
  if (groups.empty() || static_cast<double>(groups.size() * topology_.switches()) * size > kMostWork) { return {}; }
  std::vector<std::int64_t> served(topology_.nodes.size(), 0);
  std::vector<double> on_links(topology_.links.size(), 0.0);
  Trees made;
  for (std::uint32_t number = 0; number < groups.size(); ++number) {
    std::optional<SwitchTree> tree;
    bool has_room = false;
    for (std::uint32_t i = 0; i < tries && !has_room; ++i) {
      tree = switch_tree(topology_, groups[number], number + i);
      if (!tree) { return {}; }
      has_room = std::all_of(tree->nodes.begin(), tree->nodes.end(), [&](std::uint32_t node) {
        return node < topology_.devices || limits_.has_room(served[node]);
      });
    }
    if (!has_room) { return {}; }
    for (const std::uint32_t node : tree->nodes) { ++served[node]; }
    for (const auto& up : tree->up) {
      for (const std::uint32_t link : up) { ++on_links[link]; }
    }
    if (number == 0) { made.first = std::move(tree), made.device = groups[number].front(); }
  }
  made.groups_on_levels.assign(topology_.levels.size(), 1.0);
  for (std::size_t link = 0; link < on_links.size(); ++link) {
    double& most = made.groups_on_levels[topology_.links[link].level];
    most = std::max(most, on_links[link]);
  }
  return made;
}

const TreePrices::Trees& TreePrices::trees_of(const Group& group) const {
  std::vector<std::int64_t> key(topology_.levels.size() + 1, 1);
  for (const Extent& extent : group.extents) { key.at(static_cast<std::size_t>(extent.dimension)) = extent.members; }
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [found, is_new] = trees_.try_emplace(std::move(key));
  if (is_new) { found->second = made_trees(group); }
  return found->second;
}

// Each link divides its bandwidth among the groups on it: their calls end when the link with the most to carry is done.
std::optional<TreePrice> TreePrices::price(Collective collective, Bytes bytes, const Group& group,
                                           std::string_view protocol) const {
  if (!group.regular || group.size() < 2 || !tree_refusal(collective).empty()) { return std::nullopt; }
  const std::uint32_t chunks = tree_chunks(bytes.value(), limits_of(limits_));
  if (chunks == 0) { return std::nullopt; }
  const Trees& trees = trees_of(group);
  if (!trees.first) { return std::nullopt; }
  const TreeWay way = tree_way(cluster_, topology_, {*trees.first, collective, bytes.value(), trees.device}, protocol);
  TreePrice price{way.time, way.base, way.latency, chunks, 0, {}, {}, {}, {}};
  double out = 0, in = 0;
  for (const TreeWay::LinkTime& load : way.links) {
    const hardware::TopologyLink& link = topology_.links[load.link];
    price.time = max(price.time, trees.groups_on_levels[link.level] * load.time);
    if (link.from < topology_.devices) { out += load.bytes, price.dimension = link.level; }
    if (link.to < topology_.devices) { in += load.bytes; }
  }
  const auto members = static_cast<double>(group.size());
  price.sent = Bytes(out / members);
  price.received = Bytes(in / members);
  const BytesPerSecond rate = cluster_.dimensions[static_cast<std::size_t>(price.dimension)].rate() * way.payload;
  price.out = price.sent / rate;
  price.in = price.received / rate;
  return price;
}

}  // namespace orrery::network
