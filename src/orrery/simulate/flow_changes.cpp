// Links that change while a job runs.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "orrery/simulate/flow_machine.hpp"
#include "orrery/simulate/flow_time.hpp"

namespace orrery::simulate {

void FlowMachine::change_link(std::uint32_t number) {
  const FlowJob::PortChange& change = flow_job_.changes[number];
  const auto ranks = static_cast<std::uint32_t>(job_.rank_graphs.size());
  const std::uint32_t changed = change.link == kNone ? port(change.rank, change.dimension, change.in)
                                                     : (2 * ranks + change.link) * (dimensions_ + 1) +
                                                           topology_->topology().links[change.link].level;
  flows_.set_capacity(changed, static_cast<FlowShare>(std::llround(change.part * static_cast<double>(kWholeShare))));
  if (change.link == kNone || change.part > 0 || !is_last_of_link(number)) { return; }
  topology_->close(change.link);
  ++routes_;
  reroute(changed);
}

// Whether the link keeps the bandwidth of this change until the end.
bool FlowMachine::is_last_of_link(std::uint32_t number) const {
  const FlowJob::PortChange& change = flow_job_.changes[number];
  for (std::uint32_t i = 0; i < flow_job_.changes.size(); ++i) {
    const FlowJob::PortChange& other = flow_job_.changes[i];
    if (other.link != change.link || other.part <= 0) { continue; }
    if (other.time > change.time || (other.time == change.time && i > number)) { return false; }
  }
  return true;
}

// What is left of calls and messages on the port of a failed link takes the routes that avoid it.
void FlowMachine::reroute(std::uint32_t failed) {
  std::vector<std::uint32_t> flows = flows_.users(failed);
  std::sort(flows.begin(), flows.end());
  for (const std::uint32_t flow : flows) { reroute_flow(flow); }
}

void FlowMachine::reroute_flow(std::uint32_t flow) {
  const Use use = live_[flow].use;
  if (use.stepped != kNone) {
    const std::uint64_t alone = demand_message(use.stepped);
    flows_.replace(rounds_.now(), flow, alone, std::exchange(demands_, {}));
    return;
  }
  std::vector<PortDemand> demands;
  const auto add = [&](std::uint32_t rank, const Load& load) {
    demands.push_back({port(rank, load.dimension, false), load.out});
    demands.push_back({port(rank, load.dimension, true), load.in});
  };
  const Call* call = nullptr;
  if (use.collective != kNone) {
    const CollectiveRun& run = collectives_[use.collective];
    if (run.way != nullptr) { return; }  // in switches: waits for its tree
    call = &collective_call(match_.all()[use.collective].task);
    for (const auto& [rank, node] : run.members) {
      for (const Load& load : call->loads) { add(rank, load); }
    }
  } else {
    const Continuation& sender = messages_in_flight_[use.message].sender;
    const NodeTask& task = job_.rank_graphs[sender.rank].nodes[sender.ref];
    const RankBinding::Peer peer = job_.rank_graphs.peer(sender.rank, task);
    call = &message_call(sender.rank, peer, task.amount);
    const Load& load = call->loads.front();
    demands = {{port(sender.rank, load.dimension, false), load.out}, {port(peer.rank, load.dimension, true), load.in}};
  }
  demands.insert(demands.end(), call->links.begin(), call->links.end());
  flows_.replace(rounds_.now(), flow, call->time, demands);
}

// At the end of the run: the first flow that waits for a link that does not come back.
void FlowMachine::stop_at_stalled() const {
  const Use& use = live_[*stalled_.begin()].use;
  const auto stop = [&](std::uint32_t rank, std::uint32_t node) {
    throw Stop{rank, job_.rank_graphs[rank].nodes[node].id,
               fmt::format("never ends: a link that it uses fails and does not come back ({} such {})", stalled_.size(),
                           stalled_.size() == 1 ? "call or message" : "calls and messages")};
  };
  const std::uint32_t collective = use.stepped == kNone ? use.collective : stepped_->number_of(use.stepped);
  if (collective != kNone) {
    const auto& [rank, node] = collectives_[collective].members.front();
    stop(rank, node);
  }
  if (use.message != kNone) {
    const Continuation& sender = messages_in_flight_[use.message].sender;
    stop(sender.rank, sender.ref);
  }
  stop(use.memory_rank, use.memory_node);
  throw_internal_error("a flow of a node", __FILE__, __LINE__);
}

}  // namespace orrery::simulate
