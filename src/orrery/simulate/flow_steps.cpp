// Collectives of a job on a topology, message by message.
#include "orrery/network/names.hpp"
#include "orrery/simulate/flow_machine.hpp"
#include "orrery/simulate/rate.hpp"
#include "orrery/simulate/stop.hpp"

namespace orrery::simulate {

// Calls in switches, those whose chunks choose an order, and those of the kind that has ports of its own are whole.
bool FlowMachine::goes_by_message(std::uint32_t number) const {
  if (!stepped_ || job_.chunk_order || collectives_[number].way != nullptr) { return false; }
  const NodeTask& task = match_.all()[number].task;
  const FlowGroup& group = flow_job_.groups[task.group];
  const bool has_bytes = task.amount > 0 || task.collective == Collective::barrier;
  return has_bytes && group.shape.size() > 1 && apart_ != group.kind;
}

void FlowMachine::start_messages(std::uint32_t number) {
  const NodeTask& task = match_.all()[number].task;
  const network::Group& shape = flow_job_.groups[task.group].shape;
  const Bytes bytes = whole_buffer(task);
  CollectiveRun& run = collectives_[number];
  run.by_message = true;
  slow_kernels(run, task, true);
  run.algorithm = stepped_->start({number, task.collective, bytes, flow_job_.algorithm, shape, members_of(task.group)},
                                  rounds_.now());
  schedule_departures();
}

void FlowMachine::schedule_departures() {
  for (const SteppedCalls::Departure& departure : stepped_->take_departures()) {
    if (departure.time > kMostTime) { throw TooLong{}; }
    rounds_.at(departure.time, {PhysicalEventKind::departure, departure.message, 0});
  }
}

// Fills demands_ with the links of the route; the time of the message alone.
std::uint64_t FlowMachine::demand_message(std::uint32_t message) {
  SteppedCalls::Flow flow = stepped_->flow_of(message);
  const auto ports = 2 * static_cast<std::uint32_t>(job_.rank_graphs.size());
  demands_.clear();
  for (const PortDemand& link : flow.links) {
    const std::uint32_t level = topology_->topology().links[link.port].level;
    demands_.push_back({(ports + link.port) * (dimensions_ + 1) + level, link.share});
  }
  return flow.alone;
}

void FlowMachine::depart(std::uint32_t message) {
  const std::uint64_t alone = demand_message(message);
  if (alone == 0) { return arrive(message); }
  const SteppedCalls::Ends ends = stepped_->ends_of(message);
  if (!counts_.empty()) {
    for (const auto& [rank, in] : {std::pair{ends.from, false}, {ends.to, true}}) {
      if (rank == kNone) { continue; }
      PortCount& count = counts_[port(rank, ends.level, in)];
      count.bytes += ends.bytes;
      ++count.messages;
    }
  }
  const NodeTask& task = match_.all()[stepped_->number_of(message)].task;
  start_flow(alone, {flow_job_.groups[task.group].kind, 1}, {.stepped = message});
}

void FlowMachine::arrive(std::uint32_t message) {
  const std::uint32_t ended = stepped_->arrive(message, rounds_.now());
  schedule_departures();
  if (ended != kNone) { end_collective(ended); }
}

}  // namespace orrery::simulate
