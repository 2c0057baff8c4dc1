#include "orrery/simulate/message_flows.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/codec.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/hardware/routes.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/level_rules.hpp"
#include "orrery/network/names.hpp"
#include "orrery/network/stepped_collective.hpp"
#include "orrery/network/switch_tree.hpp"
#include "orrery/simulate/topology_loads.hpp"

namespace orrery::simulate {

namespace {

// The switch that every device has a cable to; none: the first node that is no switch.
std::uint32_t common_switch(const hardware::Topology& topology, const std::vector<std::uint32_t>& devices) {
  std::vector<std::set<std::uint32_t>> joined(topology.nodes.size());
  for (const hardware::TopologyLink& link : topology.links) {
    if (link.to < topology.devices) { joined[link.from].insert(link.to); }
  }
  const auto has_all = [&](const std::set<std::uint32_t>& cables) {
    return std::all_of(devices.begin(), devices.end(), [&](std::uint32_t device) { return cables.contains(device); });
  };
  const auto found = std::find_if(joined.begin() + topology.devices, joined.end(), has_all);
  return static_cast<std::uint32_t>(found - joined.begin());
}

std::vector<network::SteppedCollective> rings_of(const network::SteppedCollective& call, std::uint32_t domain) {
  std::vector<network::SteppedCollective> rings;
  for (std::uint32_t k = 0; k < domain; ++k) {
    network::SteppedCollective ring = call;
    ring.block_bytes = call.block_bytes / domain;
    ring.nodes = network::ring_order(call.nodes, domain, k);
    rings.push_back(std::move(ring));
  }
  return rings;
}

bool goes_round(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::all_gather ||
         collective == Collective::reduce_scatter;
}

// The ranks r, r + groups, r + 2 groups, ... are one group.
std::vector<network::SteppedCollective> calls_of(const network::SteppedCollective& all, std::uint32_t groups) {
  std::vector<network::SteppedCollective> calls;
  for (std::uint32_t group = 0; group < groups; ++group) {
    network::SteppedCollective call = all;
    call.nodes.clear();
    for (std::uint32_t rank = group; rank < all.schedule.members; rank += groups) {
      call.nodes.push_back(all.nodes[rank]);
    }
    call.schedule.members = static_cast<std::uint32_t>(call.nodes.size());
    call.block_bytes = all.block_bytes * network::block_count(all.schedule) / network::block_count(call.schedule);
    calls.push_back(std::move(call));
  }
  return calls;
}

// A tree for the group whose switches all have room for it; nothing: none has. `served`: groups by node.
std::optional<network::SwitchTree> free_tree(const hardware::Topology& topology,
                                             const std::vector<std::uint32_t>& nodes, std::uint32_t group,
                                             const hardware::InSwitchLimits& limits,
                                             std::vector<std::int64_t>& served) {
  constexpr std::uint32_t kTries = 16;  // roots
  for (std::uint32_t i = 0; i < (limits.groups ? kTries : 1); ++i) {
    auto tree = network::switch_tree(topology, nodes, group + i);
    if (!tree) { return std::nullopt; }
    const auto is_switch = [&](std::uint32_t node) { return node >= topology.devices; };
    const bool is_free = std::all_of(tree->nodes.begin(), tree->nodes.end(), [&](std::uint32_t node) {
      return !is_switch(node) || limits.has_room(served[node]);
    });
    if (!is_free) { continue; }
    for (const std::uint32_t node : tree->nodes) { ++served[node]; }
    return tree;
  }
  return std::nullopt;
}

// The shape of each of the groups: rank r is in group r modulo groups. Nothing: their members are no grid.
std::optional<network::Group> shape_of_groups(const hardware::Cluster& cluster, std::uint32_t groups) {
  network::Group shape;
  std::int64_t left = groups;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    const std::int64_t size = cluster.dimensions[d].size;
    const std::int64_t part = left % size == 0 ? size : left;
    if (size % part != 0) { return std::nullopt; }
    if (size > part) { shape.extents.push_back({static_cast<int>(d), size / part}); }
    left /= part;
  }
  return shape;
}

network::Group everyone(const hardware::Cluster& cluster) {
  network::Group group;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    if (cluster.dimensions[d].size > 1) { group.extents.push_back({static_cast<int>(d), cluster.dimensions[d].size}); }
  }
  return group;
}

// The busiest link, for a result.
void note_busiest(const hardware::Topology& topology, const std::vector<network::LevelRule>& levels,
                  const std::vector<double>& carried, MessageFlows& made) {
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const hardware::TopologyLink& link = topology.links[i];
    const double use = carried[i] / (link.bandwidth * levels[link.level].payload) / made.time.value();
    if (use <= made.busiest_use) { continue; }
    made.busiest_use = use;
    made.busiest = fmt::format("{} to {}", topology.nodes[link.from].name, topology.nodes[link.to].name);
  }
}

}  // namespace

