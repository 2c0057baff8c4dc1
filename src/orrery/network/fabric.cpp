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

bool uses_switch(const Schedule& schedule) {
  return std::any_of(schedule.phases.begin(), schedule.phases.end(), [](const Phase& phase) {
    return phase.pattern == Pattern::switch_up || phase.pattern == Pattern::switch_down ||
           phase.pattern == Pattern::multicast;
  });
}

Algorithm algorithm_of(const Schedule& schedule) {
  if (uses_switch(schedule)) { return Algorithm::in_switch; }
  for (const Phase& phase : schedule.phases) {
    if (phase.pattern == Pattern::tree_up || phase.pattern == Pattern::tree_down) { return Algorithm::tree; }
  }
  for (const Phase& phase : schedule.phases) {
    if (phase.pattern == Pattern::all_pairs) { return Algorithm::direct; }
  }
  return Algorithm::ring;
}

// Algorithms in the order of preference among equals.
struct Styles {
  std::array<Algorithm, 4> items{};
  std::size_t size = 0;
  void add(Algorithm algorithm) { items[size++] = algorithm; }
};

// What the inner extents of a hierarchical schedule may run.
Styles inner_styles(Algorithm asked) {
  Styles styles;
  switch (asked) {
    case Algorithm::automatic:
    case Algorithm::in_switch: styles.add(Algorithm::ring); styles.add(Algorithm::in_switch); break;
    case Algorithm::ring:
    case Algorithm::tree: styles.add(Algorithm::ring); break;
    case Algorithm::direct: styles.add(Algorithm::direct); break;
  }
  return styles;
}

Styles outer_styles(Algorithm asked, Collective collective) {
  Styles styles;
  if (asked != Algorithm::automatic && asked != Algorithm::in_switch) {
    styles.add(asked);
    return styles;
  }
  styles.add(Algorithm::ring);
  if (collective == Collective::all_reduce || collective == Collective::broadcast) { styles.add(Algorithm::tree); }
  styles.add(Algorithm::in_switch);
  return styles;
}

}  // namespace

struct Fabric::Choice {
  Schedule schedule;
  std::size_t protocol = 0;
  Seconds time = infinite<Seconds>();
};

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

// Keeps the cheapest protocol and chunk count of `candidate` if it beats `best`.
void Fabric::consider(const Schedule& candidate, bool choose_chunks, Choice& best) const {
  if (candidate.phases.empty()) { return; }
  int outermost = 0;
  for (const Phase& phase : candidate.phases) { outermost = std::max(outermost, phase.dimension); }
  bool improved = false;
  std::int64_t chunks = candidate.chunks;
  for (std::size_t protocol = 0; protocol < names_.size(); ++protocol) {
    if (!rates_[static_cast<std::size_t>(outermost) * names_.size() + protocol].own) { continue; }
    const Pipeline pipeline = make_pipeline(*this, candidate, protocol);
    if (pipeline.base + pipeline_bound(pipeline) >= best.time) { continue; }
    const std::int64_t tried = choose_chunks ? best_chunks(pipeline) : candidate.chunks;
    const Seconds time = pipeline.base + pipeline_time(pipeline, tried).total();
    if (time < best.time) {
      best.time = time;
      best.protocol = protocol;
      chunks = tried;
      improved = true;
    }
  }
  if (improved) {
    best.schedule = candidate;
    best.schedule.chunks = chunks;
  }
}

Fabric::Choice Fabric::cheapest(Collective collective, Bytes bytes, const Group& group, Algorithm algorithm) const {
  Choice best;
  const auto extents = effective_extents(group);
  for (const Extent& extent : extents) {
    ORRERY_ASSERT(static_cast<std::size_t>(extent.dimension) < cluster_.dimensions.size());
  }
  if (extents.empty() || bytes <= Bytes()) { return best; }
  const std::size_t outermost = extents.size() - 1;
  Recipe recipe{};
  if (collective == Collective::all_to_all) {
    for (std::size_t e = 0; e <= outermost; ++e) {
      recipe[e] = feasible(Algorithm::direct, extents[e].dimension) ? Algorithm::direct : Algorithm::ring;
      if (algorithm != Algorithm::automatic) { recipe[e] = algorithm; }
      if (!feasible(recipe[e], extents[e].dimension)) { return best; }
    }
    consider(make_schedule(collective, recipe, bytes, group), true, best);
    return best;
  }
  const Algorithm asked = group.regular ? algorithm : Algorithm::ring;
  const Styles inner = inner_styles(asked);
  const Styles outer = outer_styles(asked, collective);
  for (std::size_t i = 0; i < inner.size; ++i) {
    bool differs = i == 0;
    bool possible = true;
    for (std::size_t e = 0; e < outermost; ++e) {
      const bool can = feasible(inner.items[i], extents[e].dimension);
      differs = differs || can;
      possible = possible && (can || inner.items[i] == Algorithm::in_switch);
      recipe[e] = can ? inner.items[i] : Algorithm::ring;
    }
    for (std::size_t o = 0; differs && possible && o < outer.size; ++o) {
      if (!feasible(outer.items[o], extents[outermost].dimension)) { continue; }
      recipe[outermost] = outer.items[o];
      const Schedule candidate = make_schedule(collective, recipe, bytes, group);
      if (asked == Algorithm::in_switch && !uses_switch(candidate)) { continue; }
      consider(candidate, true, best);
    }
  }
  return best;
}

Price Fabric::explain(const Choice& choice) const {
  Price price;
  if (choice.schedule.phases.empty()) { return price; }
  const Pipeline pipeline = make_pipeline(*this, choice.schedule, choice.protocol);
  const PipelineTime terms = pipeline_time(pipeline, choice.schedule.chunks);
  price.base = pipeline.base;
  price.latency = terms.latency;
  price.bandwidth = terms.bandwidth;
  price.reduction = terms.reduction;
  price.time = pipeline.base + terms.total();
  price.algorithm = algorithm_of(choice.schedule);
  price.protocol = names_[choice.protocol];
  price.chunks = choice.schedule.chunks;
  return price;
}

Price Fabric::price(Collective collective, Bytes bytes, const Group& group, Algorithm algorithm) const {
  if (bytes <= Bytes() || effective_extents(group).empty()) { return {}; }
  const Choice choice = cheapest(collective, bytes, group, algorithm);
  if (choice.schedule.phases.empty()) {
    Price price;
    price.time = infinite<Seconds>();
    price.algorithm = algorithm;
    return price;
  }
  return explain(choice);
}

Price Fabric::price(const Schedule& schedule) const {
  Choice choice;
  consider(schedule, false, choice);
  return explain(choice);
}

Schedule Fabric::schedule(Collective collective, Bytes bytes, const Group& group, Algorithm algorithm) const {
  Choice choice = cheapest(collective, bytes, group, algorithm);
  choice.schedule.collective = collective;
  choice.schedule.bytes = bytes;
  return choice.schedule;
}

Seconds Fabric::transfer(Bytes bytes, int dimension) const {
  const auto& d = cluster_.dimensions.at(static_cast<std::size_t>(dimension));
  return d.link.latency + bytes / (d.bandwidth * d.link.efficiency);
}

}  // namespace orrery::network
