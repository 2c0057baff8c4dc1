// The time of a collective on a cluster, in closed form: the schedules that are compared, the cost of their steps, and
// the cheapest. Formulas, sources and limits: docs/models/collectives.md.
//
// Left out: contention with other traffic, congestion inside a fabric, message rate of a NIC, several channels with
// different paths, stragglers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/core/units.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/network/group.hpp"
#include "orrery/network/inline_list.hpp"
#include "orrery/network/schedule.hpp"

namespace orrery::network {

// The time of one call and its terms.
struct Price {
  Seconds time;       // = base + latency + bandwidth + reduction
  Seconds base;       // launch and synchronisation, once
  Seconds latency;    // per-step latencies
  Seconds bandwidth;  // bytes over links
  Seconds reduction;  // arithmetic on arriving data, where it is slower than the link
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  std::string_view protocol;  // name in the outermost link class; empty for a group of one
  std::int64_t chunks = 1;
};

// What the busiest member of a call sends and receives along a dimension, and how long its port carries it.
struct PortLoad {
  int dimension = 0;
  Seconds out, in;  // at the full rate of the device's links along the dimension
  Bytes sent, received;
};

// A call as something that shares ports: its price if it is alone, and what it needs of the ports during that time.
struct Traffic {
  Price price;
  InlineList<PortLoad, kMaxExtents> ports;  // those with bytes; out and in <= price.time
};

// Which of a protocol's constants apply to a step.
enum class StepKind : std::uint8_t { ring, tree, in_switch, exchange };
inline constexpr std::size_t kStepKinds = 4;
[[nodiscard]] StepKind kind_of(Pattern pattern);

struct StepCost {
  Seconds base;                   // once per collective
  Seconds step;                   // once per step
  double seconds_per_byte = 0.0;  // payload through a device's port, one direction; infinite: not possible
  double own_share = 0.0;         // of SchedulePhase::own, at the same rate
  double most_bytes = 0.0;        // the largest step for which the library uses the protocol
};

struct ScheduleShape;
class TreePrices;

// How many of a node's ports the library's rings and trees use to leave it, if several of its devices are members.
enum class NodeEgress : std::uint8_t {
  all_ports,  // every device's share of the ports, each with a part of the buffer
  one_port,   // one port, unless there are only two nodes: observed with libraries of 2020 to 2022
};

// Of the rings that a stack's library makes.
[[nodiscard]] inline NodeEgress egress_of(hardware::NodePorts ports) {
  return ports == hardware::NodePorts::one ? NodeEgress::one_port : NodeEgress::all_ports;
}

// Prices collectives on one cluster. Keeps a reference: the cluster must outlive it and stay as it is.
class Fabric {
 public:
  explicit Fabric(const hardware::Cluster& cluster, NodeEgress egress = NodeEgress::all_ports);
  // With the rings, ports and small all-reduces of a stack's library.
  Fabric(const hardware::Cluster& cluster, const hardware::TransferPolicy& transfers)
      : Fabric(cluster, egress_of(transfers.ports)) {
    one_shot_ = transfers.one_shot;
  }

  // The cheapest of the algorithms that collective libraries offer (or the given one), over every protocol and chunk
  // count. A group of one, and a call without bytes, take no time. An algorithm that the group's dimensions or the
  // collective do not support takes infinite time, and so does a collective without a schedule. On a topology whose
  // switches reduce, `automatic` includes their trees (tree_price.hpp).
  [[nodiscard]] Price price(Collective collective, Bytes bytes, const Group& group,
                            CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic) const;

  // The same with the loads of ports, without trees of switches. A call that price() refuses has an infinite price and
  // no loads.
  [[nodiscard]] Traffic traffic(Collective collective, Bytes bytes, const Group& group,
                                CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic) const;

  // A call in the trees of the topology's switches, with the price that it has while the other groups of the kind make
  // theirs. Nothing where calls use links, and where that is not shorter than `otherwise`.
  [[nodiscard]] std::optional<Traffic> tree_traffic(Collective collective, Bytes bytes, const Group& group,
                                                    Seconds otherwise) const;

  // The schedule that price() chose, chunks included; of a call in trees of switches, that over links.
  [[nodiscard]] Schedule schedule(Collective collective, Bytes bytes, const Group& group,
                                  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic) const;

  // The price of a given schedule with its own chunk count and the cheapest protocol.
  [[nodiscard]] Price price(const Schedule& schedule) const;

  // One message between two devices that differ along `dimension` (and perhaps inner ones).
  [[nodiscard]] Seconds transfer(Bytes bytes, int dimension) const;

