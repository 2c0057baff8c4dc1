// Calls that the switches of a topology carry out, and those whose chunks choose the order of the dimensions.
#include <algorithm>
#include <numeric>

#include "orrery/simulate/chunk_calls.hpp"
#include "orrery/simulate/flow_machine.hpp"
#include "orrery/simulate/flow_time.hpp"

namespace orrery::simulate {

// Fills in the call if its chunks choose the order of the dimensions.
bool FlowMachine::order_chunks(const NodeTask& task, Call& call) {
  if (!job_.chunk_order || task.amount == 0) { return false; }
  const auto made = chunked_call(flow_job_.cluster, *job_.chunk_order, task.collective, whole_buffer(task),
                                 flow_job_.groups[task.group].shape);
  if (!made) { return false; }
  has_ordered_ = true;
  call.algorithm = CollectiveAlgorithm::ring;
  call.time = picoseconds(made->time);
  call.latency = picoseconds(made->latency);
  for (const ChunkedCall::Load& load : made->loads) {
    const FlowShare share = share_of(load.busy, made->time);
    const auto sent = static_cast<std::uint64_t>(load.sent.value());
    call.loads.push_back({static_cast<std::uint16_t>(load.dimension), share, share, sent, sent});
  }
  return true;
}

// The members of a group.
std::vector<std::uint32_t> FlowMachine::members_of(std::uint32_t group) const {
  if (group != kWholeMachine) { return job_.groups[group - 1].ranks; }
  std::vector<std::uint32_t> all(job_.rank_graphs.size());
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

const SwitchCalls::Asked& FlowMachine::asked_of(const NodeTask& task, Seconds otherwise) {
  const auto [found, is_new] = asked_.try_emplace({task.group, task.collective, task.amount});
  SwitchCalls::Asked& asked = found->second;
  if (!is_new) { return asked; }
  const network::Group& shape = flow_job_.groups[task.group].shape;
  const Bytes bytes = whole_buffer(task);
  asked = {task.group, task.collective, bytes, {}, {}, otherwise};
  for (const std::uint32_t rank : members_of(task.group)) { asked.devices.push_back(flow_job_.devices[rank]); }
  const network::Price price = fabric_.price(task.collective, bytes, shape, CollectiveAlgorithm::in_switch);
  if (price.time < infinite<Seconds>()) { asked.protocol = price.protocol; }
  return asked;
}

// The call of a collective that starts: in switches where the topology's switches reduce and that is shorter.
const FlowMachine::Call& FlowMachine::starting_call(std::uint32_t number) {
  const NodeTask& task = match_.all()[number].task;
  const Call& usual = collective_call(task);
  const bool is_free = flow_job_.algorithm == CollectiveAlgorithm::automatic;
  if (!switches_ || task.amount == 0) { return usual; }
  if (!is_free && flow_job_.algorithm != CollectiveAlgorithm::in_switch) { return usual; }
  const SwitchCalls::Asked& asked =
      asked_of(task, is_free && usual.time > 0 ? seconds(usual.time) : infinite<Seconds>());
  const SwitchCalls::Way* way = switches_->take(asked);
  if (way == nullptr) { return usual; }
  collectives_[number].way = way;
  return switch_call(*way, asked.devices.size());
}

// The links of the tree are those that count; the ports of its devices have their mean.
const FlowMachine::Call& FlowMachine::switch_call(const SwitchCalls::Way& way, std::size_t members) {
  const auto [found, is_new] = switch_calls_.try_emplace(&way);
  Call& call = found->second;
  if (!is_new) { return call; }
  call.algorithm = CollectiveAlgorithm::in_switch;
  call.time = picoseconds(way.time);
  call.latency = picoseconds(way.base + way.latency);
  const hardware::Topology& topology = topology_->topology();
  const auto ports = 2 * static_cast<std::uint32_t>(job_.rank_graphs.size());
  double out = 0, in = 0;
  std::uint8_t dimension = 0;
  for (const SwitchCalls::LinkTime& load : way.links) {
    const hardware::TopologyLink& link = topology.links[load.link];
    call.links.push_back({(ports + load.link) * (dimensions_ + 1) + link.level, share_of(load.time, way.time)});
    if (link.from < topology.devices) { out += load.bytes, dimension = link.level; }
    if (link.to < topology.devices) { in += load.bytes; }
  }
  out /= static_cast<double>(members);
  in /= static_cast<double>(members);
  const BytesPerSecond rate = flow_job_.cluster.dimensions[dimension].rate() * way.payload;
  call.loads.push_back({dimension, share_of(Bytes(out) / rate, way.time), share_of(Bytes(in) / rate, way.time),
                        static_cast<std::uint64_t>(out), static_cast<std::uint64_t>(in)});
  return call;
}

}  // namespace orrery::simulate
