// Prices: which schedules compete, what a step of each costs, and which is cheapest.

#include <algorithm>
#include <array>
#include <limits>

#include "orrery/core/error.hpp"
#include "orrery/network/collective.hpp"
#include "orrery/network/pipeline.hpp"

namespace orrery::network {
namespace {

// Adding one arriving byte to a resident one: read both, write the sum.
constexpr double kAccessesPerReducedByte = 3.0;

// What a schedule is called: its most particular pattern.
Algorithm algorithm_of(const Schedule& schedule) {
  Algorithm found = Algorithm::ring;
  for (const Phase& phase : schedule.phases) {
    switch (phase.pattern) {
      case Pattern::switch_up:
      case Pattern::switch_down:
      case Pattern::multicast: return Algorithm::in_switch;
      case Pattern::tree_up:
      case Pattern::tree_down: found = Algorithm::tree; break;
      case Pattern::flat_ring: found = Algorithm::flat_ring; break;
      case Pattern::all_pairs:
      case Pattern::exchange:
        if (found == Algorithm::ring) { found = Algorithm::direct; }
        break;
      case Pattern::ring:
      case Pattern::chain:
      case Pattern::scatter: break;
    }
  }
  return found;
}

const hardware::Protocol& widest(const hardware::LinkClass& link) {
  return *std::max_element(link.protocols.begin(), link.protocols.end(),
                           [](const auto& a, const auto& b) { return a.bandwidth_fraction < b.bandwidth_fraction; });
}

StepCost cost_of(StepKind kind, const hardware::LinkClass& link, const hardware::Protocol& p, double rate) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const double seconds_per_byte = 1.0 / (rate * link.efficiency * p.bandwidth_fraction);
  const double most = p.until > Seconds() ? rate * p.until.value() : kNever;
  switch (kind) {
    case StepKind::ring: return {p.ring_base, p.ring_step, seconds_per_byte, p.own_share, most};
    case StepKind::tree: return {p.tree_base, p.tree_step, seconds_per_byte, 0.0, most};
    case StepKind::in_switch:
      return {link.in_switch_base, link.in_switch_step, 1.0 / (rate * link.in_switch_efficiency), 0.0, kNever};
    case StepKind::exchange:
      return {p.ring_base + p.exchange_base, p.ring_step, p.exchanges ? seconds_per_byte : kNever, p.own_share, kNever};
  }
  throw_internal_error("known kind of step", __FILE__, __LINE__);
}

}  // namespace

StepKind kind_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::tree_up:
    case Pattern::tree_down: return StepKind::tree;
    case Pattern::switch_up:
    case Pattern::switch_down:
    case Pattern::multicast: return StepKind::in_switch;
    case Pattern::exchange: return StepKind::exchange;
    case Pattern::flat_ring:
    case Pattern::ring:
    case Pattern::chain:
    case Pattern::scatter:
    case Pattern::all_pairs: break;
  }
  return StepKind::ring;
}

Fabric::Fabric(const hardware::Cluster& cluster, WaysOut ways_out) : cluster_(cluster), ways_out_(ways_out) {
  for (const auto& dimension : cluster.dimensions) {
    ORRERY_ASSERT(!dimension.link.protocols.empty());
    for (const auto& protocol : dimension.link.protocols) {
      if (std::find(names_.begin(), names_.end(), protocol.name) == names_.end()) { names_.push_back(protocol.name); }
    }
  }
  for (const auto& dimension : cluster.dimensions) {
    const auto& link = dimension.link;
    own_links_.push_back(dimension.wiring == hardware::Wiring::mesh || dimension.wiring == hardware::Wiring::ring);
    const double rate = dimension.rate().value();
    for (const auto name : names_) {
      const auto found = std::find_if(link.protocols.begin(), link.protocols.end(),
                                      [&](const auto& protocol) { return protocol.name == name; });
      owns_.push_back(found != link.protocols.end() ? 1 : 0);
      const auto& p = found != link.protocols.end() ? *found : widest(link);
      for (std::size_t kind = 0; kind < kStepKinds; ++kind) {
        costs_.push_back(cost_of(static_cast<StepKind>(kind), link, p, rate));
      }
    }
  }
  const double memory_rate = cluster.accelerator.memory_bandwidth.value() * cluster.accelerator.memory_efficiency;
  if (memory_rate > 0.0) { seconds_per_reduced_byte_ = kAccessesPerReducedByte / memory_rate; }
}

double Fabric::slowdown(int dimension, std::int64_t members) const {
  const auto& d = cluster_.dimensions[static_cast<std::size_t>(dimension)];
  return d.rate() / d.bandwidth_among(members);
}

