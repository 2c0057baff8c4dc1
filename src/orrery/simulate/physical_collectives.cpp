#include "orrery/simulate/physical_collectives.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "orrery/simulate/stop.hpp"

namespace orrery::simulate {

namespace {

// Chunks are sent around rings in alternating directions.
network::MemberSchedule of_chunk(const PhysicalPhase& phase, std::uint32_t chunk) {
  network::MemberSchedule schedule = phase.schedule;
  schedule.backward = chunk % 2 == 1;
  return schedule;
}

std::uint32_t member_of(const PhysicalPhase& phase, std::uint32_t participant, std::uint32_t ranks) {
  return participant >= ranks ? phase.schedule.members : phase.coordinate(participant);
}

bool takes_part(const PhysicalPhase& phase, std::uint32_t participant, std::uint32_t ranks) {
  const std::uint32_t position =
      participant < ranks ? participant : phase.first_of_line(participant - phase.first_switch);
  return phase.takes_part(position);
}

// The position that a position, the `member` of its line, sends its message `place` of a uniform step to.
std::uint32_t peer_of(const PhysicalPhase& phase, const PhysicalStep& plan, std::uint32_t at, std::uint32_t member,
                      std::uint32_t chunk, std::uint32_t place) {
  const std::uint32_t n = phase.schedule.members;
  const bool backward = chunk % 2 == 1 && phase.schedule.algorithm == CollectiveAlgorithm::ring;
  const std::uint32_t distance = backward ? n - plan.distance : plan.distance + place;
  const std::uint32_t ahead = at + distance * phase.stride;
  return member + distance < n ? ahead : ahead - n * phase.stride;
}

std::uint32_t receives(const PhysicalSchedule& schedule, std::uint32_t chunk, std::uint32_t participant,
                       std::uint32_t ranks, std::uint32_t step) {
  if (schedule.steps[step].is_uniform) { return schedule.steps[step].messages; }
  const PhysicalPhase& phase = schedule.phase_of(step);
  if (!takes_part(phase, participant, ranks)) { return 0; }
  return network::receive_count(of_chunk(phase, chunk), member_of(phase, participant, ranks), step - phase.first_step);
}

}  // namespace

// ---- groups and collectives ----------------------------------------------------------------------------------------

PhysicalCollectives::PhysicalCollectives(const SimulationJob& job, PhysicalRounds& rounds, Links& links,
                                         PhysicalNodes& nodes)
    : job_(job),
      rounds_(rounds),
      links_(links),
      nodes_(nodes),
      count_(job.network.ranks()),
      is_folded_(is_folded(job) || !job.images.empty()),
      groups_(job.groups.size() + 1),
      match_(job),
      collectives_(match_.all().size()) {
  if (job.system.endpoint_delay_ns > kMostTime / kPicosecondsPerNs) { throw TooLong{}; }
  links_.set_source(*this);
  if (is_folded(job)) { links_.fold(); }
  if (!job.images.empty()) { links_.fold(job.images); }
  make_groups();
  if (!job.images.empty()) { make_images(); }
  for (std::size_t i = 0; i < collectives_.size(); ++i) {
    const CollectiveMatch::One& one = match_.all()[i];
    collectives_[i].task = one.task;
    collectives_[i].ranks = one.ranks;
    collectives_[i].custom = one.custom;
  }
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

// In a job of which one rank of each class is simulated, all of a group's are in it or none (physical_classes.hpp).
void PhysicalCollectives::make_images() {
  for (PhysicalGroup& group : groups_) {
    const std::uint32_t size = group.ranks == nullptr ? count_ : static_cast<std::uint32_t>(group.ranks->size());
    for (std::uint32_t i = 0; i < size; ++i) { group.simulated += job_.images[group.rank(i)] == group.rank(i) ? 1 : 0; }
    for (std::uint32_t i = 0; i < size && group.simulated > 0; ++i) {
      group.images.push_back(group.position(job_.images[group.rank(i)]));
    }
  }
}

// ---- schedules -----------------------------------------------------------------------------------------------------

// The dimensions that take part, each with the algorithm that the system file has for it. A flat algorithm has all
// ranks in one dimension. Broadcasts, for which ASTRA-sim's files have no algorithm, are chains from the first rank of
// the group.
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
    const bool has_switch = hardware::has_switch(job_.network.dimensions[extent.dimension].wiring);
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

// The first rank has arrived: splits the collective into chunks; the last chunk may be shorter.
void PhysicalCollectives::prepare(PhysicalCollective& collective, std::uint32_t rank, std::uint32_t node) {
  const std::uint64_t bytes = collective.task.amount, splits = job_.system.splits;
  const std::uint64_t chunk = bytes == 0 ? 0 : (bytes - 1) / splits + 1;
  collective.chunks = bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes - 1) / chunk + 1);
  collective.schedule = &schedule(collective, chunk, rank, node);
  collective.last_schedule = &schedule(collective, bytes - (collective.chunks - 1) * chunk, rank, node);
  const std::uint32_t participants = collective.schedule->participant_count;
  if (std::uint64_t{participants} * collective.chunks >= kNone) {
    throw Stop{rank, job_.rank_graphs[rank].nodes[node].id,
               "has too many chunks on all its ranks (limit: 2^32); lower preferred-dataset-splits"};
  }
  collective.by_participants = engine::Divisor(participants);
  collective.participants.resize(participants);
  collective.progress.resize(std::size_t{participants} * collective.chunks);
  for (const PhysicalPhase& phase : collective.schedule->phases) {
    if (network::participant_count(phase.schedule) == phase.schedule.members) { continue; }
    for (std::uint32_t line = 0; line < collective.ranks / phase.schedule.members; ++line) {
      const std::uint32_t number = phase.first_switch + line;
      collective.participants[number].priority = std::numeric_limits<std::int32_t>::max();
      for (std::uint32_t i = 0; i < collective.chunks; ++i) {
        ChunkProgress& progress = collective.progress[std::size_t{i} * participants + number];
        progress.step = phase.first_step;
      }
    }
  }
}

