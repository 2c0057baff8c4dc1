// Collectives in a switch under ASTRA-sim's rules, after its branch Chakra-saeed-tmp (April 2023; no release has them).
// The switch is the last rank of the network, the group all others. Every member sends one message to the switch and
// gets one back; the switch answers when all have arrived.
#include "orrery/simulate/phase_runner.hpp"

namespace orrery::simulate {

namespace {

constexpr std::uint64_t kReductionNs = 100;  // of the switch, whatever the size
// Continuation::extra of a message to the switch, and of one from it.
constexpr std::uint32_t kToSwitch = 1, kFromSwitch = 2;

bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter;
}

}  // namespace

// Messages have no endpoint delay.
void PhaseRunner::start_in_switch(std::uint32_t id) {
  const Chunk& chunk = chunks_[id];
  const ChunkPhase& phase = *chunk.current;
  const std::uint32_t hub = job_.network.ranks() - 1;
  send(chunk, {hub, hub, kNone, kToSwitch}, phase.message, network_.flight_ns(chunk.rank, hub, phase.message));
  expect(id, hub, phase.returned);
}

// A member expects its answer since it has sent: the answer ends its phase.
std::uint32_t PhaseRunner::arrive_in_switch_form(const Message& message, std::uint32_t group, std::uint32_t number) {
  if (message.owner.extra == kToSwitch) {
    arrive_at_switch(group, number);
    return kNone;
  }
  const std::uint32_t id = chunks_.find(message.target, group, number);
  --chunks_[id].channels.balance(message.source, message.bytes);
  return id;
}

void PhaseRunner::arrive_at_switch(std::uint32_t group, std::uint32_t number) {
  const auto arrived = in_switch_.try_emplace({group, number}, 0).first;
  const GroupMembers& members = chunks_.group(group);
  if (++arrived->second < members.places.size()) { return; }
  in_switch_.erase(arrived);
  const std::uint32_t first = members.places.front().first;
  const std::uint32_t id = chunks_.find(first, group, number);
  if (reduces(chunks_[id].current->collective)) {
    return events_.after(first, kReductionNs, {EventKind::switch_reduced, 0, first, id, 0});
  }
  answer_from_switch(id);
}

// `id`: the chunk of the first member.
void PhaseRunner::answer_from_switch(std::uint32_t id) {
  const std::uint64_t bytes = chunks_[id].current->returned;
  const std::uint32_t hub = job_.network.ranks() - 1;
  for (const auto& [rank, place] : chunks_.group(chunks_[id].group).places) {
    const Continuation owner{Continuation::Kind::none, 0, kNone, kFromSwitch};
    const Message answer{bytes, tag_of(chunks_[id]), hub, rank, owner, 0, hub, kNone};
    network_.depart(network_.add(answer), network_.flight_ns(hub, rank, bytes));
  }
}

}  // namespace orrery::simulate
