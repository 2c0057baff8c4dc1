#include "orrery/simulate/phase.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "orrery/simulate/rank_graph.hpp"

namespace orrery::simulate {

namespace {

constexpr std::uint64_t kGroupEndpointNs =
    10;  // of groups smaller than the machine; the system file has no effect on it

struct ActiveDimension {
  Ring ring;
  std::uint32_t dimension = 0;
  DimensionAlgorithm algorithm;
};

// The dimensions of the whole machine that the list of algorithms reaches and that have more than one rank.
std::vector<ActiveDimension> active_dimensions(const Network& network,
                                               const std::vector<DimensionAlgorithm>& algorithms,
                                               std::uint16_t involved) {
  std::vector<ActiveDimension> active;
  std::uint32_t stride = 1;
  for (std::uint32_t i = 0; i < network.dimensions.size() && i < algorithms.size(); ++i) {
    const bool flat = algorithms[i].flat;
    const std::uint32_t size = flat ? network.ranks() : network.dimensions[i].ranks;
    const bool is_involved = i < 16 && ((involved >> i) & 1U) != 0;
    if (size > 1 && is_involved) { active.push_back({{size, flat ? 1 : stride, nullptr}, i, algorithms[i]}); }
    if (flat) { break; }
    stride *= size;
  }
  return active;
}

std::uint64_t output(Collective collective, CollectiveAlgorithm method, std::uint64_t size, std::uint32_t ranks) {
  if (method == CollectiveAlgorithm::tree) { return size; }
  if (collective == Collective::reduce_scatter) { return size / ranks; }
  if (collective == Collective::all_gather) { return size * ranks; }
  return size;
}

Result<void> shape(ChunkPhase& phase, const DimensionAlgorithm& algorithm, const System& system) {
  const std::uint32_t n = phase.ring.size;
  const bool has_two_passes = phase.collective == Collective::all_reduce;
  const bool group = phase.ring.members != nullptr;
  const bool is_power_of_two = std::has_single_bit(n);
  switch (phase.method) {
    case CollectiveAlgorithm::ring:
      phase.sends = has_two_passes ? 2 * (n - 1) : phase.collective == Collective::all_to_all ? n * (n - 1) / 2 : n - 1;
      phase.period = n;
      break;
    case CollectiveAlgorithm::direct:
      phase.window = std::min(algorithm.window.value_or(n - 1), n - 1);
      phase.sends = (has_two_passes ? 2 : 1) * (n - 1);
      phase.period = phase.window * (group ? n : 2);
      break;
    case CollectiveAlgorithm::halving_doubling:
      if (!is_power_of_two) { return fail(fmt::format("halvingDoubling needs a power of two; there are {} ranks", n)); }
      if (phase.collective == Collective::all_to_all) {
        return fail("halvingDoubling has no ALL_TO_ALL; valid: ring, direct");
      }
      phase.period = static_cast<std::uint32_t>(std::countr_zero(n));
      phase.sends = (has_two_passes ? 2 : 1) * phase.period;
      break;
    case CollectiveAlgorithm::in_switch:
      return fail(
          "inSwitch needs --semantics physical: no release of ASTRA-sim runs collectives in switches; one of "
          "its branches runs nodes with the attribute in_switch there");
    case CollectiveAlgorithm::automatic:
    case CollectiveAlgorithm::flat_ring:
    case CollectiveAlgorithm::hierarchical:
      return fail("no algorithm of ASTRA-sim");  // not reachable: no name has this algorithm
    case CollectiveAlgorithm::tree:
      if (!is_power_of_two) {
        return fail(fmt::format("doubleBinaryTree needs a power of two; there are {} ranks", n));
      }
      if (group) { return fail("doubleBinaryTree is not valid for a group smaller than the machine"); }
      break;
  }
  phase.message = phase.method == CollectiveAlgorithm::tree || phase.collective == Collective::all_gather
                      ? phase.size
                      : phase.size / n;
  phase.reduction_ns = reduction_ns(system, phase.message);
  phase.endpoint_ns = group ? kGroupEndpointNs : system.endpoint_delay_ns;
  phase.uses_bus = system.bus.has_value() && !group;
  return {};
}

// Of a chunk of `size` bytes among n members.
ChunkPhase in_switch_phase(Collective collective, std::uint64_t size, const std::vector<std::uint32_t>& members) {
  ChunkPhase phase;
  phase.collective = collective;
  phase.method = CollectiveAlgorithm::in_switch;
  phase.ring = {static_cast<std::uint32_t>(members.size()), 1, &members};
  phase.size = phase.message = phase.returned = size;
  if (collective == Collective::reduce_scatter) { phase.returned = size / members.size(); }
  if (collective == Collective::all_gather) { phase.returned = (members.size() - 1) * size; }
  if (collective == Collective::all_to_all) {
    phase.message = phase.returned = (members.size() - 1) * (size / members.size());
  }
  return phase;
}

class Planner {
 public:
  Planner(const System& system, std::uint64_t chunk) : system_(system), size_(chunk) {}

