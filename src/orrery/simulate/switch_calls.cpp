#include "orrery/simulate/switch_calls.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/simulate/message_flows.hpp"
#include "orrery/simulate/topology_loads.hpp"

namespace orrery::simulate {

SwitchCalls::SwitchCalls(const hardware::Cluster& cluster, const hardware::Topology& topology)
    : cluster_(cluster),
      topology_(topology),
      limits_(cluster.topology->in_switch.value_or(hardware::InSwitchLimits{})),
      served_(topology.nodes.size(), 0) {}

const std::optional<network::SwitchTree>& SwitchCalls::tree(const Asked& asked, std::uint32_t which) {
  const auto [found, is_new] = trees_.try_emplace({asked.group, which});
  if (is_new) { found->second = network::switch_tree(topology_, asked.devices, asked.group + which); }
  return found->second;
}

const SwitchCalls::Way& SwitchCalls::way(const Asked& asked, const network::SwitchTree& tree, std::uint32_t which) {
  const auto [found, is_new] = ways_.try_emplace({asked.group, which, asked.collective, asked.bytes.value()});
  Way& made = found->second;
  if (!is_new) { return made; }
  static_cast<network::TreeWay&>(made) = network::tree_way(
      cluster_, topology_, {tree, asked.collective, asked.bytes.value(), asked.devices.front()}, asked.protocol);
  for (const std::uint32_t node : tree.nodes) {
    if (node >= topology_.devices) { made.switches.push_back(node); }
  }
  return made;
}

bool SwitchCalls::has_room(const network::SwitchTree& tree) const {
  return std::all_of(tree.nodes.begin(), tree.nodes.end(),
                     [&](std::uint32_t node) { return limits_.has_room(served_[node]); });
}

const SwitchCalls::Way* SwitchCalls::take(const Asked& asked) {
  if (!network::tree_refusal(asked.collective).empty() || asked.devices.size() < 2) { return nullptr; }
  constexpr std::uint32_t kTries = 16;  // tops
  const std::uint32_t tries = limits_.groups ? kTries : 1;
  for (std::uint32_t i = 0; i < tries; ++i) {
    const auto& found = tree(asked, i);
    if (!found) { return nullptr; }
    if (network::tree_chunks(asked.bytes.value(), {limits_.buffer.value(), limits_.rate.value()}) == 0) {
      ++over_buffer_;
      return nullptr;
    }
    const Way& taken = way(asked, *found, i);
    if (!(taken.time < asked.otherwise)) { return nullptr; }
    if (!has_room(*found)) { continue; }
    for (const std::uint32_t node : taken.switches) { ++served_[node]; }
    ++served_calls_;
    return &taken;
  }
  ++without_room_;
  return nullptr;
}

void SwitchCalls::give_back(const Way& way) {
  for (const std::uint32_t node : way.switches) { --served_[node]; }
}

std::optional<SwitchTime> switch_time(const hardware::Cluster& cluster, Collective collective, Bytes bytes) {
  if (!cluster.topology || !cluster.topology->in_switch) { return std::nullopt; }
  const hardware::Topology topology = hardware::build(*cluster.topology);
  SwitchCalls calls(cluster, topology);
  SwitchCalls::Asked asked{0, collective, bytes, {}, {}, infinite<Seconds>()};
  asked.devices = devices_of(cluster, parallel::rank_order(cluster), static_cast<std::uint32_t>(cluster.devices));
  network::Group everyone;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    if (cluster.dimensions[d].size > 1) {
      everyone.extents.push_back({static_cast<int>(d), cluster.dimensions[d].size});
    }
  }
  const network::Fabric fabric(cluster);
  const network::Price price = fabric.price(collective, bytes, everyone, CollectiveAlgorithm::in_switch);
  if (price.time < infinite<Seconds>()) { asked.protocol = price.protocol; }
  const SwitchCalls::Way* way = calls.take(asked);
  if (way == nullptr) { return std::nullopt; }
  const hardware::InSwitchLimits& limits = *cluster.topology->in_switch;
  return SwitchTime{way->time, way->base, way->latency,
                    network::tree_chunks(bytes.value(), {limits.buffer.value(), limits.rate.value()})};
}

std::vector<std::string> SwitchCalls::refusals() const {
  std::vector<std::string> texts;
  if (without_room_ > 0) {
    texts.push_back(
        fmt::format("in_switch: switches serve {} groups at once: {} of {} calls that would be faster in switches use "
                    "links instead",
                    limits_.groups.value_or(0), without_room_, without_room_ + served_calls_));
  }
  if (over_buffer_ > 0) {
    texts.push_back(
        fmt::format("in_switch: {} calls use links instead: the buffer of {} would need more than {} chunks",
                    over_buffer_, config::format_bytes(limits_.buffer), network::kMostTreeChunks));
  }
  return texts;
}

}  // namespace orrery::simulate