namespace {

// A call in the only switch has the closed form's schedule, if that has it; others, and switches with limits, are
// trees.
bool has_one_switch(const hardware::Cluster& cluster, const hardware::Topology& topology, Collective collective,
                    const std::vector<std::uint32_t>& devices) {
  const auto members = static_cast<std::uint32_t>(devices.size());
  return !cluster.topology->in_switch && common_switch(topology, devices) < topology.nodes.size() &&
         network::refusal(network::member_schedule(collective, CollectiveAlgorithm::in_switch, members)).empty();
}

std::string name_of_usual(Collective collective) {
  return std::string(config::enum_name(network::usual_algorithm(collective)));
}

// Several calls in switches; those that find no switch with room run without.
struct SwitchRun {
  network::TreeCalls calls;
  network::TreeLimits limits;
  std::string note;
};

SwitchRun switch_run(const hardware::Cluster& cluster, const hardware::Topology& topology,
                     const std::vector<network::SteppedCollective>& groups, Bytes bytes) {
  SwitchRun run;
  const hardware::InSwitchLimits limits = cluster.topology->in_switch.value_or(hardware::InSwitchLimits{});
  run.limits = {limits.buffer.value(), limits.rate.value()};
  const bool has_buffer = network::tree_chunks(bytes.value(), run.limits) > 0;
  std::vector<std::int64_t> served(topology.nodes.size(), 0);
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    const network::SteppedCollective& call = groups[group];
    auto tree = has_buffer ? free_tree(topology, call.nodes, group, limits, served) : std::nullopt;
    if (tree) {
      run.calls.trees.push_back({std::move(*tree), call.schedule.collective, bytes.value(), call.nodes.front()});
    } else {
      run.calls.others.push_back(call);
    }
  }
  const std::string usual = name_of_usual(groups.front().schedule.collective);
  if (!has_buffer) {
    run.note =
        fmt::format("in_switch: the buffer of {} holds no two chunks of {} ({} chunks at most): {} instead",
                    config::format_bytes(limits.buffer), config::format_bytes(bytes), network::kMostTreeChunks, usual);
  } else if (!run.calls.others.empty()) {
    run.note = fmt::format("in_switch: switches serve {} groups at once: {} of {} groups use {} instead",
                           limits.groups.value_or(0), run.calls.others.size(), groups.size(), usual);
  }
  return run;
}

void note_times(const hardware::Topology& topology, const network::LevelRules& rules,
                const network::SteppedTimes& times, MessageFlows& made) {
  made.time = rules.base + Seconds(*std::max_element(times.finish.begin(), times.finish.end()));
  made.messages = times.messages;
  made.updates = times.updates;
  note_busiest(topology, rules.levels, times.carried, made);
}

// hierarchical: by dimension, in chunks.
MessageFlows run_by_dimension(const hardware::Cluster& cluster, hardware::Routes& routes,
                              std::vector<network::SteppedCollective> calls, Collective collective, Bytes bytes,
                              std::int64_t chunks) {
  constexpr auto kAlgorithm = CollectiveAlgorithm::hierarchical;
  const network::Fabric fabric(cluster);
  const auto groups = static_cast<std::uint32_t>(calls.size());
  const network::Group group = shape_of_groups(cluster, groups).value();
  network::ByDimension way{fabric.schedule(collective, bytes, group, kAlgorithm), group, {}, {}};
  const std::string_view protocol = fabric.price(collective, bytes, group, kAlgorithm).protocol;
  if (chunks > 0) { way.schedule.chunks = chunks; }
  const network::PhaseRules rules = network::phase_rules(fabric, way.schedule, group, protocol);
  way.both_ways = rules.both_ways;
  way.latency = rules.latency;
  for (network::SteppedCollective& call : calls) {
    std::sort(call.nodes.begin(), call.nodes.end());
    call.by_dimension = way;
  }
  network::LevelRules levels = network::level_rules(cluster, protocol, kAlgorithm);
  levels.base = rules.base;
  MessageFlows made;
  made.algorithm = kAlgorithm;
  made.chunks = way.schedule.chunks;
  note_times(routes.topology(), levels, network::run_collectives(routes, levels.levels, calls), made);
  return made;
}

std::string refusal_by_dimension(const hardware::Cluster& cluster, Collective collective, std::uint32_t groups) {
  const auto shape = shape_of_groups(cluster, groups);
  if (!shape) {
    return fmt::format("hierarchical: the members of {} groups are not equally many along each dimension", groups);
  }
  constexpr auto kAlgorithm = CollectiveAlgorithm::hierarchical;
  if (!network::Fabric(cluster).schedule(collective, Bytes(1), *shape, kAlgorithm).phases.empty()) { return {}; }
  return "hierarchical: valid operations: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast";
}