double Fabric::crowding(const Shape& shape) const {
  if (ways_out_ == WaysOut::all_ports) { return 1.0; }
  std::array<std::int64_t, kMaxExtents> members{};
  members.fill(1);
  for (const StageShape& stage : shape.stages) { members[static_cast<std::size_t>(stage.dimension)] = stage.members; }
  const auto outermost = static_cast<std::size_t>(shape.outermost);
  const auto& out = cluster_.dimensions[outermost];
  const bool through_ports = out.wiring == hardware::Wiring::switched || out.wiring == hardware::Wiring::rails;
  double inside = 1.0, node = 1.0;  // members and devices of a node
  for (std::size_t d = 0; d < outermost; ++d) {
    inside *= static_cast<double>(members[d]);
    node *= static_cast<double>(cluster_.dimensions[d].size);
  }
  constexpr std::int64_t kFewNodes = 2;
  if (!through_ports || inside == 1.0 || members[outermost] <= kFewNodes) { return 1.0; }
  const bool shared = out.link.port > out.bandwidth;
  return shared ? std::max(1.0, node * (out.bandwidth / out.link.port)) : inside;
}

bool Fabric::feasible(Algorithm algorithm, int dimension) const {
  const auto& d = cluster_.dimensions[static_cast<std::size_t>(dimension)];
  const bool through_switch = d.wiring == hardware::Wiring::switched || d.wiring == hardware::Wiring::rails;
  switch (algorithm) {
    case Algorithm::ring:
    case Algorithm::flat_ring: return true;
    case Algorithm::tree: return through_switch;
    case Algorithm::direct: return through_switch || d.wiring == hardware::Wiring::mesh;
    case Algorithm::in_switch: return through_switch && d.link.in_switch_efficiency > 0.0;
    case Algorithm::automatic: return false;
  }
  return false;
}

// What needs nothing but links: along a mesh everyone reaches everyone, and rings only take more steps for the bytes.
Algorithm Fabric::plain(int dimension) const {
  const auto wiring = cluster_.dimensions[static_cast<std::size_t>(dimension)].wiring;
  return wiring == hardware::Wiring::mesh ? Algorithm::direct : Algorithm::ring;
}

// Libraries build trees between nodes; inside a node they run chains, whose latency is a ring's.
bool Fabric::offers_tree(Collective collective, const Extent& outermost) const {
  const auto wiring = cluster_.dimensions[static_cast<std::size_t>(outermost.dimension)].wiring;
  return (collective == Collective::all_reduce || collective == Collective::broadcast) &&
         (wiring == hardware::Wiring::rails || (outermost.dimension > 0 && wiring == hardware::Wiring::switched));
}

// Between nodes, libraries lay rings through all members, a part of the buffer each, so that every member's NIC is the
// way out of its node in one of them. Along a torus every axis has its own.
bool Fabric::offers_flat_ring(Collective collective, const Extents& extents) const {
  const bool passes = collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
                      collective == Collective::all_gather;
  return passes && extents.size() > 1 && std::none_of(extents.begin(), extents.end(), [&](const Extent& extent) {
           return cluster_.dimensions[static_cast<std::size_t>(extent.dimension)].wiring == hardware::Wiring::ring;
         });
}

// One recipe for an algorithm that was asked for by name, and for all_to_all.
Fabric::Recipes Fabric::named_recipe(const Extents& extents, Algorithm asked) const {
  Recipe recipe{};
  for (std::size_t e = 0; e < extents.size(); ++e) {
    recipe[e] = asked;
    if (asked == Algorithm::tree && e + 1 < extents.size()) { recipe[e] = Algorithm::ring; }
    if (asked == Algorithm::automatic) {
      recipe[e] = feasible(Algorithm::direct, extents[e].dimension) ? Algorithm::direct : Algorithm::ring;
    }
    if (!feasible(recipe[e], extents[e].dimension)) { return {}; }
  }
  Recipes found;
  found.push_back(recipe);
  return found;
}

// The combinations that compete: one choice for all inner extents (the switch only where it can reduce, links
// elsewhere) times one for the outermost.
Fabric::Recipes Fabric::recipes(Collective collective, const Extents& extents, Algorithm asked) const {
  const bool open = asked == Algorithm::automatic || asked == Algorithm::in_switch;
  if (!open || collective == Collective::all_to_all) { return named_recipe(extents, asked); }
  const std::size_t outermost = extents.size() - 1;
  const Extent& outer = extents[outermost];
  const bool tree = offers_tree(collective, outer);
  const bool outer_switch = feasible(Algorithm::in_switch, outer.dimension);
  const bool flat = asked == Algorithm::automatic && offers_flat_ring(collective, extents);
  Recipes found;
  if (flat) {
    Recipe ring{};
    ring.fill(Algorithm::flat_ring);
    found.push_back(ring);
  }
  for (const bool inside : {false, true}) {
    Recipe recipe{};
    bool switched = false;
    for (std::size_t e = 0; e < outermost; ++e) {
      const bool here = inside && feasible(Algorithm::in_switch, extents[e].dimension);
      recipe[e] = here ? Algorithm::in_switch : plain(extents[e].dimension);
      switched = switched || here;
    }
    if (inside && !switched) { continue; }
    const auto add = [&](Algorithm algorithm) {
      recipe[outermost] = algorithm;
      if (asked == Algorithm::automatic || switched || algorithm == asked) { found.push_back(recipe); }
    };
    if (!flat) { add(Algorithm::ring); }
    if (plain(outer.dimension) == Algorithm::direct) { add(Algorithm::direct); }
    if (tree) { add(Algorithm::tree); }
    if (outer_switch) { add(Algorithm::in_switch); }
  }
  return found;
}

