// Prices: which schedules compete, what a step of each costs, and which is cheapest.

#include <algorithm>
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
      case Pattern::all_pairs: if (found == Algorithm::ring) { found = Algorithm::direct; } break;
      case Pattern::ring:
      case Pattern::chain:
      case Pattern::scatter: break;
    }
  }
  return found;
}

int outermost_dimension(const Schedule& schedule) {
  int outermost = 0;
  for (const Phase& phase : schedule.phases) { outermost = std::max(outermost, phase.dimension); }
  return outermost;
}

}  // namespace

Fabric::Fabric(const hardware::Cluster& cluster) : cluster_(cluster) {
  for (const auto& dimension : cluster.dimensions) {
    ORRERY_ASSERT(!dimension.link.protocols.empty());
    for (const auto& protocol : dimension.link.protocols) {
      if (std::find(names_.begin(), names_.end(), protocol.name) == names_.end()) { names_.push_back(protocol.name); }
    }
  }
  for (const auto& dimension : cluster.dimensions) {
    const auto& link = dimension.link;
    const auto widest = std::max_element(
        link.protocols.begin(), link.protocols.end(),
        [](const auto& a, const auto& b) { return a.bandwidth_fraction < b.bandwidth_fraction; });
    for (const auto name : names_) {
      const auto found = std::find_if(link.protocols.begin(), link.protocols.end(),
                                      [&](const auto& protocol) { return protocol.name == name; });
      const auto& p = found == link.protocols.end() ? *widest : *found;
      const double rate = dimension.bandwidth.value() * link.efficiency * p.bandwidth_fraction;
      rates_.push_back({found != link.protocols.end(), p.ring_base, p.ring_step, p.tree_base, p.tree_step, 1.0 / rate});
    }
    const double switch_rate = dimension.bandwidth.value() * link.in_switch_efficiency;
    in_switch_seconds_per_byte_.push_back(switch_rate > 0.0 ? 1.0 / switch_rate : 0.0);
  }
  const double memory_rate = cluster.accelerator.memory_bandwidth.value() * cluster.accelerator.memory_efficiency;
  if (memory_rate > 0.0) { seconds_per_reduced_byte_ = kAccessesPerReducedByte / memory_rate; }
}

Fabric::StepCost Fabric::step_cost(const Phase& phase, std::size_t protocol) const {
  const auto dimension = static_cast<std::size_t>(phase.dimension);
  const Rates& rates = rates_[dimension * names_.size() + protocol];
  switch (phase.pattern) {
    case Pattern::tree_up:
    case Pattern::tree_down: return {rates.tree_base, rates.tree_step, rates.seconds_per_byte};
    case Pattern::switch_up:
    case Pattern::switch_down:
    case Pattern::multicast: {
      const auto& link = cluster_.dimensions[dimension].link;
      return {link.in_switch_base, link.in_switch_step, in_switch_seconds_per_byte_[dimension]};
    }
    case Pattern::ring:
    case Pattern::chain:
    case Pattern::scatter:
    case Pattern::all_pairs: break;
  }
  return {rates.ring_base, rates.ring_step, rates.seconds_per_byte};
}

bool Fabric::feasible(Algorithm algorithm, int dimension) const {
  const auto d = static_cast<std::size_t>(dimension);
  const bool through_switch = cluster_.dimensions[d].wiring != hardware::Wiring::ring;
  switch (algorithm) {
    case Algorithm::ring: return true;
    case Algorithm::tree:
    case Algorithm::direct: return through_switch;
    case Algorithm::in_switch: return through_switch && in_switch_seconds_per_byte_[d] > 0.0;
    case Algorithm::automatic: return false;
  }
  return false;
}

