#include "orrery/simulate/collective_engine.hpp"

#include <algorithm>
#include <numeric>

#include "orrery/simulate/stop.hpp"

namespace orrery::simulate {

namespace {

constexpr std::size_t kQueueSets = 3;
constexpr std::uint16_t kAllDimensions = 0xFFFF;
constexpr std::uint16_t kFourDimensions = 0x000F;  // what an absent involved_dim means to ASTRA-sim
constexpr std::size_t kMostReproduced = 5;         // dimensions; with more, ASTRA-sim's behaviour is not reproducible

// The number of queues of a set; a dimension has `queues`.
std::uint32_t queues_in(QueueSet set, std::uint32_t queues) {
  switch (set) {
    case QueueSet::all: return queues;
    case QueueSet::first_half: return std::max(queues / 2, 1U);
    case QueueSet::second_half: return queues - queues / 2;
  }
  return 1;
}

std::size_t queue_count(const SimulationJob& job) {
  return job.rank_graphs.size() * job.network.dimensions.size() * job.system.queues_per_dimension;
}

std::uint32_t queue_width(const System& system) {
  return (system.active_chunks + system.queues_per_dimension - 1) / system.queues_per_dimension;
}

std::int64_t priority_of(Scheduling scheduling, std::int64_t ordinal, std::int64_t explicit_priority) {
  switch (scheduling) {
    case Scheduling::LIFO: return ordinal;
    case Scheduling::FIFO: return -ordinal;
    case Scheduling::EXPLICIT: return explicit_priority;
  }
  return 0;
}

}  // namespace

CollectiveEngine::CollectiveEngine(const SimulationJob& job, ChunkRegistry& chunks, PhaseRunner& runner,
                                   CustomCollectives& customs)
    : job_(job),
      chunks_(chunks),
      runner_(runner),
      customs_(customs),
      queues_(chunks, queue_count(job), queue_width(job.system)),
      counters_(job.rank_graphs.size()),
      loads_(job.network) {
  const std::size_t dimensions = job.network.dimensions.size();
  for (RankCounters& counters : counters_) {
    counters.queues.assign(dimensions * kQueueSets, 0);
    counters.trees.assign(dimensions * kCollectives, 0);
  }
}

// ---- start ---------------------------------------------------------------------------------------------------------

PhaseRequest CollectiveEngine::request_of(const NodeTask& task, std::uint64_t chunk) const {
  const GroupMembers& group = chunks_.group(task.group);
  PhaseRequest request{task.collective, chunk, group.small ? group.ranks : nullptr, task.dimensions};
  if (task.dimensions == kInSwitch) { return request; }
  if (group.small || group.ranks != nullptr) {
    request.dimensions = kAllDimensions;
  } else if (request.dimensions == kNoDimensionList) {
    request.dimensions = job_.network.dimensions.size() <= kMostReproduced ? kFourDimensions : kAllDimensions;
  }
  return request;
}

const PhaseSequence& CollectiveEngine::sequence_of(std::uint32_t rank, const NodeTask& task, std::uint64_t chunk) {
  const PhaseRequest request = request_of(task, chunk);
  // Graphs for this node only. A group reuses those of its first collective of the kind, as ASTRA-sim does.
  const auto own = job_.system.custom_of_node.find(task.id);
  std::string custom = own == job_.system.custom_of_node.end() ? "" : own->second;
  if (task.group != kWholeMachine && !job_.system.custom_of_node.empty()) {
    custom = sticky_.try_emplace({rank, task.group, static_cast<std::uint8_t>(task.collective)}, custom).first->second;
  }
  const std::uint32_t members = request.members != nullptr ? task.group : kWholeMachine;
  auto& cached = sequences_[{members, static_cast<std::uint8_t>(task.collective), chunk, request.dimensions, custom}];
  if (!cached) {
    if (!custom.empty()) {
      cached = std::make_unique<PhaseSequence>(PhaseSequence{{}, custom});
    } else {
      auto made = phase_sequence(job_.network, job_.system, request);
      if (!made) { throw Stop{rank, task.id, made.error().diagnostics.front().message}; }
      cached = std::make_unique<PhaseSequence>(std::move(*made));
    }
  }
  return *cached;
}

void CollectiveEngine::start(std::uint32_t rank, std::uint32_t node, std::uint64_t now_ns) {
  const NodeTask& task = job_.rank_graphs[rank].nodes[node];
  const Split split_size = split(task.collective, task.amount, job_.system.splits, job_.network.ranks());
  const PhaseSequence& sequence = sequence_of(rank, task, split_size.chunk);
  const std::uint32_t number = active_.take();
  ActiveCollective& collective = active_[number];
  collective.rank = rank;
  collective.node = node;
  collective.sequence = &sequence;
  collective.count = split_size.count;
  collective.done = 0;
  collective.group = task.group;
  collective.orders.clear();
  collective.priority = priority_of(job_.system.scheduling, ++counters_[rank].collectives, task.priority);
  if (sequence.custom.empty() && sequence.phases.empty()) { return; }  // such a collective never ends, as in ASTRA-sim
  take_numbers(collective);
  order_chunks(collective, task, split_size, now_ns);
  reserve_queues_and_trees(collective, task.collective);
  collective.stride = 1;
  if (!sequence.phases.empty()) {
    const std::uint32_t queues = queues_in(sequence.phases.front().queue_set, job_.system.queues_per_dimension);
    collective.stride = queues / std::gcd(queues, sequence.phases.front().queue_uses);
  }
  create_chunks(number);
}

// Advances the round-robin counters of queues and trees by all chunks of the collective when it starts.
void CollectiveEngine::reserve_queues_and_trees(ActiveCollective& collective, Collective kind) {
  RankCounters& counters = counters_[collective.rank];
  const auto next_queue = [&](const ChunkPhase& phase) -> std::uint32_t& {
    return counters.queues[phase.dimension * kQueueSets + static_cast<std::size_t>(phase.queue_set)];
  };
  const auto next_tree = [&](const ChunkPhase& phase) -> std::uint32_t& {
    return counters.trees[phase.dimension * kCollectives + static_cast<std::size_t>(kind)];
  };
  const auto chunks = static_cast<std::uint32_t>(collective.count);
  const auto& phases = collective.sequence_of(0).phases;
  const std::size_t count = collective.orders.empty() ? phases.size() : job_.network.dimensions.size();
  collective.first_queue.assign(count, 0);
  collective.first_tree.assign(count, 0);
  for (std::uint32_t i = 0; i < phases.size(); ++i) {
    collective.first_queue[collective.counter_of(i, phases[i])] = next_queue(phases[i]);
    collective.first_tree[collective.counter_of(i, phases[i])] = next_tree(phases[i]);
  }
  for (const ChunkPhase& phase : phases) {
    next_queue(phase) += chunks;
    if (phase.method == CollectiveAlgorithm::tree) { next_tree(phase) += chunks; }
  }
}

// Every chunk of a collective over all ranks gets its order of dimensions, if the system asks for it. The loads are
// cleared when rank 0 issues a collective at a new instant.
void CollectiveEngine::order_chunks(ActiveCollective& collective, const NodeTask& task, const Split& split_size,
                                    std::uint64_t now_ns) {
  if (job_.system.inter_dimension != InterDimension::themis) { return; }
  if (collective.rank == 0 && last_issue_ns_ != now_ns) {
    loads_.clear();
    last_issue_ns_ = now_ns;
  }
  PhaseRequest request = request_of(task, split_size.chunk);
  const ActiveDimensions active = active_dimensions_of(job_.network, job_.system, request);
  const bool has_order = request.members == nullptr && collective.sequence->custom.empty() && !active.flat &&
                         task.collective != Collective::all_to_all;
  if (!has_order) { return; }
  std::uint64_t left = std::max(task.amount, split_size.chunk * (split_size.count - 1) + 1);
  for (std::uint32_t i = 0; i < collective.count; ++i) {
    ChunkOrder& known = known_[collective.first_number + i];
    if (known.ranks == 0) {
      known.dimensions = loads_.order(split_size.chunk, task.collective == Collective::all_gather, active.involved);
    }
    request.order = &known.dimensions;
    request.chunk = std::min(left, split_size.chunk);
    left -= request.chunk;
    collective.orders.push_back(&sequence_in_order(collective.rank, task, request));
    if (++known.ranks == job_.rank_graphs.size()) { known_.erase(collective.first_number + i); }
  }
}

const PhaseSequence& CollectiveEngine::sequence_in_order(std::uint32_t rank, const NodeTask& task,
                                                         const PhaseRequest& request) {
  auto& cached =
      ordered_[{static_cast<std::uint8_t>(task.collective), request.chunk, request.dimensions, *request.order}];
  if (!cached) {
    auto made = phase_sequence(job_.network, job_.system, request);
    if (!made) { throw Stop{rank, task.id, made.error().diagnostics.front().message}; }
    cached = std::make_unique<PhaseSequence>(std::move(*made));
  }
  return *cached;
}

// Chunks of collectives over all ranks are numbered together with those of groups. Ranks that ran different numbers of
// group chunks therefore disagree on the numbers of later chunks, which is a defect of ASTRA-sim.
void CollectiveEngine::take_numbers(ActiveCollective& collective) {
  const bool custom = !collective.sequence->custom.empty();
  const auto chunks = custom ? 1 : static_cast<std::uint32_t>(collective.count);
  RankCounters& counters = counters_[collective.rank];
  collective.first_number = collective.group == kWholeMachine
                                ? static_cast<std::uint32_t>(counters.chunks)
                                : chunks_.take_numbers(collective.rank, collective.group, chunks);
  counters.chunks += chunks;
}

// Creates and starts the chunks that can start. One placeholder per queue represents the others, so that the machine
// has memory only for chunks in flight.
void CollectiveEngine::create_chunks(std::uint32_t number) {
  const ActiveCollective& collective = active_[number];
  if (!collective.sequence->custom.empty()) {
    const std::uint32_t queue = collective.rank * queues_per_rank();
    queues_.insert(create(number, 0, queue));
    return admit(queue);
  }
  if (!collective.orders.empty()) {
    for (std::uint32_t i = 0; i < collective.count; ++i) {
      const std::uint32_t queue = queue_of(collective, 0, i).queue;
      enter(create(number, i, queue));
      admit(queue);
    }
    return;
  }
  std::vector<std::uint32_t> placeholders(collective.stride, kNone);
  for (std::uint32_t i = 0; i < collective.count; ++i) {
    const std::uint32_t queue = queue_of(collective, 0, i).queue;
    std::uint32_t& placeholder = placeholders[i % collective.stride];
    if (placeholder != kNone) {
      ++chunks_[placeholder].not_created;
    } else if (queues_.is_open(queue)) {
      queues_.insert(create(number, i, queue));
      admit(queue);
    } else {
      placeholder = chunks_.add_placeholder();
      Chunk& rest = chunks_[placeholder];
      rest.collective = number;
      rest.priority = collective.priority;
      rest.rank = kNone;
      rest.ordinal = i;
      rest.not_created = 1;
      rest.queue = queue;
      rest.started = false;
      queues_.insert(placeholder);
    }
  }
}

// The chunk waits in the queue of its phase.
void CollectiveEngine::enter(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const ActiveCollective& collective = active_[chunk.collective];
  if (!collective.orders.empty() && job_.system.intra_dimension == IntraDimension::smallest_first) {
    const ChunkPhase& phase = collective.sequence_of(chunk.ordinal).phases[chunk.phase];
    chunk.bytes = phase.size;
    chunk.by_bytes = phase.collective == Collective::reduce_scatter || phase.collective == Collective::all_gather;
  }
  queues_.insert(id);
}

std::uint32_t CollectiveEngine::create(std::uint32_t number, std::uint32_t ordinal, std::uint32_t queue) {
  const ActiveCollective& collective = active_[number];
  const std::uint32_t id = chunks_.find_or_make(collective.rank, collective.group, collective.first_number + ordinal);
  Chunk& chunk = chunks_[id];
  chunk.collective = number;
  chunk.node = collective.node;
  chunk.priority = collective.priority;
  chunk.ordinal = ordinal;
  chunk.phase = 0;
  chunk.queue = queue;
  return id;
}

// Creates the next chunk of a placeholder, in front of it in the queue.
std::uint32_t CollectiveEngine::create_from(std::uint32_t placeholder) {
  Chunk& rest = chunks_[placeholder];
  const std::uint32_t id = create(rest.collective, rest.ordinal, rest.queue);
  queues_.insert_before(id, placeholder);
  rest.ordinal += active_[rest.collective].stride;
  if (--rest.not_created == 0) {
    queues_.remove(placeholder);
    chunks_.remove_placeholder(placeholder);
  }
  return id;
}

// ---- queues --------------------------------------------------------------------------------------------------------

std::uint32_t CollectiveEngine::queues_per_rank() const {
  return static_cast<std::uint32_t>(job_.network.dimensions.size()) * job_.system.queues_per_dimension;
}

CollectiveEngine::QueueChoice CollectiveEngine::queue_of(const ActiveCollective& collective, std::uint32_t number,
                                                         std::uint32_t ordinal) const {
  const std::uint32_t queues = job_.system.queues_per_dimension;
  const ChunkPhase& phase = collective.sequence_of(ordinal).phases[number];
  const std::uint32_t base = collective.rank * queues_per_rank() + phase.dimension * queues;
  const std::uint32_t use =
      collective.first_queue[collective.counter_of(number, phase)] + ordinal * phase.queue_uses + phase.queue_use;
  const std::uint32_t half = queues / 2;
  switch (phase.queue_set) {
    case QueueSet::all: return {base + use % queues, queues == 1 || use % queues < half};
    case QueueSet::first_half: return {base + use % std::max(half, 1U), true};
    case QueueSet::second_half: return {base + half + use % (queues - half), false};
  }
  return {base, true};
}

void CollectiveEngine::admit(std::uint32_t queue) {
  for (std::uint32_t next = queues_.admissible(queue); next != kNone; next = queues_.admissible(queue)) {
    const std::uint32_t id = chunks_[next].not_created != 0 ? create_from(next) : next;
    queues_.start(id);
    start_phase(id);
  }
}

// ---- phases --------------------------------------------------------------------------------------------------------

void CollectiveEngine::start_phase(std::uint32_t id) {
  const Chunk& chunk = chunks_[id];
  const ActiveCollective& collective = active_[chunk.collective];
  const PhaseSequence& sequence = collective.sequence_of(chunk.ordinal);
  if (!sequence.custom.empty()) { return customs_.start(id, chunk, chunks_.group(chunk.group), sequence.custom); }
  const ChunkPhase& phase = sequence.phases[chunk.phase];
  const bool clockwise = queue_of(collective, chunk.phase, chunk.ordinal).clockwise;
  const std::uint32_t tree_ordinal = collective.first_tree[collective.counter_of(chunk.phase, phase)] +
                                     chunk.ordinal * phase.tree_uses + phase.tree_use;
  runner_.start(id, phase, clockwise, tree_ordinal);
}

std::optional<CollectiveEngine::NodeOfRank> CollectiveEngine::end_phase(std::uint32_t id) {
  const Chunk& chunk = chunks_[id];
  ActiveCollective& collective = active_[chunk.collective];
  if (chunk.phase + 1 < collective.sequence_of(chunk.ordinal).phases.size()) { return std::nullopt; }
  if (++collective.done < collective.count) { return std::nullopt; }
  return NodeOfRank{collective.rank, collective.node};
}

void CollectiveEngine::leave_phase(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const std::uint32_t number = chunk.collective, old = chunk.queue;
  const ActiveCollective& collective = active_[number];
  const bool is_last = chunk.phase + 1 >= collective.sequence_of(chunk.ordinal).phases.size();
  queues_.remove(id);
  if (!is_last) {
    chunk.started = false;
    ++chunk.phase;
    chunk.queue = queue_of(collective, chunk.phase, chunk.ordinal).queue;
    enter(id);
  }
  queues_.stop_one(old);
  admit(old);
  if (!is_last) { return admit(chunk.queue); }
  if (collective.done == collective.count) {
    active_[number].sequence = nullptr;
    active_.give_back(number);
  }
  chunks_.forget(id);
}

}  // namespace orrery::simulate
