#include "orrery/simulate/physical_machine.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace orrery::simulate {

namespace {

std::uint32_t server_of(const Job& job, std::uint32_t rank) { return job.memory.server(rank).value_or(rank); }

}  // namespace

std::uint32_t PhysicalGroup::position(std::uint32_t rank) const {
  if (ranks == nullptr) { return rank; }
  return std::lower_bound(places.begin(), places.end(), std::pair{rank, 0U})->second;
}

PhysicalMachine::PhysicalMachine(const Job& job)
    : job_(job),
      count_(job.network.ranks()),
      links_(job.network, job.system.local_memory_gb, *this),
      endpoint_(job.system.endpoint_delay_ns * kPicosecondsPerNs),
      ranks_(count_),
      groups_(job.groups.size() + 1),
      collective_of_(count_) {
  if (job.system.endpoint_delay_ns > kMostTime / kPicosecondsPerNs) { throw TooLong{}; }
  groups_[kWholeMachine].extents = extents_of(job.network, nullptr);
  for (std::uint32_t i = 0; i < job.groups.size(); ++i) {
    PhysicalGroup& group = groups_[i + 1];
    group.ranks = &job.groups[i].ranks;
    for (std::uint32_t place = 0; place < group.ranks->size(); ++place) {
      group.places.emplace_back((*group.ranks)[place], place);
    }
    std::sort(group.places.begin(), group.places.end());
    group.extents = extents_of(job.network, group.ranks);
    const auto size = static_cast<std::uint32_t>(group.ranks->size());
    group.is_line = differing_dimensions(job.network, *group.ranks) > 1 && group.extents.size() == 1 &&
                    group.extents.front().members == size;
  }
  for (std::uint32_t i = 0; i < count_; ++i) {
    PhysicalRank& rank = ranks_[i];
    const Program& program = job.programs[i];
    rank.parents.reserve(program.nodes.size());
    for (const Work& work : program.nodes) { rank.parents.push_back(work.parents); }
    rank.runs.assign(program.nodes.size(), false);
    if (job.spans) { rank.starts.assign(program.nodes.size(), 0); }
  }
  if (job.memory.arrangement != memory::Arrangement::NO_MEMORY_EXPANSION && count_ > 0) {
    servers_.resize(server_of(job, count_ - 1) + 1);
  }
  know_collectives();
}

void PhysicalMachine::run() {
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    const Program& program = job_.programs[rank];
    for (std::uint32_t node = 0; node < program.nodes.size(); ++node) {
      if (program.nodes[node].parents == 0) { free(rank, node); }
    }
    touch(rank);
  }
  rounds_.run([this](const PhysicalHappening& event) { handle(event); }, [this] { settle(); },
              [this](const PhysicalHappening& event, int distance) { look_ahead(event, distance); });
}

// Fetches what events to come will touch; most of a large machine is far from the processor.
void PhysicalMachine::look_ahead(const PhysicalHappening& event, int distance) const {
  if (event.what == PhysicalEvent::wake) { return links_.fetch(event.ref, distance); }
  if (event.what > PhysicalEvent::reduced) { return; }
  const Packet& packet = links_[event.ref];
  if (distance > 1) {
    __builtin_prefetch(&packet);
  } else if (packet.of_collective && event.what != PhysicalEvent::ask) {
    __builtin_prefetch(collectives_[packet.owner].seats.data() + packet.to);
  }
}

void PhysicalMachine::handle(const PhysicalHappening& event) {
  switch (event.what) {
    case PhysicalEvent::ask: return links_.ask(event.ref, rounds_.now());
    case PhysicalEvent::delivered: return deliver(event.ref);
    case PhysicalEvent::reduced: return count(event.ref);
    case PhysicalEvent::wake: return links_.wake(event.ref, rounds_.now());
    case PhysicalEvent::left: return chunk_over(event.ref, event.extra);
    case PhysicalEvent::node_over: return end_later(event.ref, event.extra);
    case PhysicalEvent::custom_over: return custom_ended_.emplace_back(event.ref, event.extra), void();
    case PhysicalEvent::asks_memory: return ask_memory(event.ref);
    case PhysicalEvent::memory: return leave_memory(event.ref, event.extra);
  }
}

// Ranks first: what they send in this round asks for its link in this round.
void PhysicalMachine::settle() {
  do {
    // Of one run in the order of its steps.
    const auto ended = std::exchange(custom_ended_, {});
    for (const auto& [run, step] : std::set(ended.begin(), ended.end())) { custom_step_over(run, step); }
    for (std::size_t i = 0; i < dirty_.size(); ++i) { settle(dirty_[i]); }
    dirty_.clear();
  } while (!custom_ended_.empty());
  links_.grant(rounds_.now());
}

// ---- what links say ------------------------------------------------------------------------------------------------

void PhysicalMachine::asks_at(std::uint64_t time, std::uint32_t packet) {
  rounds_.at(time, {PhysicalEvent::ask, packet, 0});
}

// Messages of collectives pass the endpoint before they are used; a switch has none.
void PhysicalMachine::arrives_at(std::uint64_t time, std::uint32_t packet) {
  const Packet& told = links_[packet];
  rounds_.at(time + (told.of_collective && !told.to_switch ? endpoint_ : 0), {PhysicalEvent::delivered, packet, 0});
}

void PhysicalMachine::reduced_at(std::uint64_t time, std::uint32_t packet) {
  rounds_.at(time, {PhysicalEvent::reduced, packet, 0});
}

void PhysicalMachine::wakes_at(std::uint64_t time, std::uint32_t link) {
  rounds_.at(time, {PhysicalEvent::wake, link, 0});
}

void PhysicalMachine::will_leave(const Packet& packet) const {
  if (packet.of_collective && !packet.on_its_way) {
    __builtin_prefetch(collectives_[packet.owner].seats.data() + packet.from);
  }
}

void PhysicalMachine::leaves_at(std::uint64_t time, const Packet& packet) {
  if (!packet.of_collective) { return; }
  Seat& seat = collectives_[packet.owner].seats[packet.from];
  seat.left_at = std::max(seat.left_at, time);
  if (--seat.not_left == 0 && seat.done) { rounds_.at(seat.left_at, {PhysicalEvent::left, packet.owner, packet.from}); }
}

// ---- what ranks do with their time ---------------------------------------------------------------------------------

void PhysicalMachine::change(std::uint32_t number, Activity activity, int by) {
  PhysicalRank& rank = ranks_[number];
  rank.time[rank.activities()] += rounds_.now() - rank.since;
  rank.since = rounds_.now();
  rank.active[static_cast<std::size_t>(activity)] += static_cast<std::uint32_t>(by);
}

}  // namespace orrery::simulate