std::string protocol_name(const hardware::Cluster& cluster, Collective collective, Bytes bytes,
                          CollectiveAlgorithm algorithm) {
  const network::Price price = network::Fabric(cluster).price(collective, bytes, everyone(cluster), algorithm);
  return std::isfinite(price.time.value()) ? std::string(price.protocol) : std::string();
}

}  // namespace

std::string refusal_of(const hardware::Cluster& cluster, Collective collective, CollectiveAlgorithm algorithm,
                       std::uint32_t groups) {
  const auto members = static_cast<std::uint32_t>(cluster.devices);
  if (members % groups != 0 || groups == members) {
    return fmt::format("{} groups: must divide the {} ranks, with at least 2 ranks in a group", groups, members);
  }
  if (algorithm == CollectiveAlgorithm::automatic) { return {}; }
  if (algorithm == CollectiveAlgorithm::hierarchical) { return refusal_by_dimension(cluster, collective, groups); }
  if (algorithm != CollectiveAlgorithm::in_switch) {
    return network::refusal(network::member_schedule(collective, algorithm, members / groups));
  }
  const hardware::Topology topology = hardware::build(*cluster.topology);
  const auto devices = devices_of(cluster, parallel::rank_order(cluster), members);
  if (has_one_switch(cluster, topology, collective, devices)) {
    return network::refusal(network::member_schedule(collective, algorithm, members));
  }
  if (auto refusal = network::tree_refusal(collective); !refusal.empty()) { return refusal; }
  if (!network::switch_tree(topology, devices)) {
    return fmt::format("in_switch needs switches that lead to all {} devices", members);
  }
  const std::uint64_t messages = groups * network::message_count(network::member_schedule(
                                              collective, network::usual_algorithm(collective), members / groups));
  if (cluster.topology->in_switch && messages > network::kMostHeldMessages) {
    return fmt::format(
        "in_switch with limits: groups that the switches do not serve would have {} messages; at most {}", messages,
        network::kMostHeldMessages);
  }
  return {};
}

MessageFlows simulate_messages(const hardware::Cluster& cluster, Collective collective, Bytes bytes,
                               CollectiveAlgorithm algorithm, std::vector<double> pair_bytes, std::uint32_t groups,
                               std::int64_t chunks) {
  if (algorithm == CollectiveAlgorithm::automatic) { algorithm = network::usual_algorithm(collective); }
  const auto members = static_cast<std::uint32_t>(cluster.devices);
  const hardware::Topology topology = hardware::build(*cluster.topology);
  hardware::Routes routes(topology);
  network::SteppedCollective call;
  call.nodes = devices_of(cluster, parallel::rank_order(cluster), members);
  const bool one_switch = algorithm == CollectiveAlgorithm::in_switch && groups == 1 &&
                          has_one_switch(cluster, topology, collective, call.nodes);
  const bool in_trees = algorithm == CollectiveAlgorithm::in_switch && !one_switch;
  const bool by_dimension = algorithm == CollectiveAlgorithm::hierarchical;
  call.schedule = network::member_schedule(
      collective, in_trees || by_dimension ? network::usual_algorithm(collective) : algorithm, members);
  if (one_switch) { call.nodes.push_back(common_switch(topology, call.nodes)); }
  if (collective != Collective::barrier) {
    call.block_bytes = bytes.value() / static_cast<double>(network::block_count(call.schedule));
  }
  call.pair_bytes = std::move(pair_bytes);
  std::vector<network::SteppedCollective> calls = groups == 1 ? std::vector{call} : calls_of(call, groups);
  if (by_dimension) { return run_by_dimension(cluster, routes, std::move(calls), collective, bytes, chunks); }
  MessageFlows made;
  made.algorithm = algorithm;
  const std::string protocol = protocol_name(cluster, collective, bytes, algorithm);
  if (in_trees) {
    network::LevelRules rules = network::level_rules(cluster, protocol, CollectiveAlgorithm::in_switch);
    const network::LevelRules others = network::level_rules(cluster, protocol, call.schedule.algorithm);
    const SwitchRun run = switch_run(cluster, topology, calls, bytes);
    made.note = run.note;
    if (run.calls.trees.empty()) { made.algorithm = call.schedule.algorithm; }
    if (!run.calls.others.empty()) { rules.base = std::max(rules.base, others.base); }
    note_times(topology, rules, network::run_trees(routes, rules.levels, others.levels, run.calls, run.limits), made);
    return made;
  }
  const bool is_ring = call.schedule.algorithm == CollectiveAlgorithm::ring && goes_round(collective);
  if (is_ring && groups == 1 && topology.has_scale_up && cluster.devices > cluster.node_size()) {
    calls = rings_of(call, static_cast<std::uint32_t>(cluster.node_size()));
  }
  const network::LevelRules rules = network::level_rules(cluster, protocol, call.schedule.algorithm);
  note_times(topology, rules, network::run_collectives(routes, rules.levels, calls), made);
  return made;
}

}  // namespace orrery::simulate
