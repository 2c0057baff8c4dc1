#include "orrery/network/fabric.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "orrery/core/error.hpp"
#include "orrery/network/chunking.hpp"
#include "orrery/network/tree_price.hpp"

namespace orrery::network {
namespace {

// Adding one arriving byte to a resident one: read both, write the sum.
constexpr double kAccessesPerReducedByte = 3.0;

// The algorithm that is reported for a schedule: in_switch, tree, flat_ring, direct, ring, whichever it has first.
CollectiveAlgorithm algorithm_of(const Schedule& schedule) {
  CollectiveAlgorithm found = CollectiveAlgorithm::ring;
  for (const SchedulePhase& phase : schedule.phases) {
    switch (phase.pattern) {
      case Pattern::switch_up:
      case Pattern::switch_down:
      case Pattern::multicast: return CollectiveAlgorithm::in_switch;
      case Pattern::tree_up:
      case Pattern::tree_down: found = CollectiveAlgorithm::tree; break;
      case Pattern::flat_ring: found = CollectiveAlgorithm::flat_ring; break;
      case Pattern::all_pairs:
      case Pattern::exchange:
        if (found == CollectiveAlgorithm::ring) { found = CollectiveAlgorithm::direct; }
        break;
      case Pattern::ring:
      case Pattern::chain:
      case Pattern::scatter: break;
    }
  }
  return found;
}

const hardware::Protocol& highest_bandwidth_protocol(const hardware::LinkClass& link) {
  return *std::max_element(link.protocols.begin(), link.protocols.end(),
                           [](const auto& a, const auto& b) { return a.bandwidth_fraction < b.bandwidth_fraction; });
}

StepCost cost_of(StepKind kind, const hardware::NetworkDimension& dimension, const hardware::Protocol& p) {
  const hardware::LinkClass& link = dimension.link;
  const double rate = dimension.rate().value();
  const Seconds further = dimension.route_latency;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const double seconds_per_byte = 1.0 / (rate * link.efficiency * p.bandwidth_fraction);
  const double most = p.until > Seconds() ? rate * p.until.value() : kNever;
  switch (kind) {
    case StepKind::ring: return {p.ring_base, p.ring_step + further, seconds_per_byte, p.own_share, most};
    case StepKind::tree: return {p.tree_base, p.tree_step + further, seconds_per_byte, 0.0, most};
    case StepKind::in_switch:
      return {link.in_switch_base, link.in_switch_step, 1.0 / (rate * link.in_switch_efficiency), 0.0, kNever};
    case StepKind::exchange:
      return {p.ring_base + p.exchange_base, p.ring_step + further, p.exchanges ? seconds_per_byte : kNever,
              p.own_share, kNever};
  }
  throw_internal_error("known kind of step", __FILE__, __LINE__);
}

// Libraries build trees between nodes. Inside a node they use chains, whose latency is that of a ring.
bool has_library_trees(const hardware::Cluster& cluster, int dimension) {
  const hardware::Wiring wiring = cluster.dimensions[static_cast<std::size_t>(dimension)].wiring;
  return hardware::joins_nodes(wiring) || (hardware::has_switch(wiring) && dimension > 0);
}

// Along a torus every axis has its own ring; elsewhere one ring may run through all members of a group.
bool has_flat_rings(hardware::Wiring wiring) { return !hardware::has_neighbours_only(wiring); }

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

Fabric::Fabric(const hardware::Cluster& cluster, NodeEgress egress) : cluster_(cluster), egress_(egress) {
  for (const auto& dimension : cluster.dimensions) {
    ORRERY_ASSERT(!dimension.link.protocols.empty());
    for (const auto& protocol : dimension.link.protocols) {
      if (std::find(names_.begin(), names_.end(), protocol.name) == names_.end()) { names_.push_back(protocol.name); }
    }
  }
  for (const auto& dimension : cluster.dimensions) {
    const auto& link = dimension.link;
    direct_links_.push_back(!hardware::has_switch(dimension.wiring));
    has_tiers_ = has_tiers_ || dimension.is_tier();
    for (const auto name : names_) {
      const auto found = std::find_if(link.protocols.begin(), link.protocols.end(),
                                      [&](const auto& protocol) { return protocol.name == name; });
      has_protocol_.push_back(found != link.protocols.end() ? 1 : 0);
      const auto& p = found != link.protocols.end() ? *found : highest_bandwidth_protocol(link);
      for (std::size_t kind = 0; kind < kStepKinds; ++kind) {
        costs_.push_back(cost_of(static_cast<StepKind>(kind), dimension, p));
      }
    }
  }
  const auto rate_of = [](const hardware::Accelerator& one) {
    return one.memory_bandwidth.value() * one.memory_efficiency;
  };
  double memory_rate = rate_of(cluster.accelerator);
  for (const hardware::Nodes& nodes : cluster.nodes) {
    memory_rate = std::min(memory_rate, rate_of(nodes.accelerator));
  }
  if (memory_rate > 0.0) { seconds_per_reduced_byte_ = kAccessesPerReducedByte / memory_rate; }
  if (cluster.topology && cluster.topology->in_switch) { trees_ = std::make_shared<TreePrices>(cluster); }
}

double Fabric::slowdown(int dimension, std::int64_t members) const {
  const auto& d = cluster_.dimensions[static_cast<std::size_t>(dimension)];
  return d.rate() / d.bandwidth_among(members);
}

Seconds Fabric::peer_messages(int dimension, std::int64_t members) const {
  const auto& link = cluster_.dimensions[static_cast<std::size_t>(dimension)].link;
  return link.exchange_peer * static_cast<double>(std::max<std::int64_t>(members - 2, 0));
}

double Fabric::port_contention(const ScheduleShape& shape) const {
  if (egress_ == NodeEgress::all_ports) { return 1.0; }
  std::array<std::int64_t, kMaxExtents> members{};
  members.fill(1);
  for (const StageShape& stage : shape.stages) { members[static_cast<std::size_t>(stage.dimension)] = stage.members; }
  const auto outermost = static_cast<std::size_t>(shape.outermost);
  const auto& out = cluster_.dimensions[outermost];
  const bool through_ports = hardware::has_switch(out.wiring);
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

bool Fabric::feasible(CollectiveAlgorithm algorithm, int dimension) const {
  const auto& d = cluster_.dimensions[static_cast<std::size_t>(dimension)];
  const bool through_switch = hardware::has_switch(d.wiring);
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
    case CollectiveAlgorithm::flat_ring: return true;
    case CollectiveAlgorithm::tree: return through_switch;
    case CollectiveAlgorithm::direct: return through_switch || hardware::has_pair_links(d.wiring);
    case CollectiveAlgorithm::in_switch: return through_switch && d.link.in_switch_efficiency > 0.0;
    case CollectiveAlgorithm::halving_doubling:
    case CollectiveAlgorithm::hierarchical:
    case CollectiveAlgorithm::automatic: return false;
  }
  return false;
}

// The algorithm without a reducing switch. Along a mesh it is direct: every member has a link to every other, and rings
// take more steps for the same bytes.
CollectiveAlgorithm Fabric::links_only(int dimension) const {
  const hardware::Wiring wiring = cluster_.dimensions[static_cast<std::size_t>(dimension)].wiring;
  return hardware::has_pair_links(wiring) ? CollectiveAlgorithm::direct : CollectiveAlgorithm::ring;
}

// NCCL broadcasts along rings only (its tuning of algorithms, src/graph/tuning.cc, read 2026-11).
bool Fabric::offers_tree(Collective collective, const Extent& outermost) const {
  return collective == Collective::all_reduce && has_library_trees(cluster_, outermost.dimension);
}

// Between nodes, libraries build as many rings through all members as a node has members, each with a part of the
// buffer. Every member's NIC is the egress of its node in one of them.
bool Fabric::offers_flat_ring(Collective collective, const Extents& extents) const {
  const bool has_flat_ring = collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
                             collective == Collective::all_gather;
  return has_flat_ring && extents.size() > 1 && std::all_of(extents.begin(), extents.end(), [&](const Extent& extent) {
           return has_flat_rings(cluster_.dimensions[static_cast<std::size_t>(extent.dimension)].wiring);
         });
}

// One recipe for an algorithm that was requested by name, and for all_to_all.
Fabric::Recipes Fabric::named_recipe(const Extents& extents, CollectiveAlgorithm requested) const {
  Recipe recipe{};
  for (std::size_t e = 0; e < extents.size(); ++e) {
    recipe[e] = requested;
    if (requested == CollectiveAlgorithm::tree && e + 1 < extents.size()) { recipe[e] = CollectiveAlgorithm::ring; }
    if (requested == CollectiveAlgorithm::automatic || requested == CollectiveAlgorithm::hierarchical) {
      recipe[e] = feasible(CollectiveAlgorithm::direct, extents[e].dimension) ? CollectiveAlgorithm::direct
                                                                              : CollectiveAlgorithm::ring;
    }
    if (!feasible(recipe[e], extents[e].dimension)) { return {}; }
  }
  Recipes found;
  found.push_back(recipe);
  return found;
}

// The combinations that are compared: one choice for all inner extents (in_switch where the switch can reduce, links
// elsewhere) times one for the outermost. hierarchical: those without a flat ring and without switches that reduce.
Fabric::Recipes Fabric::recipes(Collective collective, const Extents& extents, CollectiveAlgorithm requested) const {
  const bool by_dimension = requested == CollectiveAlgorithm::hierarchical;
  const bool is_free_choice =
      by_dimension || requested == CollectiveAlgorithm::automatic || requested == CollectiveAlgorithm::in_switch;
  if (!is_free_choice || collective == Collective::all_to_all) { return named_recipe(extents, requested); }
  const std::size_t outermost = extents.size() - 1;
  const Extent& outer = extents[outermost];
  const bool tree = offers_tree(collective, outer);
  const bool outer_switch = !by_dimension && feasible(CollectiveAlgorithm::in_switch, outer.dimension);
  const bool flat = requested == CollectiveAlgorithm::automatic && offers_flat_ring(collective, extents);
  Recipes found;
  if (flat) {
    Recipe ring{};
    ring.fill(CollectiveAlgorithm::flat_ring);
    found.push_back(ring);
  }
  for (const bool inside : {false, true}) {
    Recipe recipe{};
    bool switched = false;
    for (std::size_t e = 0; e < outermost; ++e) {
      const bool here = inside && !by_dimension && feasible(CollectiveAlgorithm::in_switch, extents[e].dimension);
      recipe[e] = here ? CollectiveAlgorithm::in_switch : links_only(extents[e].dimension);
      switched = switched || here;
    }
    if (inside && !switched) { continue; }
    const auto add = [&](CollectiveAlgorithm algorithm) {
      recipe[outermost] = algorithm;
      if (by_dimension || requested == CollectiveAlgorithm::automatic || switched || algorithm == requested) {
        found.push_back(recipe);
      }
    };
    if (!flat) { add(CollectiveAlgorithm::ring); }
    if (links_only(outer.dimension) == CollectiveAlgorithm::direct) { add(CollectiveAlgorithm::direct); }
    if (tree) { add(CollectiveAlgorithm::tree); }
    if (outer_switch) { add(CollectiveAlgorithm::in_switch); }
  }
  return found;
}

// The cheapest so far, without its terms.
struct Fabric::Candidate {
  Seconds time = infinite<Seconds>();
  ChunkedSchedule chunked;
  std::int64_t chunks = 1;
  std::size_t protocol = 0;
};

// Replaces `best` if some protocol of the outermost link class is cheaper; `chunks` = 0 chooses the chunk count too.
bool Fabric::improve(const ScheduleShape& shape, std::int64_t chunks, Candidate& best) const {
  bool improved = false;
  for (std::size_t protocol = 0; protocol < names_.size(); ++protocol) {
    if (has_protocol_[static_cast<std::size_t>(shape.outermost) * names_.size() + protocol] == 0) { continue; }
    if (!library_uses(*this, shape, protocol)) { continue; }
    const ChunkedSchedule chunked = chunked_schedule(*this, shape, protocol);
    Chunking chosen{chunks, Seconds()};
    if (chunks == 0) {
      const PortBounds bounds = port_bounds(chunked);
      const double limit = (best.time - chunked.base).value();
      if (std::any_of(bounds.begin(), bounds.end(), [=](const PortBound& port) { return port.excludes(limit); })) {
        continue;
      }
      chosen = best_chunks(chunked, bounds);
    } else {
      chosen.time = chunked_total(chunked, chunks);
    }
    if (chunked.base + chosen.time >= best.time) { continue; }
    best = {chunked.base + chosen.time, chunked, chosen.chunks, protocol};
    improved = true;
  }
  return improved;
}

Price Fabric::price_of(const Candidate& candidate, CollectiveAlgorithm algorithm) const {
  const ChunkedTime terms = chunked_time(candidate.chunked, candidate.chunks);
  const Seconds base = candidate.chunked.base;
  return {base + terms.total(),
          base,
          terms.latency,
          terms.bandwidth,
          terms.reduction,
          algorithm,
          names_[candidate.protocol],
          candidate.chunks};
}

Fabric::Choice Fabric::cheapest(Collective collective, Bytes bytes, const Group& group,
                                CollectiveAlgorithm algorithm) const {
  Choice choice;
  const Extents extents = effective_extents(group);
  if (extents.empty() || bytes <= Bytes()) { return choice; }
  for (const Extent& extent : extents) {
    ORRERY_ASSERT(extent.dimension >= 0 && static_cast<std::size_t>(extent.dimension) < cluster_.dimensions.size());
  }
  const bool rings_only = !group.regular && collective != Collective::all_to_all;
  Candidate best;
  CollectiveAlgorithm label = algorithm;
  for (const Recipe& recipe : recipes(collective, extents, rings_only ? CollectiveAlgorithm::ring : algorithm)) {
    const Schedule schedule = make_schedule(collective, recipe, bytes, group);
    if (schedule.phases.empty() || !improve(shape_of(schedule), 0, best)) { continue; }
    choice.recipe = recipe;
    label = algorithm_of(schedule);
  }
  choice.price.time = infinite<Seconds>();
  choice.price.algorithm = algorithm;
  if (best.time < infinite<Seconds>()) { choice.price = price_of(best, label); }
  choice.protocol = best.protocol;
  return choice;
}

Price Fabric::price(Collective collective, Bytes bytes, const Group& group, CollectiveAlgorithm algorithm) const {
  Price price = link_price(collective, bytes, group, algorithm);
  if (trees_ == nullptr || algorithm != CollectiveAlgorithm::automatic) { return price; }
  const auto traffic = tree_traffic(collective, bytes, group, price.time);
  if (!traffic) { return price; }
  Price in_trees = traffic->price;
  if (in_trees.protocol.empty()) { in_trees.protocol = price.protocol; }
  return in_trees;
}

std::optional<Traffic> Fabric::tree_traffic(Collective collective, Bytes bytes, const Group& group,
                                            Seconds otherwise) const {
  if (trees_ == nullptr || bytes <= Bytes() || group.extents.empty()) { return std::nullopt; }
  const Choice links = cheapest(collective, bytes, group, CollectiveAlgorithm::in_switch);
  const bool has_protocol = links.price.time < infinite<Seconds>();
  const std::string_view protocol = has_protocol ? names_[links.protocol] : std::string_view();
  const auto tree = trees_->price(collective, bytes, group, protocol);
  if (!tree || !(tree->time < otherwise)) { return std::nullopt; }
  const Seconds moving = tree->time - tree->base - tree->latency;
  Traffic traffic;
  traffic.price = {tree->time, tree->base,  tree->latency, moving, {}, CollectiveAlgorithm::in_switch,
                   protocol,   tree->chunks};
  traffic.ports.push_back({tree->dimension, tree->out, tree->in, tree->sent, tree->received});
  return traffic;
}

Price Fabric::link_price(Collective collective, Bytes bytes, const Group& group, CollectiveAlgorithm algorithm) const {
  Price price = cheapest(collective, bytes, group, algorithm).price;
  if (collective != Collective::all_reduce || algorithm != CollectiveAlgorithm::automatic) { return price; }
  const Seconds direct = direct_all_reduce(bytes, group);
  if (!(direct < price.time)) { return price; }
  const Seconds base = min(direct, one_shot_);
  return {direct, base, {}, direct - base, {}, CollectiveAlgorithm::direct, price.protocol, 1};
}

Seconds Fabric::direct_all_reduce(Bytes bytes, const Group& group) const {
  constexpr Bytes kMostBytes{8.0 * 1048576.0};  // buffers of vLLM's and TensorRT-LLM's kernels
  constexpr double kSecondBarrier = 0.5;        // of the first one's time: two-shot
  if (!(one_shot_ > Seconds(0)) || bytes > kMostBytes || bytes == Bytes(0)) { return infinite<Seconds>(); }
  if (group.extents.size() != 1 || (*group.extents.begin()).dimension != 0) { return infinite<Seconds>(); }
  const std::int64_t members = (*group.extents.begin()).members;
  const auto& dimension = cluster_.dimensions.front();
  if (members < 2 || hardware::has_neighbours_only(dimension.wiring)) { return infinite<Seconds>(); }
  const auto n = static_cast<double>(members);
  const Seconds buffer = bytes / (dimension.bandwidth_among(members) * dimension.link.efficiency);
  return min(one_shot_ + (n - 1.0) * buffer, (1.0 + kSecondBarrier) * one_shot_ + 2.0 * (n - 1.0) / n * buffer);
}

// Steps of a level that uses other links than the level before load a port once; what a kernel copies besides
// (StageShape::own) loads none.
Traffic Fabric::traffic(Collective collective, Bytes bytes, const Group& group, CollectiveAlgorithm algorithm) const {
  const Choice choice = cheapest(collective, bytes, group, algorithm);
  Traffic traffic{choice.price, {}};
  if (choice.price.time <= Seconds() || choice.price.time == infinite<Seconds>()) { return traffic; }
  const ScheduleShape shape = shape_of(make_schedule(collective, choice.recipe, bytes, group));
  for (const StageShape& stage : shape.stages) {
    const double per_byte =
        stage_cost(*this, shape, stage, choice.protocol).seconds_per_byte /
        (direct_links_[static_cast<std::size_t>(stage.dimension)] != 0 ? slowdown(stage.dimension, stage.members)
                                                                       : 1.0);
    PortLoad* load = std::find_if(traffic.ports.begin(), traffic.ports.end(),
                                  [&](const PortLoad& port) { return port.dimension == stage.dimension; });
    if (load == traffic.ports.end()) {
      traffic.ports.push_back({stage.dimension, {}, {}, {}, {}});
      load = traffic.ports.end() - 1;
    }
    load->out += Seconds(stage.sent.value() * per_byte);
    load->in += Seconds(stage.received.value() * per_byte);
    load->sent += stage.sent;
    load->received += stage.received;
  }
  pass_inner_ports(traffic);
  return traffic;
}

// Bytes that cross a tier of switches pass the ports of the next inner dimension, too, at that dimension's rate,
// and of the one below that, if it is a tier itself.
void Fabric::pass_inner_ports(Traffic& traffic) const {
  if (!has_tiers_) { return; }
  for (std::size_t d = cluster_.dimensions.size(); d-- > 1;) {
    if (!cluster_.dimensions[d].is_tier()) { continue; }
    const auto of = [&](std::size_t dimension) {
      return std::find_if(traffic.ports.begin(), traffic.ports.end(),
                          [&](const PortLoad& port) { return port.dimension == static_cast<int>(dimension); });
    };
    if (of(d) == traffic.ports.end()) { continue; }
    const PortLoad tier = *of(d);
    if (of(d - 1) == traffic.ports.end()) { traffic.ports.push_back({static_cast<int>(d) - 1, {}, {}, {}, {}}); }
    const double share = payload_rate(d) / payload_rate(d - 1);
    PortLoad& inner = *of(d - 1);
    inner.out += tier.out * share;
    inner.in += tier.in * share;
    inner.sent += tier.sent;
    inner.received += tier.received;
  }
}

double Fabric::payload_rate(std::size_t dimension) const {
  const auto& d = cluster_.dimensions[dimension];
  return d.rate().value() * d.link.efficiency;
}

Price Fabric::price(const Schedule& schedule) const {
  Candidate best;
  if (schedule.phases.empty()) { return {}; }
  improve(shape_of(schedule), schedule.chunks, best);
  return price_of(best, algorithm_of(schedule));
}

Schedule Fabric::schedule(Collective collective, Bytes bytes, const Group& group, CollectiveAlgorithm algorithm) const {
  const Choice choice = cheapest(collective, bytes, group, algorithm);
  Schedule schedule = make_schedule(collective, choice.recipe, bytes, group);
  schedule.chunks = choice.price.chunks;
  return schedule;
}

Seconds Fabric::transfer(Bytes bytes, int dimension) const {
  const auto& d = cluster_.dimensions.at(static_cast<std::size_t>(dimension));
  return d.link.latency + d.route_latency + bytes / (d.bandwidth_among(2) * d.link.efficiency);
}

Traffic Fabric::transfer_traffic(Bytes bytes, int dimension) const {
  const auto& d = cluster_.dimensions.at(static_cast<std::size_t>(dimension));
  Traffic traffic;
  traffic.price.time = transfer(bytes, dimension);
  const Seconds load = bytes / (d.rate() * d.link.efficiency);
  traffic.ports.push_back({dimension, load, load, bytes, bytes});
  pass_inner_ports(traffic);
  return traffic;
}

}  // namespace orrery::network
