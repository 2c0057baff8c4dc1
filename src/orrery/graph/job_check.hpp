// Whether the graphs of the ranks of a job fit together: the same collectives in the same order on every member of a
// group, a receive for every send, no ranks that wait for each other in a circle.
//
// The order of a rank's collectives is run_order(): that of the file, as far as dependencies allow. Who is in a group
// comes from rank lists (of the files, or given); without one, who uses the group is in it. Collectives without a group
// are of all ranks.
//
// Sizes must be the same but for all-to-alls, gathers and scatters, where ranks may give and get different amounts:
// there a difference is told and is not unsound. Left out: collectives whose involved_dim leaves dimensions out, since
// the files do not say which ranks those are; a finding says how many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "orrery/graph/finding.hpp"
#include "orrery/graph/graph.hpp"

namespace orrery::graph {

struct JobCheckOptions {
  std::size_t examples = 3;
  bool partial = false;              // other ranks have graphs too, which are not here: nothing is missed for them
  std::vector<ProcessGroup> groups;  // rank lists beside those of the graphs
};

class JobCheck {
 public:
  explicit JobCheck(JobCheckOptions options = {});
  JobCheck(JobCheck&&) noexcept;
  JobCheck& operator=(JobCheck&&) noexcept;
  ~JobCheck();

  // Takes what it needs of the graph: 12 bytes a dependency, 24 a node and some for each communication.
  void add(std::uint64_t rank, const Graph& graph);

  // Ranks from the lowest. Nothing can be added afterwards.
  [[nodiscard]] std::vector<Finding> findings();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orrery::graph