std::uint32_t PhysicalCollectives::note_start(std::uint32_t rank, std::uint32_t node) {
  const std::uint32_t number = match_.collective_of(rank, node);
  PhysicalCollective& collective = collectives_[number];
  collective.last_start = rounds_.now();
  if (collective.started++ == 0) { collective.first_start = rounds_.now(); }
  return number;
}

void PhysicalCollectives::join(std::uint32_t number, std::uint32_t rank, std::uint32_t node, std::int32_t priority) {
  PhysicalCollective& collective = collectives_[number];
  if (collective.schedule == nullptr) { prepare(collective, rank, node); }
  const std::uint32_t position = groups_[collective.task.group].position(rank);
  collective.participants[position] = {node, priority, collective.chunks};
  const std::uint32_t participants = collective.schedule->participant_count;
  for (std::uint32_t chunk = 0; chunk < collective.chunks; ++chunk) {
    const std::uint32_t index = chunk * participants + position;
    collective.progress[index].has_joined = true;
    accept_early(collective.progress[index]);
    // When the last chunk of the last rank ends, the collective ends and releases its progress.
    if (!collective.progress.empty()) { advance(number, index, chunk); }
  }
}

void PhysicalCollectives::end_custom(std::uint32_t number) {
  ++collectives_[number].ended;
  collectives_[number].end = rounds_.now();
}

// Accepts the transfers that arrived before the rank, in the order of their arrival; the list has the last one first.
void PhysicalCollectives::accept_early(ChunkProgress& progress) {
  std::uint32_t early = std::exchange(progress.early, kNone);
  std::uint32_t oldest_first = kNone;
  while (early != kNone) {
    const std::uint32_t next = links_[early].next;
    links_[early].next = oldest_first;
    oldest_first = early;
    early = next;
  }
  while (oldest_first != kNone) {
    const std::uint32_t next = links_[oldest_first].next;
    accept(oldest_first);
    oldest_first = next;
  }
}

// ---- steps ---------------------------------------------------------------------------------------------------------

// The transfer has arrived. If the rank of its target has not reached the collective, it waits for the rank.
void PhysicalCollectives::deliver(std::uint32_t id) {
  Transfer& transfer = links_[id];
  PhysicalCollective& collective = collectives_[transfer.owner];
  if (transfer.to_switch) {
    const auto participants = static_cast<std::uint32_t>(collective.participants.size());
    Participant& participant = collective.participants[transfer.to - transfer.order.chunk * participants];
    participant.priority = std::min(participant.priority, transfer.order.priority);
    return count(id);
  }
  ChunkProgress& progress = collective.progress[transfer.to];
  if (!progress.has_joined) {
    transfer.next = progress.early;
    progress.early = id;
    return;
  }
  accept(id);
}

void PhysicalCollectives::accept(std::uint32_t id) {
  if (is_folded_) { links_[id].at = links_.image(links_[id].target); }
  if (links_[id].reduces && links_.reductions_take_time()) { return links_.reduce(id, rounds_.now()); }
  count(id);
}