  void add(const ActiveDimension& active, Collective collective, QueueSet queue_set) {
    ChunkPhase phase;
    phase.collective = collective;
    phase.method = active.algorithm.method;
    phase.ring = active.ring;
    phase.dimension = active.dimension;
    phase.queue_set = queue_set;
    phase.size = size_;
    if (auto shaped = shape(phase, active.algorithm, system_); !shaped) { failure_ = shaped.error(); }
    size_ = output(collective, phase.method, size_, active.ring.size);
    sequence_.phases.push_back(phase);
  }

  Result<PhaseSequence> sequence() {
    for (ChunkPhase& phase : sequence_.phases) { count_uses(phase); }
    if (!failure_.diagnostics.empty()) { return tl::make_unexpected(failure_); }
    return sequence_;
  }

 private:
  void count_uses(ChunkPhase& phase) const {
    phase.queue_uses = phase.tree_uses = 0;
    for (const ChunkPhase& other : sequence_.phases) {
      if (other.dimension != phase.dimension) { continue; }
      const bool before = &other < &phase;
      if (other.queue_set == phase.queue_set) {
        ++phase.queue_uses;
        phase.queue_use += before ? 1 : 0;
      }
      if (other.method == CollectiveAlgorithm::tree) {
        ++phase.tree_uses;
        phase.tree_use += before ? 1 : 0;
      }
    }
  }

