// Ranks of a job that do the same at the same time, found by comparing graphs, groups and messages; and the job with
// one simulated rank for each class of them.
//
// Classes are refined (as colours of a graph) until they are stable: two ranks are in one class if their graphs are
// equal, node by node, apart from the names of groups and peers; their groups have the same shape on the cluster and
// members of the same classes in the same roles; and their messages cross the same dimension to ranks of the same
// class. The proof that such ranks have the same times is in docs/models/flow.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/simulate/class_job.hpp"
#include "orrery/simulate/flow_job.hpp"

namespace orrery::simulate {

// `job`: with every rank simulated (unfolded()). It stays so, with the reason, if messages of a rank could not be told
// apart. O(nodes) per round of refinement; there are at most as many rounds as classes.
[[nodiscard]] FoldedJob fold(FlowJob job);

struct StableClasses {
  std::vector<std::uint32_t> of;  // by rank; numbered in the order of their first ranks
  std::string ambiguous;          // why the messages of a class could not be told apart; empty if they can
};

// What else ranks of a class have in common, by rank.
struct RankViews {
  std::vector<std::vector<std::uint32_t>> neighbours;  // ranks; in this order, of the same classes
  std::vector<std::vector<std::uint32_t>> marks;       // equal lists
};

// The classes alone. Of `job`: graphs without slots, groups, their shapes and kinds, and the dimensions of messages.
[[nodiscard]] StableClasses stable_classes(const FlowJob& job, const RankViews& views);

}  // namespace orrery::simulate