// The data of the transfer can be used. A transfer of a later step waits for its step.
void PhysicalCollectives::count(std::uint32_t id) {
  Transfer& transfer = links_[id];
  ChunkProgress& progress = collectives_[transfer.owner].progress[transfer.to];
  if (transfer.order.step != progress.step) {
    if (progress.early == kNone) { progress.early_in = ChunkProgress::kMostEarlyIn; }
    note_early(progress, transfer.order.step);
    transfer.next = progress.early;
    progress.early = id;
    return;
  }
  ++progress.received;
  const std::uint32_t owner = transfer.owner, to = transfer.to, chunk = transfer.order.chunk;
  links_.give_back(id);
  advance(owner, to, chunk);
}

// Only for a rank that waits for the transfer. Messages of one step only add to a count, so their order has no effect;
// the last of them ends the step. What can be used at once is counted in the next round instead.
bool PhysicalCollectives::count_ahead(std::uint32_t id, std::uint64_t time) {
  const Transfer& transfer = links_[id];
  if (!transfer.of_collective || transfer.to_switch || time <= rounds_.now()) { return false; }
  PhysicalCollective& collective = collectives_[transfer.owner];
  ChunkProgress& progress = collective.progress[transfer.to];
  const std::uint32_t chunk = transfer.order.chunk, step = transfer.order.step, owner = transfer.owner;
  if (!progress.has_joined || step != progress.step) { return false; }
  ++progress.received;
  progress.received_at = std::max(progress.received_at, time);
  const std::uint32_t to = transfer.to;
  links_.give_back(id);
  const PhysicalStep& plan = collective.schedule_of(chunk).steps[step];
  const std::uint32_t wanted = plan.is_uniform
                                   ? plan.messages
                                   : receives(collective.schedule_of(chunk), chunk,
                                              to - chunk * collective.by_participants.value(), collective.ranks, step);
  if (progress.received >= wanted) {
    rounds_.at(progress.received_at, {PhysicalEventKind::step_end, owner, to});
  } else {
    rounds_.count(1);
  }
  return true;
}

void PhysicalCollectives::end_step(std::uint32_t number, std::uint32_t index) {
  advance(number, index, collectives_[number].by_participants.quotient(index));
}

void PhysicalCollectives::note_early(ChunkProgress& progress, std::uint32_t step) {
  progress.early_in = std::min<std::uint32_t>(progress.early_in, step - progress.step) & ChunkProgress::kMostEarlyIn;
}

// The step of the first early transfers may have been reached.
void PhysicalCollectives::count_early(ChunkProgress& progress) {
  progress.early_in = ChunkProgress::kMostEarlyIn;
  std::uint32_t* from = &progress.early;
  while (*from != kNone) {
    const std::uint32_t id = *from;
    if (links_[id].order.step != progress.step) {
      note_early(progress, links_[id].order.step);
      from = &links_[id].next;
      continue;
    }
    *from = links_[id].next;
    links_.give_back(id);
    ++progress.received;
  }
}

void PhysicalCollectives::advance(std::uint32_t number, std::uint32_t index, std::uint32_t chunk) {
  PhysicalCollective& collective = collectives_[number];
  ChunkProgress& progress = collective.progress[index];
  if (progress.done) { return; }
  const std::uint32_t at = index - chunk * collective.by_participants.value();
  const PhysicalSchedule& schedule = collective.schedule_of(chunk);
  std::uint32_t end = schedule.step_count;
  if (at >= collective.ranks) {  // a switch takes part in one phase only
    const PhysicalPhase& phase = schedule.phase_of(std::min(progress.step, end - 1));
    end = phase.first_step + phase.step_count;
  }
  while (progress.step < end) {
    if (!progress.has_sent) {
      send_step(number, index, chunk, progress.step);
      progress.has_sent = true;
    }
    if (progress.received < receives(schedule, chunk, at, collective.ranks, progress.step)) { return; }
    if (progress.received_at > rounds_.now()) {
      return rounds_.at(progress.received_at, {PhysicalEventKind::step_end, number, index});
    }
    ++progress.step;
    progress.has_sent = false;
    progress.received = 0;
    if (progress.early != kNone && --progress.early_in == 0) { count_early(progress); }
  }
  complete(number, index);
}

// The messages of a member, or of a switch, in a step.
class PhysicalCollectives::StepSender {
 public:
  StepSender(const PhysicalCollectives& all, std::uint32_t number, std::uint32_t index, std::uint32_t chunk,
             std::uint32_t step)
      : all_(all),
        collective_(all.collectives_[number]),
        plan_(collective_.schedule_of(chunk).steps[step]),
        phase_(collective_.schedule_of(chunk).phases[plan_.phase]),
        number_(number),
        index_(index),
        chunk_(chunk),
        step_(step),
        participants_(collective_.by_participants.value()),
        at_(index - chunk * participants_),
        member_(member_of(phase_, at_, collective_.ranks)) {}

