#include "orrery/simulate/physical_collectives.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "orrery/simulate/stop.hpp"

namespace orrery::simulate {

namespace {

// Chunks go round rings both ways in turn.
network::Steps of_chunk(const PhysicalPhase& phase, std::uint32_t chunk) {
  network::Steps steps = phase.steps;
  steps.backward = chunk % 2 == 1;
  return steps;
}

std::uint32_t member_of(const PhysicalPhase& phase, std::uint32_t seat, std::uint32_t ranks) {
  return seat >= ranks ? phase.steps.members : phase.coordinate(seat);
}

bool takes_part(const PhysicalPhase& phase, std::uint32_t seat, std::uint32_t ranks) {
  const std::uint32_t position = seat < ranks ? seat : phase.first_of_line(seat - phase.first_switch);
  return phase.takes_part(position);
}

std::uint32_t receives(const PhysicalPhase& phase, std::uint32_t chunk, std::uint32_t seat, std::uint32_t ranks,
                       std::uint32_t step) {
  if (!takes_part(phase, seat, ranks)) { return 0; }
  return network::receive_count(of_chunk(phase, chunk), member_of(phase, seat, ranks), step - phase.first_step);
}

}  // namespace

// ---- what there is -------------------------------------------------------------------------------------

PhysicalCollectives::PhysicalCollectives(const SimulationJob& job, PhysicalRounds& rounds, Links& links,
                                         PhysicalNodes& nodes)
    : job_(job),
      rounds_(rounds),
      links_(links),
      nodes_(nodes),
      count_(job.network.ranks()),
      groups_(job.groups.size() + 1),
      collective_of_(count_) {
  if (job.system.endpoint_delay_ns > kMostTime / kPicosecondsPerNs) { throw TooLong{}; }
  make_groups();
  match_collectives();
}

std::uint32_t PhysicalGroup::position(std::uint32_t rank) const {
  if (ranks == nullptr) { return rank; }
  return std::lower_bound(places.begin(), places.end(), std::pair{rank, 0U})->second;
}

void PhysicalCollectives::make_groups() {
  groups_[kWholeMachine].extents = extents_of(job_.network, nullptr);
  for (std::uint32_t i = 0; i < job_.groups.size(); ++i) {
    PhysicalGroup& group = groups_[i + 1];
    group.ranks = &job_.groups[i].ranks;
    for (std::uint32_t place = 0; place < group.ranks->size(); ++place) {
      group.places.emplace_back((*group.ranks)[place], place);
    }
    std::sort(group.places.begin(), group.places.end());
    group.extents = extents_of(job_.network, group.ranks);
    const auto size = static_cast<std::uint32_t>(group.ranks->size());
    group.is_line = differing_dimensions(job_.network, *group.ranks) > 1 && group.extents.size() == 1 &&
                    group.extents.front().members == size;
  }
}

// Ranks meet in the k-th collective of a kind, size, group and choice of dimensions by the order of ids in their
// graphs, whatever the order in which they come to them.
void PhysicalCollectives::match_collectives() {
  using Key = std::tuple<std::uint32_t, Collective, std::uint64_t, std::uint16_t, std::uint16_t, std::uint32_t>;
  std::map<Key, std::uint32_t> known;
  std::map<Key, std::uint32_t> counts;
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    counts.clear();
    const auto& nodes = job_.rank_graphs[rank].nodes;
    for (std::uint32_t node = 0; node < nodes.size(); ++node) {
      const NodeTask& task = nodes[node];
      if (task.act != Act::collective) { continue; }
      Key key{task.group, task.collective, task.amount, task.dimensions, task.custom, 0};
      std::get<5>(key) = counts[key]++;
      const auto [found, is_new] = known.try_emplace(key, static_cast<std::uint32_t>(collectives_.size()));
      if (is_new) {
        PhysicalCollective& made = collectives_.emplace_back();
        made.task = task;
        made.ranks =
            task.group == kWholeMachine ? count_ : static_cast<std::uint32_t>(job_.groups[task.group - 1].ranks.size());
        const auto own = job_.system.custom_of_node.find(task.id);
        const auto* general =
            std::get_if<std::string>(&job_.system.algorithms[static_cast<std::size_t>(task.collective)]);
        made.custom = own != job_.system.custom_of_node.end() ? own->second : general != nullptr ? *general : "";
      }
      ++collectives_[found->second].has;
      collective_of_[rank].emplace_back(node, found->second);
    }
  }
}