  const System& system_;
  std::uint64_t size_;
  PhaseSequence sequence_;
  Failure failure_;
};

// The dimensions in an order that is given; an all-reduce scatters along them and gathers back.
Result<PhaseSequence> ordered_sequence(Planner& planner, const std::vector<ActiveDimension>& active,
                                       const PhaseRequest& request, bool hierarchical) {
  std::vector<const ActiveDimension*> way;
  for (const std::uint32_t dimension : *request.order) {
    for (const ActiveDimension& one : active) {
      if (one.dimension == dimension) { way.push_back(&one); }
    }
  }
  const Collective first = hierarchical ? Collective::reduce_scatter : request.collective;
  for (const ActiveDimension* one : way) { planner.add(*one, first, QueueSet::all); }
  if (hierarchical) {
    for (std::size_t i = way.size(); i-- > 0;) { planner.add(*way[i], Collective::all_gather, QueueSet::all); }
  }
  return planner.sequence();
}

}  // namespace

ActiveDimensions active_dimensions_of(const Network& network, const System& system, const PhaseRequest& request) {
  ActiveDimensions found{std::vector<bool>(network.dimensions.size(), false), false};
  const auto* algorithms =
      std::get_if<std::vector<DimensionAlgorithm>>(&system.algorithms[static_cast<std::size_t>(request.collective)]);
  if (algorithms == nullptr) { return found; }
  for (const ActiveDimension& one : active_dimensions(network, *algorithms, request.dimensions)) {
    found.involved[one.dimension] = true;
    found.flat = found.flat || one.algorithm.flat;
  }
  return found;
}

std::uint32_t Ring::position(std::uint32_t rank) const {
  if (members == nullptr) { return rank / stride % size; }
  return static_cast<std::uint32_t>(std::find(members->begin(), members->end(), rank) - members->begin());
}

std::uint64_t whole_ns(double nanoseconds) {
  constexpr double kMost = 1e18;  // a few of these fit into the clock
  if (!(nanoseconds < kMost)) { throw TooLong{}; }
  return static_cast<std::uint64_t>(nanoseconds);
}

std::uint64_t reduction_ns(const System& system, std::uint64_t bytes) {
  if (!(system.local_memory_gb > 0)) { return 0; }
  const double pass = static_cast<double>(bytes) / (system.local_memory_gb * 1e9) * 1e9;
  return 3 * whole_ns(pass);
}

Exchange exchange(const ChunkPhase& phase, std::uint32_t slot) {
  const std::uint32_t rounds = phase.period;
  // After the last slot one more is opened, as in ASTRA-sim. It sends no message, but its bytes pass the bus.
  const auto distance = [&](std::uint32_t halvings) { return phase.ring.size >> (std::min(halvings, rounds - 1) + 1); };
  if (phase.collective == Collective::all_gather) { return {phase.size << slot, distance(slot)}; }
  if (slot < rounds || phase.collective == Collective::reduce_scatter) {
    return {phase.size >> (slot + 1), std::uint32_t{1} << std::min(slot, rounds - 1)};
  }
  // Doubling starts from a size that was halved (and rounded down) once more than there are rounds.
  const std::uint32_t back = slot - rounds;
  return {(phase.size >> (rounds + 1)) << (back + 1), distance(back)};
}

Split split(Collective collective, std::uint64_t bytes, std::uint32_t splits, std::uint32_t ranks) {
  Split split;
  split.chunk = bytes / splits;
  if (collective != Collective::all_gather && split.chunk < ranks) {
    split.chunk = ranks;
    bytes = std::uint64_t{splits} * ranks;
  }
  split.count = bytes / split.chunk + (bytes % split.chunk != 0 ? 1 : 0);
  return split;
}

Result<PhaseSequence> phase_sequence(const Network& network, const System& system, const PhaseRequest& request) {
  if (request.dimensions == kInSwitch) {
    return PhaseSequence{{in_switch_phase(request.collective, request.chunk, *request.members)}, ""};
  }
  const Choice& choice = system.algorithms[static_cast<std::size_t>(request.collective)];
  if (const auto* prefix = std::get_if<std::string>(&choice)) { return PhaseSequence{{}, *prefix}; }
  const auto& algorithms = std::get<std::vector<DimensionAlgorithm>>(choice);
  if (algorithms.size() > network.dimensions.size()) {
    return fail(fmt::format("{} algorithms are given for {}, but the network has {} dimensions", algorithms.size(),
                            name_of(request.collective), network.dimensions.size()));
  }
  const bool hierarchical =
      request.collective == Collective::all_reduce && system.optimization == Optimization::localBWAware;
  Planner planner(system, request.chunk);
  if (request.members != nullptr) {
    const DimensionAlgorithm algorithm = algorithms.size() == 1 ? algorithms.front() : DimensionAlgorithm{};
    const auto size = static_cast<std::uint32_t>(request.members->size());
    const QueueSet queue_set = hierarchical ? QueueSet::first_half : QueueSet::all;
    if (size > 1) { planner.add({{size, 1, request.members}, 0, algorithm}, request.collective, queue_set); }
    return planner.sequence();
  }
  const std::vector<ActiveDimension> active = active_dimensions(network, algorithms, request.dimensions);
  if (request.order != nullptr) { return ordered_sequence(planner, active, request, hierarchical); }
  if (!hierarchical) {
    for (std::size_t i = 0; i < active.size(); ++i) {
      const bool descending = request.collective == Collective::all_gather;
      planner.add(descending ? active[active.size() - 1 - i] : active[i], request.collective, QueueSet::all);
    }
    return planner.sequence();
  }
  for (std::size_t i = 0; i + 1 < active.size(); ++i) {
    planner.add(active[i], Collective::reduce_scatter, QueueSet::first_half);
  }
  if (!active.empty()) { planner.add(active.back(), Collective::all_reduce, QueueSet::first_half); }
  for (std::size_t i = active.size(); i-- > 1;) {
    planner.add(active[i - 1], Collective::all_gather, QueueSet::second_half);
  }
  return planner.sequence();
}

}  // namespace orrery::simulate
