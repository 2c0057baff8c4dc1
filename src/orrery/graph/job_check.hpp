// Checks the graphs of the ranks of a job together: the same collectives in the same order on every member of a group,
// a receive for every send, no deadlock.
//
// The order of a rank's collectives is run_order(): that of the file, as far as dependencies allow. The members of a
// group are those of its rank list (in the files, or given); without one, the ranks that use it. Collectives without a
// group involve all ranks.
//
// Sizes must be equal, except for all-to-alls, gathers and scatters, where ranks may send and receive different
// amounts: there a difference is reported and is not unsound. Not checked: collectives whose involved_dim excludes
// dimensions, since the files do not specify which ranks those are; a finding gives their number.
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
  bool partial = false;              // only some ranks are given: missing ranks are not reported
  std::vector<ProcessGroup> groups;  // rank lists in addition to those of the graphs
};

class JobCheck {
 public:
  explicit JobCheck(JobCheckOptions options = {});
  JobCheck(JobCheck&&) noexcept;
  JobCheck& operator=(JobCheck&&) noexcept;
  ~JobCheck();

  // Copies what it needs of the graph: 12 bytes per dependency, 24 per node and some per communication node.
  void add(std::uint64_t rank, const Graph& graph);

  // Ranks from the lowest. Nothing can be added afterwards.
  [[nodiscard]] std::vector<Finding> findings();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orrery::graph
