// Links the operators of a PyTorch execution trace to those of a Kineto profile of the same process: by the ids of
// their record functions where both have them, else by structure. On each thread, operators have the same order and
// names in both files; a host trace may have fewer steps than the profile.
//
// O(n log n) in the operators of both files.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"
#include "orrery/profile/host_trace.hpp"
#include "orrery/profile/profile.hpp"

namespace orrery::profile {

struct Link {
  std::vector<const Event*> event_of;  // by position of the host node; nullptr = not linked
  std::uint64_t operators = 0;         // of the host trace
  std::uint64_t linked = 0;
  bool by_id = false;                   // else by structure
  std::vector<std::uint64_t> unlinked;  // ids of operators, the first ones
  std::uint64_t device_operations = 0, linked_device_operations = 0;

  [[nodiscard]] double share() const {
    return operators == 0 ? 0 : static_cast<double>(linked) / static_cast<double>(operators);
  }
};

// Fails if the files are of different processes.
[[nodiscard]] Result<Link> link(const HostTrace& host, const Profile& device);

// The host's operators with their times, and the device operations that they launched, as a Chakra graph. ctrl_deps are
// the calling operators; device operations that no linked operator launched are left out.
[[nodiscard]] Result<graph::Graph> linked_graph(const HostTrace& host, const Profile& device, const Link& link);

}  // namespace orrery::profile