std::uint32_t PhysicalCollectives::collective_of(std::uint32_t rank, std::uint32_t node) const {
  const auto& list = collective_of_[rank];
  return std::lower_bound(list.begin(), list.end(), std::pair{node, 0U})->second;
}

std::optional<std::uint32_t> PhysicalCollectives::node_of(std::uint32_t rank, std::uint32_t collective) const {
  for (const auto& [node, number] : collective_of_[rank]) {
    if (number == collective) { return node; }
  }
  return std::nullopt;
}

// ---- how it is run -------------------------------------------------------------------------------------------------

// The dimensions that take part, each with its algorithm: the system's for the dimension; a flat one takes all ranks as
// one dimension. Broadcasts, for which ASTRA-sim's files have no algorithm, are chains from the first rank of the
// group.
std::vector<Extent> PhysicalCollectives::extents(const NodeTask& task, std::uint32_t rank) const {
  const auto* list =
      std::get_if<std::vector<DimensionAlgorithm>>(&job_.system.algorithms[static_cast<std::size_t>(task.collective)]);
  const std::vector<DimensionAlgorithm> chains(job_.network.dimensions.size());
  if (task.collective == Collective::broadcast && list != nullptr && list->empty()) { list = &chains; }
  if (list == nullptr || list->empty()) { throw Stop{rank, task.id, "has no algorithm"}; }
  const PhysicalGroup& group = groups_[task.group];
  std::vector<Extent> extents;
  const bool whole = task.group == kWholeMachine;
  if (list->front().flat) {
    const auto size = whole ? count_ : static_cast<std::uint32_t>(group.ranks->size());
    if (size > 1) { extents.push_back({0, size, 1, list->front()}); }
    return extents;
  }
  for (Extent extent : group.extents) {
    const bool is_involved = !whole || extent.dimension > 15 || ((task.dimensions >> extent.dimension) & 1U) != 0;
    if (!is_involved) { continue; }
    if (extent.dimension >= list->size()) {
      throw Stop{
          rank, task.id,
          fmt::format("is a collective over dimension {}, but the system file has {} {} for {}; it needs one per "
                      "dimension ({})",
                      extent.dimension, list->size(), list->size() == 1 ? "algorithm" : "algorithms",
                      name_of(task.collective), job_.network.dimensions.size())};
    }
    extent.algorithm = (*list)[extent.dimension];
    extent.algorithm.flat = false;
    const bool has_switch = job_.network.dimensions[extent.dimension].topology == Topology::Switch;
    if (extent.algorithm.method == CollectiveAlgorithm::in_switch && (!has_switch || group.is_line)) {
      throw Stop{rank, task.id, "uses inSwitch, but its ranks are not all connected to one Switch of the network"};
    }
    extents.push_back(extent);
  }
  return extents;
}

const PhysicalSchedule& PhysicalCollectives::schedule(const PhysicalCollective& collective, std::uint64_t chunk,
                                                      std::uint32_t rank, std::uint32_t node) {
  const NodeTask& task = collective.task;
  auto& kept = schedules_[{task.group, static_cast<std::uint8_t>(task.collective), chunk, task.dimensions}];
  if (!kept) {
    auto made = physical_schedule({task.collective, chunk, collective.ranks, extents(task, rank), 0});
    if (!made) { throw Stop{rank, job_.rank_graphs[rank].nodes[node].id, made.error().diagnostics.front().message}; }
    kept = std::make_unique<PhysicalSchedule>(std::move(*made));
  }
  return *kept;
}

// The first rank comes: cuts the collective into chunks, the last one shorter where it does not divide.
void PhysicalCollectives::prepare(PhysicalCollective& collective, std::uint32_t rank, std::uint32_t node) {
  const std::uint64_t bytes = collective.task.amount, splits = job_.system.splits;
  const std::uint64_t chunk = bytes == 0 ? 0 : (bytes - 1) / splits + 1;
  collective.chunks = bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes - 1) / chunk + 1);
  collective.schedule = &schedule(collective, chunk, rank, node);
  collective.last_schedule = &schedule(collective, bytes - (collective.chunks - 1) * chunk, rank, node);
  const std::uint32_t seats = collective.schedule->seats;
  if (std::uint64_t{seats} * collective.chunks >= kNone) {
    throw Stop{rank, job_.rank_graphs[rank].nodes[node].id,
               "has too many chunks on all its ranks (limit: 2^32); lower preferred-dataset-splits"};
  }
  collective.joined.resize(seats);
  collective.seats.resize(std::size_t{seats} * collective.chunks);
  for (const PhysicalPhase& phase : collective.schedule->phases) {
    if (network::parties(phase.steps) == phase.steps.members) { continue; }
    for (std::uint32_t line = 0; line < collective.ranks / phase.steps.members; ++line) {
      const std::uint32_t number = phase.first_switch + line;
      collective.joined[number].priority = std::numeric_limits<std::int32_t>::max();
      for (std::uint32_t i = 0; i < collective.chunks; ++i) {
        Seat& seat = collective.seats[std::size_t{i} * seats + number];
        seat.in = seat.out = phase.first_step;
      }
    }
  }
}