  [[nodiscard]] std::uint32_t count() const {
    if (plan_.is_uniform) { return plan_.messages; }
    if (!takes_part(phase_, at_, collective_.ranks)) { return 0; }
    return network::send_count(of_chunk(phase_, chunk_), member_, step_ - phase_.first_step);
  }

  // All of them start on one link, in order.
  [[nodiscard]] bool is_queue() const {
    return at_ < collective_.ranks && !group().is_line && all_.links_.starts_on_one_link(phase_.dimension);
  }

  [[noreturn]] void refuse() const {
    const std::uint32_t sender =
        group().rank(at_ < collective_.ranks ? at_ : phase_.first_of_line(at_ - phase_.first_switch));
    const std::uint32_t node = collective_.participants[at_].node;
    throw Stop{sender, node == kNone ? collective_.task.id : all_.job_.rank_graphs[sender].nodes[node].id,
               fmt::format("has more than {} messages to send at once on one rank", ChunkProgress::kMostUnsent)};
  }

  // The first form, after the message of the place before.
  [[nodiscard]] Transfer message(std::uint32_t place, const Transfer& before) const {
    if (!plan_.is_uniform) { return message(place); }
    const std::uint32_t peer = uniform_peer(place);
    Transfer transfer = before;
    transfer.order.place = place;
    transfer.target = group().rank(peer);
    transfer.to = index_of(peer);
    return transfer;
  }
  [[nodiscard]] Transfer message(std::uint32_t place) const {
    Transfer transfer = plan_.is_uniform ? uniform_message(place) : any_message(place);
    const Participant& participant = collective_.participants[at_];
    transfer.order = {participant.priority, participant.node, chunk_, step_, place};
    transfer.owner = number_;
    transfer.from = index_;
    transfer.dimension = static_cast<std::uint8_t>(phase_.dimension);
    transfer.of_collective = true;
    return transfer;
  }

 private:
  [[nodiscard]] const PhysicalGroup& group() const { return all_.groups_[collective_.task.group]; }

  [[nodiscard]] bool is_one_rank() const { return all_.is_folded_ && all_.job_.images.empty(); }

  // Of the progress of a participant. Folded, the image of each message arrives at a simulated rank.
  [[nodiscard]] std::uint32_t index_of(std::uint32_t participant) const {
    if (!group().images.empty()) { participant = group().images[participant]; }
    return is_one_rank() ? index_ : chunk_ * participants_ + participant;
  }

  [[nodiscard]] std::uint32_t uniform_peer(std::uint32_t place) const {
    return peer_of(phase_, plan_, at_, member_, chunk_, place);
  }

  [[nodiscard]] Transfer uniform_message(std::uint32_t place) const {
    const std::uint32_t peer = uniform_peer(place);
    Transfer transfer;
    transfer.bytes = plan_.bytes;
    transfer.target = group().rank(peer);
    transfer.at = group().rank(at_);
    transfer.to = index_of(peer);
    transfer.reduces = plan_.reduces;
    return transfer;
  }

  [[nodiscard]] Transfer any_message(std::uint32_t place) const {
    const bool is_switch = at_ >= collective_.ranks;
    const std::uint32_t first =
        is_switch ? phase_.first_of_line(at_ - phase_.first_switch) : at_ - member_ * phase_.stride;
    const network::StepMessage message =
        network::send(of_chunk(phase_, chunk_), member_, step_ - phase_.first_step, place);
    const bool to_switch = message.peer == phase_.schedule.members;
    const std::uint32_t peer =
        to_switch ? phase_.first_switch + phase_.line(at_) : first + message.peer * phase_.stride;
    Transfer transfer;
    transfer.bytes = phase_.block * message.count;
    transfer.target = to_switch ? 0 : group().rank(peer);
    transfer.at = group().rank(is_switch ? first : at_);
    transfer.to = index_of(peer);
    transfer.in_switch = is_switch;
    transfer.to_switch = to_switch;
    transfer.reduces = message.reduces && !to_switch;
    return transfer;
  }

  const PhysicalCollectives& all_;
  const PhysicalCollective& collective_;
  const PhysicalStep& plan_;
  const PhysicalPhase& phase_;
  std::uint32_t number_, index_, chunk_, step_, participants_, at_, member_;
};

