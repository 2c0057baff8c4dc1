// Collectives of graphs and plans that the switches of a topology carry out (network/switch_tree.hpp), each as one
// call: its time alone is the closed form (network/tree_time.hpp). Private to the room.
//
// A call takes the switches if that is shorter than its way over links, both alone, and if some tree has room: a switch
// serves so many groups at once (hardware::InSwitchLimits). Calls that start at one instant ask in the order of their
// ranks, so with a limit the result can depend on the numbers of ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/core/collective.hpp"
#include "orrery/core/units.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/network/switch_tree.hpp"
#include "orrery/network/tree_price.hpp"

namespace orrery::simulate {

class SwitchCalls {
 public:
  // The cluster's topology has in_switch. Both outlive the object.
  SwitchCalls(const hardware::Cluster& cluster, const hardware::Topology& topology);

  using LinkTime = network::TreeWay::LinkTime;
  struct Way : network::TreeWay {
    std::vector<std::uint32_t> switches;  // nodes that take part
  };
  struct Asked {
    std::uint32_t group = 0;  // number: groups take different tops
    Collective collective = Collective::all_reduce;
    Bytes bytes;                         // whole buffer of a member
    std::vector<std::uint32_t> devices;  // of the members
    std::string_view protocol;           // of the closed form; empty: none
    Seconds otherwise;                   // time without switches
  };

  // Takes the switches of a way; nullptr: the call uses links. Ways live as long as the object.
  [[nodiscard]] const Way* take(const Asked& asked);
  void give_back(const Way& way);

  // Why calls did not use switches, for warnings; empty: none was refused.
  [[nodiscard]] std::vector<std::string> refusals() const;
  [[nodiscard]] std::uint64_t served() const { return served_calls_; }

 private:
  [[nodiscard]] const std::optional<network::SwitchTree>& tree(const Asked& asked, std::uint32_t which);
  [[nodiscard]] const Way& way(const Asked& asked, const network::SwitchTree& tree, std::uint32_t which);
  [[nodiscard]] bool has_room(const network::SwitchTree& tree) const;

  const hardware::Cluster& cluster_;
  const hardware::Topology& topology_;
  hardware::InSwitchLimits limits_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::optional<network::SwitchTree>> trees_;  // by group and top
  std::map<std::tuple<std::uint32_t, std::uint32_t, Collective, double>, Way> ways_;
  std::vector<std::int64_t> served_;  // groups at this time, by node
  std::uint64_t served_calls_ = 0, without_room_ = 0, over_buffer_ = 0;
};

}  // namespace orrery::simulate
