// The price of a collective in the switches of a topology, for the closed form: one call of a process group while all
// groups of its kind make theirs, as the ranks of a plan do.
//
// The groups of a kind are taken as blocks of neighbouring positions on each dimension. Left out: groups of other kinds
// at the same time, groups whose nodes have unequal numbers of members (they use links), chunks that wait for each
// other where groups share a link.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/core/units.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/network/group.hpp"
#include "orrery/network/switch_tree.hpp"

namespace orrery::network {

// One call on a tree of switches that has its links for itself.
struct TreeWay {
  struct LinkTime {
    std::uint32_t link = 0;  // of the topology
    double bytes = 0;
    Seconds time;  // that the bytes need of the link
  };
  Seconds time, base, latency;  // the base of the library and the latency of links are parts of the time
  std::vector<LinkTime> links;
  double payload = 1;  // of the devices' links
};

// `protocol`: of the closed form's choice; empty: the one with the most payload. The limits of the cluster's topology
// hold the operation: tree_chunks() is not 0.
[[nodiscard]] TreeWay tree_way(const hardware::Cluster& cluster, const hardware::Topology& topology,
                               const TreeCall& call, std::string_view protocol);

struct TreePrice {
  Seconds time, base, latency;  // with the other groups of the kind
  std::int64_t chunks = 1;
  int dimension = 0;     // of the devices' links
  Seconds out, in;       // that a device's links carry the call, mean of the members
  Bytes sent, received;  // by a member, mean
};

// Safe to share between threads. The cluster outlives it.
class TreePrices {
 public:
  // The cluster's topology has in_switch.
  explicit TreePrices(const hardware::Cluster& cluster);

  // Nothing: no tree of switches has all members, the operation is none of switches', a limit is exceeded, or the
  // search for trees would take too long (kMostWork).
  [[nodiscard]] std::optional<TreePrice> price(Collective collective, Bytes bytes, const Group& group,
                                               std::string_view protocol) const;

 private:
  static constexpr double kMostWork = 3e8;  // groups x switches x (nodes + links)

  // The trees of the groups of a kind.
  struct Trees {
    std::optional<SwitchTree> first;       // nothing: the groups use links
    std::uint32_t device = 0;              // a member of the first group
    std::vector<double> groups_on_levels;  // by level of the topology: the most trees that share one of its links
  };

  [[nodiscard]] const Trees& trees_of(const Group& group) const;
  [[nodiscard]] Trees made_trees(const Group& group) const;
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> devices_of(const Group& group) const;

  const hardware::Cluster& cluster_;
  hardware::Topology topology_;
  hardware::InSwitchLimits limits_;
  mutable std::mutex mutex_;
  mutable std::map<std::vector<std::int64_t>, Trees> trees_;  // by members on each dimension
};

}  // namespace orrery::network
