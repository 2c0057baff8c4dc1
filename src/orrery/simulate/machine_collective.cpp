// A collective on one rank: cut into chunks, each of which goes through queues and phases.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "orrery/simulate/machine.hpp"

namespace orrery::simulate {

namespace {

constexpr std::size_t kTurns = 3;
constexpr std::uint16_t kAllDimensions = 0xFFFF;
constexpr std::uint16_t kFourDimensions = 0x000F;  // what an absent involved_dim means to the original
constexpr std::size_t kMostReproduced = 5;         // dimensions up to which it does so in a way that can be repeated

// How many queues of a dimension are taken in turn.
std::uint32_t turns_of(Turn turn, std::uint32_t queues) {
  switch (turn) {
    case Turn::any: return queues;
    case Turn::first: return std::max(queues / 2, 1U);
    case Turn::second: return queues - queues / 2;
  }
  return 1;
}

}  // namespace

// ---- collectives ---------------------------------------------------------------------------------------------------

const Plan& Machine::plan(std::uint32_t rank, const Work& work, std::uint64_t chunk) {
  const GroupState& group = groups_[work.group];
  PlanRequest request{work.collective, chunk, group.small ? group.ranks : nullptr, work.dimensions};
  if (group.small || (group.ranks != nullptr)) {
    request.dimensions = kAllDimensions;
  } else if (request.dimensions == kNoDimensionList) {
    request.dimensions = job_.network.dimensions.size() <= kMostReproduced ? kFourDimensions : kAllDimensions;
  }
  // Graphs of a node's own; a group keeps what its first use of the collective had.
  const auto own = job_.system.custom_of_node.find(work.id);
  std::string custom = own == job_.system.custom_of_node.end() ? "" : own->second;
  if (work.group != kWholeMachine && !job_.system.custom_of_node.empty()) {
    custom = sticky_.try_emplace({rank, work.group, static_cast<std::uint8_t>(work.collective)}, custom).first->second;
  }
  const std::uint32_t members = group.small ? work.group : kWholeMachine;
  auto& kept = plans_[{members, static_cast<std::uint8_t>(work.collective), chunk, request.dimensions, custom}];
  if (!kept) {
    if (!custom.empty()) {
      kept = std::make_unique<Plan>(Plan{{}, custom});
    } else {
      auto made = make_plan(job_.network, job_.system, request);
      if (!made) { throw Stop{rank, work.id, made.error().diagnostics.front().message}; }
      kept = std::make_unique<Plan>(std::move(*made));
    }
  }
  return *kept;
}

void Machine::start_collective(std::uint32_t number, std::uint32_t node) {
  Rank& rank = ranks_[number];
  const Work& work = job_.programs[number].nodes[node];
  const Split cut = split(work.collective, work.amount, job_.system.splits, count_);
  const Plan& phases = plan(number, work, cut.chunk);
  const std::uint32_t which = running_.take();
  Running& running = running_[which];
  running.rank = number;
  running.node = node;
  running.plan = &phases;
  running.count = cut.count;
  running.done = 0;
  running.group = work.group;
  ++rank.collectives;
  running.priority = job_.system.scheduling == Scheduling::LIFO   ? rank.collectives
                     : job_.system.scheduling == Scheduling::FIFO ? -rank.collectives
                                                                  : work.priority;
  if (phases.custom.empty() && phases.phases.empty()) { return; }  // nothing to do is never done
  take_turns(running, work.collective);
  take_numbers(running);
  running.stride = 1;
  if (!phases.phases.empty()) {
    const std::uint32_t turns = turns_of(phases.phases.front().turn, job_.system.queues_per_dimension);
    running.stride = turns / std::gcd(turns, phases.phases.front().turn_uses);
  }
  create_chunks(which);
}

// All chunks take their turns at queues and trees when the collective starts.
void Machine::take_turns(Running& running, Collective collective) {
  Rank& rank = ranks_[running.rank];
  const auto turn_of = [&](const Phase& phase) -> std::uint32_t& {
    return rank.turns[phase.dimension * kTurns + static_cast<std::size_t>(phase.turn)];
  };
  const auto tree_of = [&](const Phase& phase) -> std::uint32_t& {
    return rank.trees[phase.dimension * kCollectives + static_cast<std::size_t>(collective)];
  };
  const auto chunks = static_cast<std::uint32_t>(running.count);
  running.turns.clear();
  running.trees.clear();
  for (const Phase& phase : running.plan->phases) {
    running.turns.push_back(turn_of(phase));
    running.trees.push_back(tree_of(phase));
  }
  for (const Phase& phase : running.plan->phases) {
    turn_of(phase) += chunks;
    if (phase.method == CollectiveAlgorithm::tree) { tree_of(phase) += chunks; }
  }
}

// Chunks of the machine are counted together with those of groups. Ranks that ran different numbers of group chunks
// therefore disagree on the chunks of the machine that follow, which is the original's defect.
void Machine::take_numbers(Running& running) {
  const bool custom = !running.plan->custom.empty();
  const auto chunks = custom ? 1 : static_cast<std::uint32_t>(running.count);
  Rank& rank = ranks_[running.rank];
  if (running.group == kWholeMachine) {
    running.first_number = static_cast<std::uint32_t>(rank.chunks_made);
  } else {
    Stream& stream = this->stream(running.rank, running.group);
    running.first_number = stream.next;
    stream.next += chunks;
  }
  rank.chunks_made += chunks;
}

// Chunks that can start do; the others are one entry of their queue that stands for all of them, so that a machine
// holds what is under way and not what is to come.
void Machine::create_chunks(std::uint32_t which) {
  const Running& running = running_[which];
  if (!running.plan->custom.empty()) {
    const std::uint32_t queue = running.rank * queues_per_rank();
    put(born(which, 0, queue));
    return admit(queue);
  }
  std::vector<std::uint32_t> heaps(running.stride, kNone);
  for (std::uint32_t i = 0; i < running.count; ++i) {
    bool clockwise = true;
    const std::uint32_t number = queue_of(running, 0, i, clockwise);
    std::uint32_t& heap = heaps[i % running.stride];
    if (heap != kNone) {
      ++chunks_[heap].unborn;
    } else if (queues_[number].running < width_ && queues_[number].waiting == kNone) {
      put(born(which, i, number));
      admit(number);
    } else {
      heap = chunks_.take();
      Chunk& rest = chunks_[heap];
      rest.collective = which;
      rest.rank = kNone;
      rest.ordinal = i;
      rest.unborn = 1;
      rest.queue = number;
      rest.started = false;
      put(heap);
    }
  }
}

std::uint32_t Machine::born(std::uint32_t which, std::uint32_t ordinal, std::uint32_t queue) {
  const Running& running = running_[which];
  const std::uint32_t id = find_chunk(running.rank, running.group, running.first_number + ordinal);
  Chunk& chunk = chunks_[id];
  chunk.collective = which;
  chunk.ordinal = ordinal;
  chunk.phase = 0;
  chunk.queue = queue;
  return id;
}

// The next chunk of those that an entry stands for takes its place in front of it.
std::uint32_t Machine::born_of(std::uint32_t heap) {
  Chunk& rest = chunks_[heap];
  const std::uint32_t id = born(rest.collective, rest.ordinal, rest.queue);
  Chunk& chunk = chunks_[id];
  Queue& queue = queues_[rest.queue];
  chunk.before = rest.before;
  chunk.after = heap;
  (chunk.before == kNone ? queue.first : chunks_[chunk.before].after) = id;
  rest.before = id;
  queue.waiting = id;
  rest.ordinal += running_[rest.collective].stride;
  if (--rest.unborn == 0) {
    take_out(heap);
    chunks_.give_back(heap);
  }
  return id;
}

// ---- chunks by number ----------------------------------------------------------------------------------------------

Stream& Machine::stream(std::uint32_t rank, std::uint32_t group) {
  return groups_[group].streams[groups_[group].place(rank)];
}

std::uint32_t Machine::find_chunk(std::uint32_t rank, std::uint32_t group, std::uint32_t number) {
  Stream& stream = this->stream(rank, group);
  if (stream.live == 0) {
    stream.chunks.clear();
    stream.base = number;
  }
  if (number < stream.base) {
    stream.chunks.insert(stream.chunks.begin(), stream.base - number, kNone);
    stream.base = number;
  }
  const std::uint32_t at = number - stream.base;
  if (at >= stream.chunks.size()) { stream.chunks.resize(at + 1, kNone); }
  if (stream.chunks[at] != kNone) { return stream.chunks[at]; }
  const std::uint32_t id = chunks_.take();
  Chunk& chunk = chunks_[id];
  chunk.rank = rank;
  chunk.group = group;
  chunk.id = number;
  chunk.collective = kNone;
  chunk.before = chunk.after = chunk.queue = chunk.custom = kNone;
  chunk.unborn = 0;
  chunk.started = false;
  chunk.channels.clear();
  stream.chunks[at] = id;
  ++stream.live;
  return id;
}

std::uint32_t Machine::known_chunk(std::uint32_t rank, std::uint32_t group, std::uint32_t number) const {
  const Stream& stream = groups_[group].streams[groups_[group].place(rank)];
  if (number < stream.base || number - stream.base >= stream.chunks.size()) { return kNone; }
  const std::uint32_t id = stream.chunks[number - stream.base];
  return id == kOver ? kNone : id;
}

const Chunk* Machine::chunk_of(std::uint32_t rank, std::uint32_t group, std::uint32_t number) const {
  const std::uint32_t id = known_chunk(rank, group, number);
  return id == kNone ? nullptr : &chunks_[id];
}

void Machine::forget_chunk(std::uint32_t id) {
  const Chunk& chunk = chunks_[id];
  Stream& stream = this->stream(chunk.rank, chunk.group);
  stream.chunks[chunk.id - stream.base] = kOver;
  --stream.live;
  chunks_[id].rank = kNone;  // whoever remembers it sees that it is another
  chunks_.give_back(id);
  // What is done at the front goes once it is half of all, so that a stream that never runs dry stays short.
  std::size_t done = 0;
  if (chunk.id == stream.base + stream.chunks.size() / 2) {
    while (done < stream.chunks.size() && stream.chunks[done] == kOver) { ++done; }
    stream.chunks.erase(stream.chunks.begin(), stream.chunks.begin() + static_cast<std::ptrdiff_t>(done));
    stream.base += static_cast<std::uint32_t>(done);
  }
}

// ---- queues --------------------------------------------------------------------------------------------------------

std::uint32_t Machine::queues_per_rank() const {
  return static_cast<std::uint32_t>(job_.network.dimensions.size()) * job_.system.queues_per_dimension;
}

std::uint32_t Machine::queue_of(const Running& running, std::uint32_t which, std::uint32_t ordinal,
                                bool& clockwise) const {
  const std::uint32_t queues = job_.system.queues_per_dimension;
  const std::uint32_t base = running.rank * queues_per_rank();
  const Phase& phase = running.plan->phases[which];
  const std::uint32_t turn = running.turns[which] + ordinal * phase.turn_uses + phase.turn_number;
  const std::uint32_t half = queues / 2;
  std::uint32_t queue = 0;
  switch (phase.turn) {
    case Turn::any:
      queue = turn % queues;
      clockwise = queues == 1 || queue < half;
      break;
    case Turn::first:
      queue = turn % std::max(half, 1U);
      clockwise = true;
      break;
    case Turn::second:
      queue = half + turn % (queues - half);
      clockwise = false;
      break;
  }
  return base + phase.dimension * queues + queue;
}

// Behind those that run and those that are as urgent.
void Machine::put(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  Queue& queue = queues_[chunk.queue];
  std::uint32_t before = queue.last;
  while (before != kNone && !chunks_[before].started && priority_of(chunks_[before]) < priority_of(chunk)) {
    before = chunks_[before].before;
  }
  const std::uint32_t after = before == kNone ? queue.first : chunks_[before].after;
  chunk.before = before;
  chunk.after = after;
  (before == kNone ? queue.first : chunks_[before].after) = id;
  (after == kNone ? queue.last : chunks_[after].before) = id;
  if (queue.waiting == after) { queue.waiting = id; }
}

void Machine::take_out(std::uint32_t id) {
  const Chunk& chunk = chunks_[id];
  Queue& queue = queues_[chunk.queue];
  if (queue.waiting == id) { queue.waiting = chunk.after; }
  (chunk.before == kNone ? queue.first : chunks_[chunk.before].after) = chunk.after;
  (chunk.after == kNone ? queue.last : chunks_[chunk.after].before) = chunk.before;
}

void Machine::admit(std::uint32_t number) {
  Queue& queue = queues_[number];
  while (queue.running < width_ && queue.waiting != kNone) {
    const std::uint32_t id = chunks_[queue.waiting].unborn != 0 ? born_of(queue.waiting) : queue.waiting;
    chunks_[id].started = true;
    queue.waiting = chunks_[id].after;
    start_phase(id);
    ++queue.running;
  }
  overlapped_chunks_ = overlapped_chunks_ || queue.running > 1;
}

// ---- phases --------------------------------------------------------------------------------------------------------

void Machine::start_phase(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const Plan& plan = *running_[chunk.collective].plan;
  if (!plan.custom.empty()) { return start_custom(id); }
  const Phase& phase = plan.phases[chunk.phase];
  (void)queue_of(running_[chunk.collective], chunk.phase, chunk.ordinal, chunk.clockwise);
  chunk.now = &phase;
  chunk.to_chunk = kNone;
  chunk.here = phase.ring.position(chunk.rank);
  chunk.opened = chunk.sent = chunk.tokens = chunk.got = 0;
  if (phase.method == CollectiveAlgorithm::tree) {
    start_tree(id);
  } else {
    start_window(id);
  }
}

// All in the same instant, in the order of the original: the node may be over, and start others that join queues, while
// the chunk still has its place.
void Machine::phase_over(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const std::uint32_t which = chunk.collective;
  const std::uint32_t old = chunk.queue;
  const bool last = chunk.phase + 1 >= running_[which].plan->phases.size();
  if (last) {
    Running& running = running_[which];
    if (++running.done == running.count) {
      const std::uint32_t rank = running.rank, node = running.node;
      complete(rank, node);
      running_[which].plan = nullptr;
    }
  }
  take_out(id);
  if (!last) {
    chunk.started = false;
    ++chunk.phase;
    bool clockwise = true;
    chunk.queue = queue_of(running_[which], chunk.phase, chunk.ordinal, clockwise);
    put(id);
  }
  --queues_[old].running;
  admit(old);
  if (last) {
    if (running_[which].plan == nullptr) { running_.give_back(which); }
    forget_chunk(id);
  } else {
    admit(chunk.queue);
  }
}

// Through the endpoint and, if asked for, the reduction behind it; then the algorithm goes on with `step`.
void Machine::delay(std::uint32_t id, std::uint32_t step, bool reduce, const Trip& trip) {
  const Chunk& chunk = chunks_[id];
  const Phase& phase = phase_of(chunk);
  if (!phase.uses_bus) {
    const Event passed{Happening::endpoint, static_cast<std::uint8_t>(reduce ? 1 : 0), chunk.rank, id, step};
    return kernel_.after(chunk.rank, phase.endpoint_ns, passed);
  }
  BusRequest request;
  request.chunk = id;
  request.step = step;
  request.reduce = reduce;
  request.bytes = phase.method == CollectiveAlgorithm::halving_doubling ? exchange(phase, step).bytes : phase.message;
  request.work = trip.work;
  request.back = trip.back;
  buses_[chunk.rank].trip(request, trip.to_memory, kernel_.now());
}

void Machine::endpoint_passed(std::uint32_t id, std::uint32_t step, bool reduce) {
  if (!reduce) { return proceed(id, step); }
  const Chunk& chunk = chunks_[id];
  const Phase& phase = phase_of(chunk);
  const std::uint64_t time = phase.method == CollectiveAlgorithm::halving_doubling
                                 ? reduction_ns(job_.system, exchange(phase, step).bytes)
                                 : phase.reduction_ns;
  kernel_.after(chunk.rank, time, {Happening::reduced, 0, chunk.rank, id, step});
}

void Machine::proceed(std::uint32_t id, std::uint32_t step) {
  if (phase_of(chunks_[id]).method == CollectiveAlgorithm::tree) {
    tree_step(id, step);
  } else {
    token(id);
  }
}

void Machine::receive(std::uint32_t id, std::uint32_t from) {
  Chunk& chunk = chunks_[id];
  if (phase_of(chunk).method == CollectiveAlgorithm::tree) { return tree_receive(id, from); }
  ++chunk.got;
  open_slot(id);
}

}  // namespace orrery::simulate