// Libraries build trees between nodes; inside a node they run chains, whose latency is a ring's.
bool Fabric::offers_tree(Collective collective, const Extent& outermost) const {
  const auto wiring = cluster_.dimensions[static_cast<std::size_t>(outermost.dimension)].wiring;
  return (collective == Collective::all_reduce || collective == Collective::broadcast) &&
         (wiring == hardware::Wiring::rails || (outermost.dimension > 0 && wiring == hardware::Wiring::switched));
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

// The combinations that compete: one choice for all inner extents (the switch only where it can reduce, rings
// elsewhere) times one for the outermost.
Fabric::Recipes Fabric::recipes(Collective collective, const Extents& extents, Algorithm asked) const {
  const bool open = asked == Algorithm::automatic || asked == Algorithm::in_switch;
  if (!open || collective == Collective::all_to_all) { return named_recipe(extents, asked); }
  const std::size_t outermost = extents.size() - 1;
  const Extent& outer = extents[outermost];
  const bool tree = offers_tree(collective, outer);
  const bool outer_switch = feasible(Algorithm::in_switch, outer.dimension);
  Recipes found;
  for (const Algorithm inside : {Algorithm::ring, Algorithm::in_switch}) {
    Recipe recipe{};
    bool switched = false;
    for (std::size_t e = 0; e < outermost; ++e) {
      recipe[e] = feasible(inside, extents[e].dimension) ? inside : Algorithm::ring;
      switched = switched || recipe[e] == Algorithm::in_switch;
    }
    if (inside == Algorithm::in_switch && !switched) { continue; }
    const auto add = [&](Algorithm algorithm) {
      recipe[outermost] = algorithm;
      if (asked == Algorithm::automatic || switched || algorithm == asked) { found.push_back(recipe); }
    };
    add(Algorithm::ring);
    if (tree) { add(Algorithm::tree); }
    if (outer_switch) { add(Algorithm::in_switch); }
  }
  return found;
}

// Replaces `best` by the price of `candidate` under its cheapest protocol and chunk count, if that is cheaper.
bool Fabric::improve(const Schedule& candidate, bool choose_chunks, Price& best) const {
  bool improved = false;
  const Rates* const outermost = &rates_[static_cast<std::size_t>(outermost_dimension(candidate)) * names_.size()];
  for (std::size_t protocol = 0; protocol < names_.size(); ++protocol) {
    if (!outermost[protocol].own) { continue; }
    const Pipeline pipeline = make_pipeline(*this, candidate, protocol);
    if (pipeline.base + pipeline_bound(pipeline) >= best.time) { continue; }
    const std::int64_t chunks = choose_chunks ? best_chunks(pipeline) : candidate.chunks;
    const PipelineTime terms = pipeline_time(pipeline, chunks);
    const Seconds time = pipeline.base + terms.total();
    if (time >= best.time) { continue; }
    improved = true;
    best = {time, pipeline.base, terms.latency, terms.bandwidth, terms.reduction, {}, names_[protocol], chunks};
  }
  if (improved) { best.algorithm = algorithm_of(candidate); }
  return improved;
}

Fabric::Choice Fabric::cheapest(Collective collective, Bytes bytes, const Group& group, Algorithm algorithm) const {
  Choice best;
  const Extents extents = effective_extents(group);
  if (extents.empty() || bytes <= Bytes()) { return best; }
  for (const Extent& extent : extents) {
    ORRERY_ASSERT(extent.dimension >= 0 && static_cast<std::size_t>(extent.dimension) < cluster_.dimensions.size());
  }
  best.price.time = infinite<Seconds>();
  best.price.algorithm = algorithm;
  const bool rings_only = !group.regular && collective != Collective::all_to_all;
  for (const Recipe& recipe : recipes(collective, extents, rings_only ? Algorithm::ring : algorithm)) {
    const Schedule candidate = make_schedule(collective, recipe, bytes, group);
    if (!candidate.phases.empty() && improve(candidate, true, best.price)) { best.recipe = recipe; }
  }
  return best;
}

Price Fabric::price(Collective collective, Bytes bytes, const Group& group, Algorithm algorithm) const {
  return cheapest(collective, bytes, group, algorithm).price;
}

Price Fabric::price(const Schedule& schedule) const {
  Price price;
  if (schedule.phases.empty()) { return price; }
  price.time = infinite<Seconds>();
  improve(schedule, false, price);
  return price;
}

Schedule Fabric::schedule(Collective collective, Bytes bytes, const Group& group, Algorithm algorithm) const {
  const Choice choice = cheapest(collective, bytes, group, algorithm);
  Schedule schedule = make_schedule(collective, choice.recipe, bytes, group);
  schedule.chunks = choice.price.chunks;
  return schedule;
}

Seconds Fabric::transfer(Bytes bytes, int dimension) const {
  const auto& d = cluster_.dimensions.at(static_cast<std::size_t>(dimension));
  return d.link.latency + bytes / (d.bandwidth * d.link.efficiency);
}

}  // namespace orrery::network