std::uint32_t PhysicalCollectives::note_start(std::uint32_t rank, std::uint32_t node) {
  const std::uint32_t number = collective_of(rank, node);
  PhysicalCollective& collective = collectives_[number];
  collective.last_start = rounds_.now();
  if (collective.begun++ == 0) { collective.first_start = rounds_.now(); }
  return number;
}

void PhysicalCollectives::join(std::uint32_t number, std::uint32_t rank, std::uint32_t node, std::int32_t priority) {
  PhysicalCollective& collective = collectives_[number];
  if (collective.schedule == nullptr) { prepare(collective, rank, node); }
  const std::uint32_t position = groups_[collective.task.group].position(rank);
  collective.joined[position] = {node, priority, collective.chunks};
  const std::uint32_t seats = collective.schedule->seats;
  for (std::uint32_t chunk = 0; chunk < collective.chunks; ++chunk) {
    const std::uint32_t seat = chunk * seats + position;
    accept_held(collective.seats[seat]);
    // The last rank's last chunk ends a collective, which gives its seats back.
    if (!collective.seats.empty()) { advance(number, seat, chunk); }
  }
}

void PhysicalCollectives::end_custom(std::uint32_t number) {
  ++collectives_[number].over;
  collectives_[number].end = rounds_.now();
}

// Packets that came before the rank, in the order in which they came: those that came first are at the end.
void PhysicalCollectives::accept_held(Seat& seat) {
  std::uint32_t held = std::exchange(seat.held, kNone);
  std::uint32_t in_order = kNone;
  while (held != kNone) {
    const std::uint32_t next = links_[held].next;
    links_[held].next = in_order;
    in_order = held;
    held = next;
  }
  while (in_order != kNone) {
    const std::uint32_t next = links_[in_order].next;
    accept(in_order);
    in_order = next;
  }
}

// ---- steps ---------------------------------------------------------------------------------------------------------

// The packet is at its target. One that comes before the target's rank waits for it.
void PhysicalCollectives::deliver(std::uint32_t id) {
  Packet& packet = links_[id];
  PhysicalCollective& collective = collectives_[packet.owner];
  const std::uint32_t seat = packet.to - packet.order.chunk * static_cast<std::uint32_t>(collective.joined.size());
  if (seat >= collective.ranks) {
    Joined& joined = collective.joined[seat];
    joined.priority = std::min(joined.priority, packet.order.priority);
    return count(id);
  }
  if (collective.joined[seat].node == kNone) {
    Seat& waiting = collective.seats[packet.to];
    packet.next = waiting.held;
    waiting.held = id;
    return;
  }
  accept(id);
}

void PhysicalCollectives::accept(std::uint32_t id) {
  if (links_[id].reduces && links_.reductions_take_time()) { return links_.reduce(id, rounds_.now()); }
  count(id);
}

// The packet can be used. One of a later step waits for its step.
void PhysicalCollectives::count(std::uint32_t id) {
  Packet& packet = links_[id];
  Seat& seat = collectives_[packet.owner].seats[packet.to];
  if (packet.order.step != seat.in) {
    packet.next = seat.held;
    seat.held = id;
    return;
  }
  ++seat.got;
  const std::uint32_t owner = packet.owner, to = packet.to, chunk = packet.order.chunk;
  links_.give_back(id);
  advance(owner, to, chunk);
}

void PhysicalCollectives::take_held(Seat& seat) {
  std::uint32_t* from = &seat.held;
  while (*from != kNone) {
    const std::uint32_t id = *from;
    if (links_[id].order.step != seat.in) {
      from = &links_[id].next;
      continue;
    }
    *from = links_[id].next;
    links_.give_back(id);
    ++seat.got;
  }
}