void PhysicalCollectives::send_step(std::uint32_t number, std::uint32_t index, std::uint32_t chunk,
                                    std::uint32_t step) {
  const StepSender sender(*this, number, index, chunk, step);
  const std::uint32_t count = sender.count();
  ChunkProgress& progress = collectives_[number].progress[index];
  if (progress.unsent + std::uint64_t{count} > ChunkProgress::kMostUnsent) { sender.refuse(); }
  progress.unsent = (progress.unsent + count) & ChunkProgress::kMostUnsent;
  const bool is_queue = count > 1 && sender.is_queue();
  for (std::uint32_t i = 0; i < (is_queue ? 1 : count); ++i) {
    const std::uint32_t id = links_.take([&] { return sender.message(i); });
    links_[id].has_next = is_queue;
    links_.request(id, rounds_.now());
  }
}

Transfer PhysicalCollectives::next(const Transfer& transfer) const {
  const std::uint32_t chunk = transfer.order.chunk, step = transfer.order.step, place = transfer.order.place + 1;
  const StepSender sender(*this, transfer.owner, transfer.from, chunk, step);
  Transfer made = sender.message(place, transfer);
  made.has_next = place + 1 < sender.count();
  return made;
}

// The whole transfer has left its sender.
void PhysicalCollectives::leave(std::uint32_t id, std::uint64_t time) {
  const Transfer& transfer = links_[id];
  ChunkProgress& progress = collectives_[transfer.owner].progress[transfer.from];
  progress.sent_at = std::max(progress.sent_at, time);
  if (--progress.unsent == 0 && progress.done) {
    rounds_.at(progress.sent_at, {PhysicalEventKind::sent, transfer.owner, transfer.from});
  }
}

// ---- ends ----------------------------------------------------------------------------------------------------------

// All steps are received and sent. The chunk ends at its rank when its last transfer has left.
void PhysicalCollectives::complete(std::uint32_t number, std::uint32_t index) {
  ChunkProgress& progress = collectives_[number].progress[index];
  progress.done = true;
  if (progress.unsent > 0) { return; }
  if (progress.sent_at > rounds_.now()) {
    return rounds_.at(progress.sent_at, {PhysicalEventKind::sent, number, index});
  }
  end_chunk(number, index);
}

void PhysicalCollectives::end_chunk(std::uint32_t number, std::uint32_t index) {
  PhysicalCollective& collective = collectives_[number];
  const std::uint32_t at = index % collective.schedule->participant_count;
  if (at < collective.ranks && --collective.participants[at].chunks_left == 0) { end_rank(number, at); }
}

void PhysicalCollectives::end_rank(std::uint32_t number, std::uint32_t position) {
  PhysicalCollective& collective = collectives_[number];
  nodes_.end_later(groups_[collective.task.group].rank(position), collective.participants[position].node);
  collective.end = rounds_.now();
  const std::uint32_t simulated = groups_[collective.task.group].simulated;
  if (++collective.ended < (simulated > 0 ? simulated : collective.ranks)) { return; }
  collective.progress = {};
  std::vector<Participant>().swap(collective.participants);
}

// ---- speed ---------------------------------------------------------------------------------------------------------

void PhysicalCollectives::prefetch_progress(std::uint32_t number, std::uint32_t index) const {
  const PhysicalCollective& collective = collectives_[number];
  engine::prefetch(collective.progress.data() + index);
  engine::prefetch(collective.participants.data() + collective.by_participants.remainder(index));
}

// What a rank's messages of the next step access first: the links that they start on and, where their arrival is
// counted ahead, the progress of the first target.
void PhysicalCollectives::prefetch_step(std::uint32_t number, std::uint32_t index) const {
  const PhysicalCollective& collective = collectives_[number];
  if (collective.progress.empty()) { return; }
  const std::uint32_t chunk = collective.by_participants.quotient(index);
  const std::uint32_t step = collective.progress[index].step + 1;
  const std::uint32_t at = index - chunk * collective.by_participants.value();
  const PhysicalSchedule& schedule = *collective.schedule;
  if (step >= schedule.step_count || at >= collective.ranks) { return; }
  const PhysicalStep& plan = schedule.steps[step];
  const PhysicalPhase& phase = schedule.phases[plan.phase];
  links_.prefetch_own(groups_[collective.task.group].rank(at), phase.dimension);
  if (!plan.is_uniform || plan.messages != 1 || (plan.reduces && links_.reductions_take_time())) { return; }
  const std::uint32_t peer = peer_of(phase, plan, at, phase.coordinate(at), chunk, 0);
  engine::prefetch(collective.progress.data() + (index - at) + peer);
}

}  // namespace orrery::simulate