  // The same with the loads of ports: `out` of the sender, `in` of the receiver.
  [[nodiscard]] Traffic transfer_traffic(Bytes bytes, int dimension) const;

  // The cost of a step among `members` of a dimension with a protocol, by index into protocols().
  [[nodiscard]] StepCost step_cost(StepKind kind, int dimension, std::size_t protocol, std::int64_t members) const {
    const auto d = static_cast<std::size_t>(dimension);
    StepCost cost = costs_[(d * names_.size() + protocol) * kStepKinds + static_cast<std::size_t>(kind)];
    if (direct_links_[d] != 0) { cost.seconds_per_byte *= slowdown(dimension, members); }
    if (kind == StepKind::exchange) { cost.step += peer_messages(dimension, members); }
    return cost;
  }

  // Traffic of the busiest port of a node over the mean of its ports; 1 unless egress is one_port. Counts the group's
  // own traffic where every device has its own port; where devices share ports, all groups of a node are assumed to
  // use the same one (docs/models/collectives.md#single-port-per-node).
  [[nodiscard]] double port_contention(const ScheduleShape& shape) const;

  // Seconds to add one arriving byte; 0 if the cluster does not specify the memory bandwidth.
  [[nodiscard]] double seconds_per_reduced_byte() const { return seconds_per_reduced_byte_; }

  // The names of all protocols of the cluster's link classes. A link class that lacks a protocol uses the one with the
  // highest bandwidth instead.
  [[nodiscard]] const std::vector<std::string_view>& protocols() const { return names_; }

  [[nodiscard]] const hardware::Cluster& cluster() const { return cluster_; }
  // Whether a dimension is a tier of switches above the ports of another one.
  [[nodiscard]] bool has_tiers() const { return has_tiers_; }

 private:
  using Extents = InlineList<Extent, kMaxExtents>;
  using Recipes = InlineList<Recipe, 6>;
  struct Candidate;
  struct Choice {
    Recipe recipe{};
    Price price;
    std::size_t protocol = 0;
  };

  // What the messages to all peers but the first add to a direct exchange.
  [[nodiscard]] Seconds peer_messages(int dimension, std::int64_t members) const;
  // Where devices have direct links, a small group can use only some of them.
  [[nodiscard]] double slowdown(int dimension, std::int64_t members) const;
  [[nodiscard]] bool feasible(CollectiveAlgorithm algorithm, int dimension) const;
  [[nodiscard]] CollectiveAlgorithm links_only(int dimension) const;
  [[nodiscard]] bool offers_flat_ring(Collective collective, const Extents& extents) const;
  [[nodiscard]] bool offers_tree(Collective collective, const Extent& outermost) const;
  [[nodiscard]] Recipes named_recipe(const Extents& extents, CollectiveAlgorithm requested) const;
  [[nodiscard]] Recipes recipes(Collective collective, const Extents& extents, CollectiveAlgorithm requested) const;
  // price() without trees of switches.
  [[nodiscard]] Price link_price(Collective collective, Bytes bytes, const Group& group,
                                 CollectiveAlgorithm algorithm) const;
  void pass_inner_ports(Traffic& traffic) const;
  [[nodiscard]] double payload_rate(std::size_t dimension) const;  // bytes per second of large messages
  // By an engine's own kernels: every device reads the others' buffers, or reduces its part of them and reads the other
  // parts. Infinite where the stack has no such kernels, between nodes, and for more bytes than they are used for.
  [[nodiscard]] Seconds direct_all_reduce(Bytes bytes, const Group& group) const;
  bool improve(const ScheduleShape& shape, std::int64_t chunks, Candidate& best) const;
  [[nodiscard]] Price price_of(const Candidate& candidate, CollectiveAlgorithm algorithm) const;
  [[nodiscard]] Choice cheapest(Collective collective, Bytes bytes, const Group& group,
                                CollectiveAlgorithm algorithm) const;

  const hardware::Cluster& cluster_;
  NodeEgress egress_;
  std::vector<std::string_view> names_;
  std::vector<StepCost> costs_;     // [(dimension * names + protocol) * kStepKinds + kind]
  std::vector<char> has_protocol_;  // [dimension * names + protocol]: the link class has that protocol
  std::vector<char> direct_links_;  // [dimension]: a mesh or a ring
  double seconds_per_reduced_byte_ = 0.0;
  bool has_tiers_ = false;
  Seconds one_shot_;                         // TransferPolicy::one_shot
  std::shared_ptr<const TreePrices> trees_;  // null: the topology's switches do not reduce
};

}  // namespace orrery::network