void PhysicalCollectives::advance(std::uint32_t number, std::uint32_t which, std::uint32_t chunk) {
  PhysicalCollective& collective = collectives_[number];
  Seat& seat = collective.seats[which];
  if (seat.done) { return; }
  const std::uint32_t at = which - chunk * static_cast<std::uint32_t>(collective.joined.size());
  const PhysicalSchedule& schedule = collective.schedule_of(chunk);
  std::uint32_t end = schedule.step_count;
  if (at >= collective.ranks) {  // a switch takes part in its phase only
    const PhysicalPhase& phase = schedule.phase_of(std::min(seat.in, end - 1));
    end = phase.first_step + phase.step_count;
  }
  while (true) {
    while (seat.out < end && seat.out <= seat.in) {
      send_step(number, which, chunk, schedule.phase_of(seat.out), seat.out);
      ++seat.out;
    }
    if (seat.in == end) { break; }
    if (seat.got < receives(schedule.phase_of(seat.in), chunk, at, collective.ranks, seat.in)) { return; }
    ++seat.in;
    seat.got = 0;
    if (seat.held != kNone) { take_held(seat); }
  }
  end_seat(number, which);
}

void PhysicalCollectives::send_step(std::uint32_t number, std::uint32_t which, std::uint32_t chunk,
                                    const PhysicalPhase& phase, std::uint32_t step) {
  PhysicalCollective& collective = collectives_[number];
  const auto seats = static_cast<std::uint32_t>(collective.joined.size());
  const std::uint32_t at = which - chunk * seats;
  if (!takes_part(phase, at, collective.ranks)) { return; }
  const network::Steps steps = of_chunk(phase, chunk);
  const std::uint32_t member = member_of(phase, at, collective.ranks), local = step - phase.first_step;
  const PhysicalGroup& group = groups_[collective.task.group];
  const bool is_switch = at >= collective.ranks;
  const std::uint32_t first = is_switch ? phase.first_of_line(at - phase.first_switch) : at - member * phase.stride;
  const std::uint32_t sends = network::send_count(steps, member, local);
  Seat& seat = collective.seats[which];
  seat.not_left += sends;
  for (std::uint32_t i = 0; i < sends; ++i) {
    const network::Move move = network::send(steps, member, local, i);
    const bool to_switch = move.peer == steps.members;
    const std::uint32_t peer = to_switch ? phase.first_switch + phase.line(at) : first + move.peer * phase.stride;
    const std::uint32_t id = links_.take();
    Packet& packet = links_[id];
    packet.bytes = phase.block * move.count;
    const Joined& joined = collective.joined[at];
    packet.order = {joined.priority, joined.node, chunk, step, i};
    packet.on_its_way = false;
    packet.target = to_switch ? 0 : group.rank(peer);
    packet.at = group.rank(is_switch ? first : at);
    packet.owner = number;
    packet.from = which;
    packet.to = chunk * seats + peer;
    packet.dimension = static_cast<std::uint8_t>(phase.dimension);
    packet.in_switch = is_switch;
    packet.to_switch = to_switch;
    packet.of_collective = true;
    packet.reduces = move.reduces && !to_switch;
    packet.is_ready = false;
    links_.ask(id, rounds_.now());
  }
}

// The packet has left its sender whole.
void PhysicalCollectives::leave(std::uint32_t id, std::uint64_t time) {
  const Packet& packet = links_[id];
  Seat& seat = collectives_[packet.owner].seats[packet.from];
  seat.left_at = std::max(seat.left_at, time);
  if (--seat.not_left == 0 && seat.done) {
    rounds_.at(seat.left_at, {PhysicalEventKind::left, packet.owner, packet.from});
  }
}

// ---- ends ----------------------------------------------------------------------------------------------------------

// All is received and sent. The chunk is over at its rank when what it has sent has left, too.
void PhysicalCollectives::end_seat(std::uint32_t number, std::uint32_t which) {
  Seat& seat = collectives_[number].seats[which];
  seat.done = true;
  if (seat.not_left > 0) { return; }
  if (seat.left_at > rounds_.now()) { return rounds_.at(seat.left_at, {PhysicalEventKind::left, number, which}); }
  end_chunk(number, which);
}

void PhysicalCollectives::end_chunk(std::uint32_t number, std::uint32_t which) {
  PhysicalCollective& collective = collectives_[number];
  const std::uint32_t at = which % collective.schedule->seats;
  if (at < collective.ranks && --collective.joined[at].chunks_left == 0) { end_rank(number, at); }
}

void PhysicalCollectives::end_rank(std::uint32_t number, std::uint32_t position) {
  PhysicalCollective& collective = collectives_[number];
  nodes_.end_later(groups_[collective.task.group].rank(position), collective.joined[position].node);
  collective.end = rounds_.now();
  if (++collective.over < collective.ranks) { return; }
  std::vector<Seat>().swap(collective.seats);
  std::vector<Joined>().swap(collective.joined);
}

}  // namespace orrery::simulate
