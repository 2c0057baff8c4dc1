// What the time of a node consists of, for results::CriticalPath.
#include <algorithm>

#include <fmt/format.h>

#include "orrery/simulate/flow_machine.hpp"

namespace orrery::simulate {

namespace {

constexpr const char* kShared = "sharing of ports and links";

// A part of `time`, in proportion to shares.
std::uint64_t part_of(std::uint64_t time, FlowShare share, FlowShare sum) {
  return static_cast<std::uint64_t>(static_cast<double>(time) * static_cast<double>(share) / static_cast<double>(sum));
}

}  // namespace

// Null: a call that has not run.
const FlowMachine::Call* FlowMachine::known_call(std::uint32_t rank, std::uint32_t node) const {
  const NodeTask task = job_.rank_graphs.task(rank, node);
  if (task.act == Act::collective) {
    if (const auto* way = collectives_[match_.collective_of(rank, node)].way) { return &switch_calls_.at(way); }
    const auto found = calls_.find({task.group, task.collective, task.amount});
    return found == calls_.end() ? nullptr : &found->second;
  }
  const bool sends = task.act == Act::send;
  const std::uint32_t from = sends ? rank : task.peer, to = sends ? task.peer : rank;
  const auto found = transfers_.find({task.amount, task.dimensions, topology_ ? from : 0, topology_ ? to : 0});
  return found == transfers_.end() ? nullptr : &found->second;
}

// Bytes over ports take what is neither latency nor reduction. A collective uses its dimensions one after the other, or
// at once: the time is divided by how long their ports are busy. A message waits for the busiest.
NodeParts FlowMachine::parts_of_call(const Call& call, bool is_message) const {
  std::vector<FlowShare> busy(dimensions_, 0);
  for (const Load& load : call.loads) { busy[load.dimension] = std::max({busy[load.dimension], load.out, load.in}); }
  NodeParts parts;
  parts.rest = kShared;
  FlowShare most = 0;
  const auto ports = 2 * static_cast<std::uint32_t>(job_.rank_graphs.size());
  for (const PortDemand& link : call.links) {
    FlowShare& level = busy[link.port % (dimensions_ + 1)];
    level = std::max(level, link.share);
    if (link.share <= most) { continue; }
    most = link.share;
    parts.link = link.port / (dimensions_ + 1) - ports;
  }
  if (is_message && !busy.empty()) {
    const auto busiest = std::max_element(busy.begin(), busy.end());
    for (FlowShare& share : busy) { share = &share == &*busiest ? share : 0; }
  }
  FlowShare sum = 0;
  for (const FlowShare share : busy) { sum += share; }
  const std::uint64_t fixed = std::min(call.time, call.latency + call.reduction);
  for (std::size_t i = 0; i < busy.size(); ++i) {
    if (busy[i] == 0) { continue; }
    parts.parts.emplace_back(fmt::format("bandwidth of {}", flow_job_.cluster.dimensions[i].name),
                             part_of(call.time - fixed, busy[i], sum));
  }
  parts.parts.emplace_back("reduction of arriving data", call.reduction);
  std::uint64_t left = call.time;
  for (const auto& [name, time] : parts.parts) { left -= std::min(left, time); }
  parts.parts.emplace_back("latency", left);  // with what rounding leaves
  return parts;
}

NodeParts FlowMachine::parts_of(std::uint32_t rank, std::uint32_t node) const {
  const NodeTask task = job_.rank_graphs.task(rank, node);
  switch (task.act) {
    case Act::busy: {
      if (task.slot == Slot::gpu) { return {{{"compute", task.amount}}, "kernels beside communication"}; }
      return {{}, activity_name(task)};
    }
    case Act::memory: {
      const hardware::SecondTier& tier = flow_job_.cluster.second_tier;
      constexpr double kPicoseconds = 1e12;
      const auto [level, bytes] = pool_.slowest(rank, task);
      return {{{"bandwidth of " + level, static_cast<std::uint64_t>(bytes.value() * kPicoseconds)},
               {"latency", static_cast<std::uint64_t>(tier.latency.value() * kPicoseconds)}},
              kShared};
    }
    case Act::collective:
    case Act::send:
    case Act::receive: {
      if (task.act == Act::collective && collectives_[match_.collective_of(rank, node)].by_message) {
        return {{}, "messages of its steps"};
      }
      const Call* call = known_call(rank, node);
      return call == nullptr ? NodeParts{{}, activity_name(task)} : parts_of_call(*call, task.act != Act::collective);
    }
    case Act::no_op:
    case Act::metadata: break;
  }
  return {{}, activity_name(task)};
}

std::pair<std::string, std::string> FlowMachine::ends_of_link(std::uint32_t link) const {
  const hardware::TopologyLink& found = topology_->topology().links[link];
  return {topology_->topology().nodes[found.from].name, topology_->topology().nodes[found.to].name};
}

}  // namespace orrery::simulate