// The cheapest so far, before it is taken apart.
struct Fabric::Candidate {
  Seconds time = infinite<Seconds>();
  Pipeline pipeline;
  std::int64_t chunks = 1;
  std::size_t protocol = 0;
};

// Replaces `best` if some protocol of the outermost link class is cheaper; `chunks` = 0 chooses the chunk count too.
bool Fabric::improve(const Shape& shape, std::int64_t chunks, Candidate& best) const {
  bool improved = false;
  for (std::size_t protocol = 0; protocol < names_.size(); ++protocol) {
    if (owns_[static_cast<std::size_t>(shape.outermost) * names_.size() + protocol] == 0) { continue; }
    if (!takes(*this, shape, protocol)) { continue; }
    const Pipeline pipeline = make_pipeline(*this, shape, protocol);
    Chunking chosen{chunks, Seconds()};
    if (chunks == 0) {
      const PortBounds bounds = port_bounds(pipeline);
      const double limit = (best.time - pipeline.base).value();
      if (std::any_of(bounds.begin(), bounds.end(), [=](const PortBound& port) { return port.excludes(limit); })) {
        continue;
      }
      chosen = best_chunks(pipeline, bounds);
    } else {
      chosen.time = pipeline_total(pipeline, chunks);
    }
    if (pipeline.base + chosen.time >= best.time) { continue; }
    best = {pipeline.base + chosen.time, pipeline, chosen.chunks, protocol};
    improved = true;
  }
  return improved;
}

Price Fabric::explained(const Candidate& candidate, Algorithm algorithm) const {
  const PipelineTime terms = pipeline_time(candidate.pipeline, candidate.chunks);
  const Seconds base = candidate.pipeline.base;
  return {base + terms.total(),
          base,
          terms.latency,
          terms.bandwidth,
          terms.reduction,
          algorithm,
          names_[candidate.protocol],
          candidate.chunks};
}

Fabric::Choice Fabric::cheapest(Collective collective, Bytes bytes, const Group& group, Algorithm algorithm) const {
  Choice choice;
  const Extents extents = effective_extents(group);
  if (extents.empty() || bytes <= Bytes()) { return choice; }
  for (const Extent& extent : extents) {
    ORRERY_ASSERT(extent.dimension >= 0 && static_cast<std::size_t>(extent.dimension) < cluster_.dimensions.size());
  }
  const bool rings_only = !group.regular && collective != Collective::all_to_all;
  Candidate best;
  Algorithm label = algorithm;
  for (const Recipe& recipe : recipes(collective, extents, rings_only ? Algorithm::ring : algorithm)) {
    const Schedule schedule = make_schedule(collective, recipe, bytes, group);
    if (schedule.phases.empty() || !improve(shape_of(schedule), 0, best)) { continue; }
    choice.recipe = recipe;
    label = algorithm_of(schedule);
  }
  choice.price.time = infinite<Seconds>();
  choice.price.algorithm = algorithm;
  if (best.time < infinite<Seconds>()) { choice.price = explained(best, label); }
  return choice;
}

Price Fabric::price(Collective collective, Bytes bytes, const Group& group, Algorithm algorithm) const {
  return cheapest(collective, bytes, group, algorithm).price;
}

Price Fabric::price(const Schedule& schedule) const {
  Candidate best;
  if (schedule.phases.empty()) { return {}; }
  improve(shape_of(schedule), schedule.chunks, best);
  return explained(best, algorithm_of(schedule));
}

Schedule Fabric::schedule(Collective collective, Bytes bytes, const Group& group, Algorithm algorithm) const {
  const Choice choice = cheapest(collective, bytes, group, algorithm);
  Schedule schedule = make_schedule(collective, choice.recipe, bytes, group);
  schedule.chunks = choice.price.chunks;
  return schedule;
}

Seconds Fabric::transfer(Bytes bytes, int dimension) const {
  const auto& d = cluster_.dimensions.at(static_cast<std::size_t>(dimension));
  return d.link.latency + bytes / (d.bandwidth_among(2) * d.link.efficiency);
}

}  // namespace orrery::network
