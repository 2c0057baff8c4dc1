// Links that change while a job runs.
#include <cmath>

#include <fmt/format.h>

#include "orrery/simulate/flow_machine.hpp"
#include "orrery/simulate/flow_time.hpp"

namespace orrery::simulate {

void FlowMachine::change_link(const FlowJob::PortChange& change) {
  const auto ranks = static_cast<std::uint32_t>(job_.rank_graphs.size());
  const std::uint32_t number = change.link == kNone ? port(change.rank, change.dimension, change.in)
                                                    : (2 * ranks + change.link) * (dimensions_ + 1) +
                                                          topology_->topology().links[change.link].level;
  flows_.set_capacity(number, static_cast<FlowShare>(std::llround(change.part * static_cast<double>(kWholeShare))));
}

// At the end of the run: the first flow that waits for a link that does not come back.
void FlowMachine::stop_at_stalled() const {
  const Use& use = live_[*stalled_.begin()].use;
  const auto stop = [&](std::uint32_t rank, std::uint32_t node) {
    throw Stop{rank, job_.rank_graphs[rank].nodes[node].id,
               fmt::format("never ends: a link that it uses fails and does not come back ({} such {})", stalled_.size(),
                           stalled_.size() == 1 ? "call or message" : "calls and messages")};
  };
  if (use.collective != kNone) {
    const auto& [rank, node] = collectives_[use.collective].members.front();
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
